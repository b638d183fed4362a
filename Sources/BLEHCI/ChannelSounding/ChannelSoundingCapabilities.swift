import BLEByteCoding
import BluetoothTypes

/// What a controller can do in Channel Sounding (Vol 4, Part E, 7.8.130).
public struct ChannelSoundingCapabilities: Hashable, Sendable {
    /// The number of configurations for each connection: 1 to 4.
    public var numConfigSupported: UInt8
    /// 0x0000: any number of procedures may follow each other.
    public var maxConsecutiveProceduresSupported: UInt16
    /// 1 to 4.
    public var numAntennasSupported: UInt8
    /// 1 to 4.
    public var maxAntennaPathsSupported: UInt8
    /// The roles of the controller.
    public var rolesSupported: ChannelSoundingRoles
    /// Bit 0: mode 3. Modes 1 and 2 are always supported.
    public var modesSupported: UInt8
    /// One bit for each kind of RTT whose time-of-flight accuracy is 10 ns rather than 150 ns: access address, sounding
    /// sequence, random sequence.
    public var rttCapability: UInt8
    /// The number of steps for that accuracy with the access address alone; 0 if it is not supported.
    public var rttAAOnlyN: UInt8
    /// The number of steps for that accuracy with a sounding sequence; 0 if it is not supported.
    public var rttSoundingN: UInt8
    /// The number of steps for that accuracy with a random sequence; 0 if it is not supported.
    public var rttRandomPayloadN: UInt8
    /// Bit 0: the detection of attacks (NADM) with a sounding sequence.
    public var nadmSoundingCapability: UInt16
    /// Bit 0: the detection of attacks (NADM) with a random sequence.
    public var nadmRandomCapability: UInt16
    /// Bit 1: LE 2M; bit 2: LE 2M 2BT. LE 1M is always supported.
    public var csSyncPHYsSupported: UInt8
    /// Bit 1: no frequency actuation error; bit 2: channel selection algorithm #3c; bit 3: phase-based ranging from
    /// RTT.
    public var subfeaturesSupported: UInt16
    /// The times T_IP1 that are supported besides 145 us: one bit for each, as listed in 7.8.130.
    public var tIP1TimesSupported: UInt16
    /// The times T_IP2 that are supported besides 145 us.
    public var tIP2TimesSupported: UInt16
    /// The times T_FCS that are supported besides 150 us.
    public var tFCSTimesSupported: UInt16
    /// The times T_PM that are supported besides 40 us.
    public var tPMTimesSupported: UInt16
    /// The time to switch antennas, in microseconds: 0, 1, 2, 4 or 10.
    public var tSWTimeSupported: UInt8
    /// The signal-to-noise ratios of RTT packets that can be chosen: one bit for each, as listed in 7.8.130.
    public var txSNRCapability: UInt8

    /// Creates capabilities. By default, they are the least that a controller in both roles may have.
    public init(
        numConfigSupported: UInt8 = 1,
        maxConsecutiveProceduresSupported: UInt16 = 1,
        numAntennasSupported: UInt8 = 1,
        maxAntennaPathsSupported: UInt8 = 1,
        rolesSupported: ChannelSoundingRoles = [.initiator, .reflector],
        modesSupported: UInt8 = 0,
        rttCapability: UInt8 = 0,
        rttAAOnlyN: UInt8 = 0,
        rttSoundingN: UInt8 = 0,
        rttRandomPayloadN: UInt8 = 0,
        nadmSoundingCapability: UInt16 = 0,
        nadmRandomCapability: UInt16 = 0,
        csSyncPHYsSupported: UInt8 = 0,
        subfeaturesSupported: UInt16 = 0,
        tIP1TimesSupported: UInt16 = 0,
        tIP2TimesSupported: UInt16 = 0,
        tFCSTimesSupported: UInt16 = 0,
        tPMTimesSupported: UInt16 = 0,
        tSWTimeSupported: UInt8 = 0,
        txSNRCapability: UInt8 = 0
    ) {
        self.numConfigSupported = numConfigSupported
        self.maxConsecutiveProceduresSupported = maxConsecutiveProceduresSupported
        self.numAntennasSupported = numAntennasSupported
        self.maxAntennaPathsSupported = maxAntennaPathsSupported
        self.rolesSupported = rolesSupported
        self.modesSupported = modesSupported
        self.rttCapability = rttCapability
        self.rttAAOnlyN = rttAAOnlyN
        self.rttSoundingN = rttSoundingN
        self.rttRandomPayloadN = rttRandomPayloadN
        self.nadmSoundingCapability = nadmSoundingCapability
        self.nadmRandomCapability = nadmRandomCapability
        self.csSyncPHYsSupported = csSyncPHYsSupported
        self.subfeaturesSupported = subfeaturesSupported
        self.tIP1TimesSupported = tIP1TimesSupported
        self.tIP2TimesSupported = tIP2TimesSupported
        self.tFCSTimesSupported = tFCSTimesSupported
        self.tPMTimesSupported = tPMTimesSupported
        self.tSWTimeSupported = tSWTimeSupported
        self.txSNRCapability = txSNRCapability
    }

    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        numConfigSupported = try reader.readUInt8()
        maxConsecutiveProceduresSupported = try reader.readUInt16()
        numAntennasSupported = try reader.readUInt8()
        maxAntennaPathsSupported = try reader.readUInt8()
        rolesSupported = ChannelSoundingRoles(rawValue: try reader.readUInt8())
        modesSupported = try reader.readUInt8()
        rttCapability = try reader.readUInt8()
        rttAAOnlyN = try reader.readUInt8()
        rttSoundingN = try reader.readUInt8()
        rttRandomPayloadN = try reader.readUInt8()
        nadmSoundingCapability = try reader.readUInt16()
        nadmRandomCapability = try reader.readUInt16()
        csSyncPHYsSupported = try reader.readUInt8()
        subfeaturesSupported = try reader.readUInt16()
        tIP1TimesSupported = try reader.readUInt16()
        tIP2TimesSupported = try reader.readUInt16()
        tFCSTimesSupported = try reader.readUInt16()
        tPMTimesSupported = try reader.readUInt16()
        tSWTimeSupported = try reader.readUInt8()
        txSNRCapability = try reader.readUInt8()
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(numConfigSupported)
        buffer.append(maxConsecutiveProceduresSupported)
        buffer.append(numAntennasSupported)
        buffer.append(maxAntennaPathsSupported)
        buffer.append(rolesSupported.rawValue)
        buffer.append(modesSupported)
        buffer.append(rttCapability)
        buffer.append(rttAAOnlyN)
        buffer.append(rttSoundingN)
        buffer.append(rttRandomPayloadN)
        buffer.append(nadmSoundingCapability)
        buffer.append(nadmRandomCapability)
        buffer.append(csSyncPHYsSupported)
        buffer.append(subfeaturesSupported)
        buffer.append(tIP1TimesSupported)
        buffer.append(tIP2TimesSupported)
        buffer.append(tFCSTimesSupported)
        buffer.append(tPMTimesSupported)
        buffer.append(tSWTimeSupported)
        buffer.append(txSNRCapability)
    }
}

/// A command to read what this controller can do in Channel Sounding (Vol 4, Part E, 7.8.130).
public struct LECSReadLocalSupportedCapabilities: Command, Equatable {
    public static let opcode = HCIOpcode(group: 0x08, command: 0x0089)

    /// The capabilities of the controller.
    public struct ReturnParameters: BLEHCI.ReturnParameters, Equatable {
        /// What the controller can do.
        public var capabilities: ChannelSoundingCapabilities

        /// Creates return parameters.
        public init(capabilities: ChannelSoundingCapabilities) {
            self.capabilities = capabilities
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            capabilities = try ChannelSoundingCapabilities(decoding: &reader)
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            capabilities.encode(into: &buffer)
        }
    }

    /// Creates a command.
    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}
}

/// A command to give the controller the capabilities of a peer that it has read before (Vol 4, Part E, 7.8.132).
public struct LECSWriteCachedRemoteSupportedCapabilities: Command, Equatable {
    public typealias ReturnParameters = LECSSetDefaultSettings.ReturnParameters

    public static let opcode = HCIOpcode(group: 0x08, command: 0x008B)

    /// The connection, 0x0000 to 0x0EFF.
    public var connectionHandle: ConnectionHandle
    /// What the peer's controller can do.
    public var capabilities: ChannelSoundingCapabilities

    /// Creates a command.
    public init(connectionHandle: ConnectionHandle, capabilities: ChannelSoundingCapabilities) {
        self.connectionHandle = connectionHandle
        self.capabilities = capabilities
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        capabilities = try ChannelSoundingCapabilities(decoding: &reader)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        capabilities.encode(into: &buffer)
    }
}

/// An event that the capabilities of a peer in Channel Sounding were read, or that this failed (Vol 4, Part E,
/// 7.7.65.39).
public struct LECSReadRemoteSupportedCapabilitiesComplete: LEEventParameters, Equatable, Sendable {
    public static let subeventCode: UInt8 = 0x2C

    /// Success, or the reason for the failure.
    public var status: HCIErrorCode
    /// The connection, 0x0000 to 0x0EFF.
    public var connectionHandle: ConnectionHandle
    /// What the peer's controller can do.
    public var capabilities: ChannelSoundingCapabilities

    /// Creates an event.
    public init(
        status: HCIErrorCode = .success,
        connectionHandle: ConnectionHandle,
        capabilities: ChannelSoundingCapabilities
    ) {
        self.status = status
        self.connectionHandle = connectionHandle
        self.capabilities = capabilities
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = HCIErrorCode(rawValue: try reader.readUInt8())
        connectionHandle = try reader.readConnectionHandle()
        capabilities = try ChannelSoundingCapabilities(decoding: &reader)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(connectionHandle.rawValue)
        capabilities.encode(into: &buffer)
    }
}
