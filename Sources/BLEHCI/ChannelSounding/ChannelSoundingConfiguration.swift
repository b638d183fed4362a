import BLEByteCoding
import BluetoothTypes

/// The steps of the procedures of Channel Sounding (Vol 4, Part E, 7.8.137).
public struct ChannelSoundingConfiguration: Hashable, Sendable {
    /// What most steps measure: mode 1, 2 or 3.
    public var mainMode: ChannelSoundingMode
    /// What the steps between them measure; ``ChannelSoundingMode/none`` for no such steps.
    public var subMode: ChannelSoundingMode
    /// The minimum number of main mode steps before a submode step: 2 to 255.
    public var minMainModeSteps: UInt8
    /// The maximum number of main mode steps before a submode step: 2 to 255.
    public var maxMainModeSteps: UInt8
    /// The number of main mode steps that a subevent repeats from the previous subevent: 0 to 3.
    public var mainModeRepetition: UInt8
    /// The number of mode 0 steps at the beginning of each subevent: 1 to 3.
    public var mode0Steps: UInt8
    /// The role of the controller that gets the command, or reports the event.
    public var role: ChannelSoundingRole
    /// What the round-trip time is measured with.
    public var rttType: ChannelSoundingRTTType
    /// The PHY of the CS_SYNC packets.
    public var csSyncPHY: ChannelSoundingPHY
    /// The channels of the procedures.
    public var channelMap: ChannelSoundingChannels
    /// The number of times that each channel is used: 1 to 255.
    public var channelMapRepetition: UInt8
    /// 0: channel selection algorithm #3b; 1: #3c.
    public var channelSelectionType: UInt8
    /// The shape for algorithm #3c. 0: hat; 1: X.
    public var ch3cShape: UInt8
    /// The channels that algorithm #3c skips: 2 to 8.
    public var ch3cJump: UInt8

    /// Creates a configuration. By default, each controller with Channel Sounding can perform it: phase-based ranging
    /// by mode 2 on all channels.
    public init(
        mainMode: ChannelSoundingMode = .mode2,
        subMode: ChannelSoundingMode = .none,
        minMainModeSteps: UInt8 = 2,
        maxMainModeSteps: UInt8 = 10,
        mainModeRepetition: UInt8 = 0,
        mode0Steps: UInt8 = 3,
        role: ChannelSoundingRole = .initiator,
        rttType: ChannelSoundingRTTType = .accessAddress,
        csSyncPHY: ChannelSoundingPHY = .le1M,
        channelMap: ChannelSoundingChannels = .all,
        channelMapRepetition: UInt8 = 1,
        channelSelectionType: UInt8 = 0,
        ch3cShape: UInt8 = 0,
        ch3cJump: UInt8 = 2
    ) {
        self.mainMode = mainMode
        self.subMode = subMode
        self.minMainModeSteps = minMainModeSteps
        self.maxMainModeSteps = maxMainModeSteps
        self.mainModeRepetition = mainModeRepetition
        self.mode0Steps = mode0Steps
        self.role = role
        self.rttType = rttType
        self.csSyncPHY = csSyncPHY
        self.channelMap = channelMap
        self.channelMapRepetition = channelMapRepetition
        self.channelSelectionType = channelSelectionType
        self.ch3cShape = ch3cShape
        self.ch3cJump = ch3cJump
    }

    /// Decodes the fields and the reserved byte after them, which version 6.0 of the specification does not use.
    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        mainMode = ChannelSoundingMode(rawValue: try reader.readUInt8())
        subMode = ChannelSoundingMode(rawValue: try reader.readUInt8())
        minMainModeSteps = try reader.readUInt8()
        maxMainModeSteps = try reader.readUInt8()
        mainModeRepetition = try reader.readUInt8()
        mode0Steps = try reader.readUInt8()
        role = ChannelSoundingRole(rawValue: try reader.readUInt8())
        rttType = ChannelSoundingRTTType(rawValue: try reader.readUInt8())
        csSyncPHY = ChannelSoundingPHY(rawValue: try reader.readUInt8())
        channelMap = try ChannelSoundingChannels(decoding: &reader)
        channelMapRepetition = try reader.readUInt8()
        channelSelectionType = try reader.readUInt8()
        ch3cShape = try reader.readUInt8()
        ch3cJump = try reader.readUInt8()
        try reader.skip(1)
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(mainMode.rawValue)
        buffer.append(subMode.rawValue)
        buffer.append(minMainModeSteps)
        buffer.append(maxMainModeSteps)
        buffer.append(mainModeRepetition)
        buffer.append(mode0Steps)
        buffer.append(role.rawValue)
        buffer.append(rttType.rawValue)
        buffer.append(csSyncPHY.rawValue)
        channelMap.encode(into: &buffer)
        buffer.append(channelMapRepetition)
        buffer.append(channelSelectionType)
        buffer.append(ch3cShape)
        buffer.append(ch3cJump)
        buffer.append(UInt8(0))
    }
}

/// A command to create a configuration, or to replace it (Vol 4, Part E, 7.8.137).
public struct LECSCreateConfig: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = HCIOpcode(group: 0x08, command: 0x0090)

    /// The connection, 0x0000 to 0x0EFF.
    public var connectionHandle: ConnectionHandle
    /// 0 to 3.
    public var configID: UInt8
    /// Whether the peer gets the configuration as well. Otherwise only this controller does.
    public var isSentToPeer: Bool
    /// The steps of the procedures.
    public var configuration: ChannelSoundingConfiguration

    /// Creates a command.
    public init(
        connectionHandle: ConnectionHandle,
        configID: UInt8,
        isSentToPeer: Bool = true,
        configuration: ChannelSoundingConfiguration
    ) {
        self.connectionHandle = connectionHandle
        self.configID = configID
        self.isSentToPeer = isSentToPeer
        self.configuration = configuration
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        configID = try reader.readUInt8()
        isSentToPeer = try reader.readFlag("Create_Context")
        configuration = try ChannelSoundingConfiguration(decoding: &reader)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        buffer.append(configID)
        buffer.append(flag: isSentToPeer)
        configuration.encode(into: &buffer)
    }
}

/// An event that a configuration was created or removed, or that this failed (Vol 4, Part E, 7.7.65.42).
public struct LECSConfigComplete: LEEventParameters, Equatable, Sendable {
    public static let subeventCode: UInt8 = 0x2F

    /// Success, or the reason for the failure.
    public var status: HCIErrorCode
    /// The connection, 0x0000 to 0x0EFF.
    public var connectionHandle: ConnectionHandle
    /// 0 to 3.
    public var configID: UInt8
    /// Whether the configuration was created. Otherwise it was removed.
    public var isCreated: Bool
    /// The steps of the procedures.
    public var configuration: ChannelSoundingConfiguration
    /// T_IP1, in microseconds.
    public var tIP1Time: UInt8
    /// T_IP2, in microseconds.
    public var tIP2Time: UInt8
    /// T_FCS, in microseconds.
    public var tFCSTime: UInt8
    /// T_PM, in microseconds.
    public var tPMTime: UInt8

    /// Creates an event.
    public init(
        status: HCIErrorCode = .success,
        connectionHandle: ConnectionHandle,
        configID: UInt8,
        isCreated: Bool,
        configuration: ChannelSoundingConfiguration,
        tIP1Time: UInt8 = 145,
        tIP2Time: UInt8 = 145,
        tFCSTime: UInt8 = 150,
        tPMTime: UInt8 = 40
    ) {
        self.status = status
        self.connectionHandle = connectionHandle
        self.configID = configID
        self.isCreated = isCreated
        self.configuration = configuration
        self.tIP1Time = tIP1Time
        self.tIP2Time = tIP2Time
        self.tFCSTime = tFCSTime
        self.tPMTime = tPMTime
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = HCIErrorCode(rawValue: try reader.readUInt8())
        connectionHandle = try reader.readConnectionHandle()
        configID = try reader.readUInt8()
        isCreated = try reader.readFlag("Action")
        configuration = try ChannelSoundingConfiguration(decoding: &reader)
        tIP1Time = try reader.readUInt8()
        tIP2Time = try reader.readUInt8()
        tFCSTime = try reader.readUInt8()
        tPMTime = try reader.readUInt8()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(connectionHandle.rawValue)
        buffer.append(configID)
        buffer.append(flag: isCreated)
        configuration.encode(into: &buffer)
        buffer.append(tIP1Time)
        buffer.append(tIP2Time)
        buffer.append(tFCSTime)
        buffer.append(tPMTime)
    }
}
