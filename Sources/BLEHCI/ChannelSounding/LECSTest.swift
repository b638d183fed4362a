import BLEByteCoding

/// A command to test Channel Sounding without a connection, with a tester as the peer (Vol 4, Part E, 7.8.142).
public struct LECSTest: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = HCIOpcode(group: 0x08, command: 0x0095)

    /// Maximum number of bytes of ``overrideParameters``, so that the command has at most 255.
    public static let maximumOverrideLength = 225

    /// What most steps measure.
    public var mainMode: ChannelSoundingMode
    /// What the steps between them measure.
    public var subMode: ChannelSoundingMode
    /// 0 to 3.
    public var mainModeRepetition: UInt8
    /// 1 to 3.
    public var mode0Steps: UInt8
    /// The role of this controller.
    public var role: ChannelSoundingRole
    /// What the round-trip time is measured with.
    public var rttType: ChannelSoundingRTTType
    /// The PHY of the CS_SYNC packets.
    public var csSyncPHY: ChannelSoundingPHY
    /// 0x01 to 0x04: the antenna for CS_SYNC packets. 0xFE: each in turn; 0xFF: no recommendation.
    public var csSyncAntennaSelection: UInt8
    /// In microseconds, 0x0004E2 to 0x3D0900.
    public var subeventLength: UInt32
    /// In units of 0.625 ms; 0x0000 for a single subevent.
    public var subeventInterval: UInt16
    /// 0x00: any number.
    public var maxNumSubevents: UInt8
    /// In dBm, -127 to 20; 0x7E: minimum, 0x7F: maximum.
    public var transmitPowerLevel: Int8
    /// T_IP1, in microseconds.
    public var tIP1Time: UInt8
    /// T_IP2, in microseconds.
    public var tIP2Time: UInt8
    /// T_FCS, in microseconds.
    public var tFCSTime: UInt8
    /// T_PM, in microseconds.
    public var tPMTime: UInt8
    /// T_SW, in microseconds.
    public var tSWTime: UInt8
    /// 0 to 7: the antenna paths, as listed in Vol 6, Part A, 5.3.
    public var toneAntennaConfigSelection: UInt8
    /// As listed in 7.8.142; 0xFF does not apply it.
    public var snrControlInitiator: UInt8
    /// As listed in 7.8.142; 0xFF does not apply it.
    public var snrControlReflector: UInt8
    /// The nonce of the random bits.
    public var drbgNonce: UInt16
    /// 1 to 255.
    public var channelMapRepetition: UInt8
    /// The parameters in ``overrideParameters``: one bit for each, as listed in 7.8.142.
    public var overrideConfig: UInt16
    /// The values that replace random ones; at most 225 bytes.
    public let overrideParameters: [UInt8]

    /// Creates a command. It has at most 225 bytes of `overrideParameters`; further ones are dropped.
    public init(
        mainMode: ChannelSoundingMode,
        subMode: ChannelSoundingMode = .none,
        mainModeRepetition: UInt8 = 0,
        mode0Steps: UInt8 = 3,
        role: ChannelSoundingRole,
        rttType: ChannelSoundingRTTType = .accessAddress,
        csSyncPHY: ChannelSoundingPHY = .le1M,
        csSyncAntennaSelection: UInt8 = 0x01,
        subeventLength: UInt32,
        subeventInterval: UInt16 = 0,
        maxNumSubevents: UInt8 = 0,
        transmitPowerLevel: Int8 = 0x7F,
        tIP1Time: UInt8 = 145,
        tIP2Time: UInt8 = 145,
        tFCSTime: UInt8 = 150,
        tPMTime: UInt8 = 40,
        tSWTime: UInt8 = 0,
        toneAntennaConfigSelection: UInt8 = 0,
        snrControlInitiator: UInt8 = 0xFF,
        snrControlReflector: UInt8 = 0xFF,
        drbgNonce: UInt16 = 0,
        channelMapRepetition: UInt8 = 1,
        overrideConfig: UInt16 = 0,
        overrideParameters: [UInt8] = []
    ) {
        self.mainMode = mainMode
        self.subMode = subMode
        self.mainModeRepetition = mainModeRepetition
        self.mode0Steps = mode0Steps
        self.role = role
        self.rttType = rttType
        self.csSyncPHY = csSyncPHY
        self.csSyncAntennaSelection = csSyncAntennaSelection
        self.subeventLength = subeventLength
        self.subeventInterval = subeventInterval
        self.maxNumSubevents = maxNumSubevents
        self.transmitPowerLevel = transmitPowerLevel
        self.tIP1Time = tIP1Time
        self.tIP2Time = tIP2Time
        self.tFCSTime = tFCSTime
        self.tPMTime = tPMTime
        self.tSWTime = tSWTime
        self.toneAntennaConfigSelection = toneAntennaConfigSelection
        self.snrControlInitiator = snrControlInitiator
        self.snrControlReflector = snrControlReflector
        self.drbgNonce = drbgNonce
        self.channelMapRepetition = channelMapRepetition
        self.overrideConfig = overrideConfig
        self.overrideParameters = Array(overrideParameters.prefix(Self.maximumOverrideLength))
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        mainMode = ChannelSoundingMode(rawValue: try reader.readUInt8())
        subMode = ChannelSoundingMode(rawValue: try reader.readUInt8())
        mainModeRepetition = try reader.readUInt8()
        mode0Steps = try reader.readUInt8()
        role = ChannelSoundingRole(rawValue: try reader.readUInt8())
        rttType = ChannelSoundingRTTType(rawValue: try reader.readUInt8())
        csSyncPHY = ChannelSoundingPHY(rawValue: try reader.readUInt8())
        csSyncAntennaSelection = try reader.readUInt8()
        subeventLength = try reader.readUInt24()
        subeventInterval = try reader.readUInt16()
        maxNumSubevents = try reader.readUInt8()
        transmitPowerLevel = try reader.readInt8()
        tIP1Time = try reader.readUInt8()
        tIP2Time = try reader.readUInt8()
        tFCSTime = try reader.readUInt8()
        tPMTime = try reader.readUInt8()
        tSWTime = try reader.readUInt8()
        toneAntennaConfigSelection = try reader.readUInt8()
        try reader.skip(1)
        snrControlInitiator = try reader.readUInt8()
        snrControlReflector = try reader.readUInt8()
        drbgNonce = try reader.readUInt16()
        channelMapRepetition = try reader.readUInt8()
        overrideConfig = try reader.readUInt16()
        let length = Int(try reader.readUInt8())
        overrideParameters = [UInt8](copying: try reader.readBytes(count: length))
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(mainMode.rawValue)
        buffer.append(subMode.rawValue)
        buffer.append(mainModeRepetition)
        buffer.append(mode0Steps)
        buffer.append(role.rawValue)
        buffer.append(rttType.rawValue)
        buffer.append(csSyncPHY.rawValue)
        buffer.append(csSyncAntennaSelection)
        buffer.appendUInt24(subeventLength)
        buffer.append(subeventInterval)
        buffer.append(maxNumSubevents)
        buffer.append(transmitPowerLevel)
        buffer.append(tIP1Time)
        buffer.append(tIP2Time)
        buffer.append(tFCSTime)
        buffer.append(tPMTime)
        buffer.append(tSWTime)
        buffer.append(toneAntennaConfigSelection)
        buffer.append(UInt8(0))
        buffer.append(snrControlInitiator)
        buffer.append(snrControlReflector)
        buffer.append(drbgNonce)
        buffer.append(channelMapRepetition)
        buffer.append(overrideConfig)
        buffer.append(UInt8(truncatingIfNeeded: overrideParameters.count))
        buffer.append(overrideParameters)
    }
}
