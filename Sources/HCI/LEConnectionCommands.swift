import BluetoothTypes
import ByteCoding

/// Connects to an advertiser (Vol 4, Part E, 7.8.12).
public struct LECreateConnection: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x000D)

    /// In units of 0.625 ms, 0x0004 to 0x4000.
    public var leScanInterval: UInt16
    /// In units of 0.625 ms, at most the interval.
    public var leScanWindow: UInt16
    public var initiatorFilterPolicy: InitiatorFilterPolicy
    /// Ignored when the filter accept list is used.
    public var peerAddress: PeerAddress
    public var ownAddressType: OwnAddressType
    /// In units of 1.25 ms, 0x0006 to 0x0C80.
    public var connectionIntervalMin: UInt16
    /// In units of 1.25 ms, 0x0006 to 0x0C80.
    public var connectionIntervalMax: UInt16
    /// In connection events, at most 0x01F3.
    public var maxLatency: UInt16
    /// In units of 10 ms, 0x000A to 0x0C80.
    public var supervisionTimeout: UInt16
    /// In units of 0.625 ms.
    public var minCELength: UInt16
    /// In units of 0.625 ms.
    public var maxCELength: UInt16

    public init(
        leScanInterval: UInt16 = 0x0060,
        leScanWindow: UInt16 = 0x0060,
        initiatorFilterPolicy: InitiatorFilterPolicy = .peerAddress,
        peerAddress: PeerAddress = PeerAddress(DeviceAddress(0, isRandom: false)),
        ownAddressType: OwnAddressType = .public,
        connectionIntervalMin: UInt16 = 0x0018,
        connectionIntervalMax: UInt16 = 0x0028,
        maxLatency: UInt16 = 0,
        supervisionTimeout: UInt16 = 0x01F4,
        minCELength: UInt16 = 0,
        maxCELength: UInt16 = 0
    ) {
        self.leScanInterval = leScanInterval
        self.leScanWindow = leScanWindow
        self.initiatorFilterPolicy = initiatorFilterPolicy
        self.peerAddress = peerAddress
        self.ownAddressType = ownAddressType
        self.connectionIntervalMin = connectionIntervalMin
        self.connectionIntervalMax = connectionIntervalMax
        self.maxLatency = maxLatency
        self.supervisionTimeout = supervisionTimeout
        self.minCELength = minCELength
        self.maxCELength = maxCELength
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        leScanInterval = try reader.readUInt16()
        leScanWindow = try reader.readUInt16()
        initiatorFilterPolicy = try reader.readValue("Initiator_Filter_Policy")
        peerAddress = try PeerAddress(decoding: &reader)
        ownAddressType = try reader.readValue("Own_Address_Type")
        connectionIntervalMin = try reader.readUInt16()
        connectionIntervalMax = try reader.readUInt16()
        maxLatency = try reader.readUInt16()
        supervisionTimeout = try reader.readUInt16()
        minCELength = try reader.readUInt16()
        maxCELength = try reader.readUInt16()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(leScanInterval)
        buffer.append(leScanWindow)
        buffer.append(initiatorFilterPolicy.rawValue)
        peerAddress.encode(into: &buffer)
        buffer.append(ownAddressType.rawValue)
        buffer.append(connectionIntervalMin)
        buffer.append(connectionIntervalMax)
        buffer.append(maxLatency)
        buffer.append(supervisionTimeout)
        buffer.append(minCELength)
        buffer.append(maxCELength)
    }
}

/// Gives up connecting (Vol 4, Part E, 7.8.13).
public struct LECreateConnectionCancel: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x000E)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}
}

/// Changes a connection's parameters (Vol 4, Part E, 7.8.18).
public struct LEConnectionUpdate: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0013)

    public var connectionHandle: ConnectionHandle
    /// In units of 1.25 ms, 0x0006 to 0x0C80.
    public var connectionIntervalMin: UInt16
    /// In units of 1.25 ms, 0x0006 to 0x0C80.
    public var connectionIntervalMax: UInt16
    /// In connection events, at most 0x01F3.
    public var maxLatency: UInt16
    /// In units of 10 ms, 0x000A to 0x0C80.
    public var supervisionTimeout: UInt16
    /// In units of 0.625 ms.
    public var minCELength: UInt16
    /// In units of 0.625 ms.
    public var maxCELength: UInt16

    public init(
        connectionHandle: ConnectionHandle,
        connectionIntervalMin: UInt16,
        connectionIntervalMax: UInt16,
        maxLatency: UInt16 = 0,
        supervisionTimeout: UInt16,
        minCELength: UInt16 = 0,
        maxCELength: UInt16 = 0
    ) {
        self.connectionHandle = connectionHandle
        self.connectionIntervalMin = connectionIntervalMin
        self.connectionIntervalMax = connectionIntervalMax
        self.maxLatency = maxLatency
        self.supervisionTimeout = supervisionTimeout
        self.minCELength = minCELength
        self.maxCELength = maxCELength
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        connectionIntervalMin = try reader.readUInt16()
        connectionIntervalMax = try reader.readUInt16()
        maxLatency = try reader.readUInt16()
        supervisionTimeout = try reader.readUInt16()
        minCELength = try reader.readUInt16()
        maxCELength = try reader.readUInt16()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        buffer.append(connectionIntervalMin)
        buffer.append(connectionIntervalMax)
        buffer.append(maxLatency)
        buffer.append(supervisionTimeout)
        buffer.append(minCELength)
        buffer.append(maxCELength)
    }
}

/// Says which data channels the host knows to be bad (Vol 4, Part E, 7.8.19).
public struct LESetHostChannelClassification: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0014)

    public var channelMap: ChannelMap

    public init(channelMap: ChannelMap) {
        self.channelMap = channelMap
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        channelMap = try ChannelMap(decoding: &reader)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        channelMap.encode(into: &buffer)
    }
}

/// Reads which data channels a connection uses (Vol 4, Part E, 7.8.20).
public struct LEReadChannelMap: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x0015)

    public var connectionHandle: ConnectionHandle

    public init(connectionHandle: ConnectionHandle) {
        self.connectionHandle = connectionHandle
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
    }

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var connectionHandle: ConnectionHandle
        public var channelMap: ChannelMap

        public init(connectionHandle: ConnectionHandle, channelMap: ChannelMap) {
            self.connectionHandle = connectionHandle
            self.channelMap = channelMap
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            connectionHandle = try reader.readConnectionHandle()
            channelMap = try ChannelMap(decoding: &reader)
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(connectionHandle.rawValue)
            channelMap.encode(into: &buffer)
        }
    }
}

/// Asks the peer's link layer for its features (Vol 4, Part E, 7.8.21).
public struct LEReadRemoteFeatures: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0016)

    public var connectionHandle: ConnectionHandle

    public init(connectionHandle: ConnectionHandle) {
        self.connectionHandle = connectionHandle
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
    }
}

/// Accepts the connection parameters that the peer asked for (Vol 4, Part E, 7.8.31).
public struct LERemoteConnectionParameterRequestReply: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x0020)

    public var connectionHandle: ConnectionHandle
    /// In units of 1.25 ms, 0x0006 to 0x0C80.
    public var intervalMin: UInt16
    /// In units of 1.25 ms, 0x0006 to 0x0C80.
    public var intervalMax: UInt16
    /// In connection events, at most 0x01F3.
    public var maxLatency: UInt16
    /// In units of 10 ms, 0x000A to 0x0C80.
    public var timeout: UInt16
    /// In units of 0.625 ms.
    public var minCELength: UInt16
    /// In units of 0.625 ms.
    public var maxCELength: UInt16

    public init(
        connectionHandle: ConnectionHandle,
        intervalMin: UInt16,
        intervalMax: UInt16,
        maxLatency: UInt16 = 0,
        timeout: UInt16,
        minCELength: UInt16 = 0,
        maxCELength: UInt16 = 0
    ) {
        self.connectionHandle = connectionHandle
        self.intervalMin = intervalMin
        self.intervalMax = intervalMax
        self.maxLatency = maxLatency
        self.timeout = timeout
        self.minCELength = minCELength
        self.maxCELength = maxCELength
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        intervalMin = try reader.readUInt16()
        intervalMax = try reader.readUInt16()
        maxLatency = try reader.readUInt16()
        timeout = try reader.readUInt16()
        minCELength = try reader.readUInt16()
        maxCELength = try reader.readUInt16()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        buffer.append(intervalMin)
        buffer.append(intervalMax)
        buffer.append(maxLatency)
        buffer.append(timeout)
        buffer.append(minCELength)
        buffer.append(maxCELength)
    }

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var connectionHandle: ConnectionHandle

        public init(connectionHandle: ConnectionHandle) {
            self.connectionHandle = connectionHandle
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            connectionHandle = try reader.readConnectionHandle()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(connectionHandle.rawValue)
        }
    }
}

/// Refuses the connection parameters that the peer asked for (Vol 4, Part E, 7.8.32).
public struct LERemoteConnectionParameterRequestNegativeReply: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x0021)

    public var connectionHandle: ConnectionHandle
    public var reason: ErrorCode

    public init(connectionHandle: ConnectionHandle, reason: ErrorCode = .unacceptableConnectionParameters) {
        self.connectionHandle = connectionHandle
        self.reason = reason
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        reason = ErrorCode(rawValue: try reader.readUInt8())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        buffer.append(reason.rawValue)
    }

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var connectionHandle: ConnectionHandle

        public init(connectionHandle: ConnectionHandle) {
            self.connectionHandle = connectionHandle
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            connectionHandle = try reader.readConnectionHandle()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(connectionHandle.rawValue)
        }
    }
}
