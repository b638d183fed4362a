import BluetoothTypes
import ByteCoding

/// A connection is made, or could not be (Vol 4, Part E, 7.7.65.1).
public struct LEConnectionComplete: LEEventParameters, Sendable, Equatable {
    public static let subeventCode: UInt8 = 0x01

    public var status: ErrorCode
    public var connectionHandle: ConnectionHandle
    public var role: Role
    public var peerAddress: PeerAddress
    /// In units of 1.25 ms.
    public var connectionInterval: UInt16
    /// In connection events.
    public var peripheralLatency: UInt16
    /// In units of 10 ms.
    public var supervisionTimeout: UInt16
    /// 0 is 500 ppm, 7 is 20 ppm; of use to the peripheral only.
    public var centralClockAccuracy: UInt8

    public init(
        status: ErrorCode = .success,
        connectionHandle: ConnectionHandle,
        role: Role,
        peerAddress: PeerAddress,
        connectionInterval: UInt16,
        peripheralLatency: UInt16,
        supervisionTimeout: UInt16,
        centralClockAccuracy: UInt8 = 0
    ) {
        self.status = status
        self.connectionHandle = connectionHandle
        self.role = role
        self.peerAddress = peerAddress
        self.connectionInterval = connectionInterval
        self.peripheralLatency = peripheralLatency
        self.supervisionTimeout = supervisionTimeout
        self.centralClockAccuracy = centralClockAccuracy
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = ErrorCode(rawValue: try reader.readUInt8())
        connectionHandle = try reader.readConnectionHandle()
        role = Role(rawValue: try reader.readUInt8())
        peerAddress = try PeerAddress(decoding: &reader)
        connectionInterval = try reader.readUInt16()
        peripheralLatency = try reader.readUInt16()
        supervisionTimeout = try reader.readUInt16()
        centralClockAccuracy = try reader.readUInt8()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(connectionHandle.rawValue)
        buffer.append(role.rawValue)
        peerAddress.encode(into: &buffer)
        buffer.append(connectionInterval)
        buffer.append(peripheralLatency)
        buffer.append(supervisionTimeout)
        buffer.append(centralClockAccuracy)
    }
}

/// A connection's parameters have changed, or could not (Vol 4, Part E, 7.7.65.3).
public struct LEConnectionUpdateComplete: LEEventParameters, Sendable, Equatable {
    public static let subeventCode: UInt8 = 0x03

    public var status: ErrorCode
    public var connectionHandle: ConnectionHandle
    /// In units of 1.25 ms.
    public var connectionInterval: UInt16
    /// In connection events.
    public var peripheralLatency: UInt16
    /// In units of 10 ms.
    public var supervisionTimeout: UInt16

    public init(
        status: ErrorCode = .success,
        connectionHandle: ConnectionHandle,
        connectionInterval: UInt16,
        peripheralLatency: UInt16,
        supervisionTimeout: UInt16
    ) {
        self.status = status
        self.connectionHandle = connectionHandle
        self.connectionInterval = connectionInterval
        self.peripheralLatency = peripheralLatency
        self.supervisionTimeout = supervisionTimeout
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = ErrorCode(rawValue: try reader.readUInt8())
        connectionHandle = try reader.readConnectionHandle()
        connectionInterval = try reader.readUInt16()
        peripheralLatency = try reader.readUInt16()
        supervisionTimeout = try reader.readUInt16()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(connectionHandle.rawValue)
        buffer.append(connectionInterval)
        buffer.append(peripheralLatency)
        buffer.append(supervisionTimeout)
    }
}

/// The features of the peer's link layer (Vol 4, Part E, 7.7.65.4).
public struct LEReadRemoteFeaturesComplete: LEEventParameters, Sendable, Equatable {
    public static let subeventCode: UInt8 = 0x04

    public var status: ErrorCode
    public var connectionHandle: ConnectionHandle
    public var leFeatures: LEFeatures

    public init(status: ErrorCode = .success, connectionHandle: ConnectionHandle, leFeatures: LEFeatures) {
        self.status = status
        self.connectionHandle = connectionHandle
        self.leFeatures = leFeatures
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = ErrorCode(rawValue: try reader.readUInt8())
        connectionHandle = try reader.readConnectionHandle()
        leFeatures = LEFeatures(rawValue: try reader.readUInt64())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(connectionHandle.rawValue)
        buffer.append(leFeatures.rawValue)
    }
}

/// The peer asks for other connection parameters (Vol 4, Part E, 7.7.65.6).
public struct LERemoteConnectionParameterRequest: LEEventParameters, Sendable, Equatable {
    public static let subeventCode: UInt8 = 0x06

    public var connectionHandle: ConnectionHandle
    /// In units of 1.25 ms.
    public var intervalMin: UInt16
    /// In units of 1.25 ms.
    public var intervalMax: UInt16
    /// In connection events.
    public var maxLatency: UInt16
    /// In units of 10 ms.
    public var timeout: UInt16

    public init(
        connectionHandle: ConnectionHandle,
        intervalMin: UInt16,
        intervalMax: UInt16,
        maxLatency: UInt16,
        timeout: UInt16
    ) {
        self.connectionHandle = connectionHandle
        self.intervalMin = intervalMin
        self.intervalMax = intervalMax
        self.maxLatency = maxLatency
        self.timeout = timeout
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        intervalMin = try reader.readUInt16()
        intervalMax = try reader.readUInt16()
        maxLatency = try reader.readUInt16()
        timeout = try reader.readUInt16()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        buffer.append(intervalMin)
        buffer.append(intervalMax)
        buffer.append(maxLatency)
        buffer.append(timeout)
    }
}

/// A connection's packets may now be longer or shorter (Vol 4, Part E, 7.7.65.7).
public struct LEDataLengthChange: LEEventParameters, Sendable, Equatable {
    public static let subeventCode: UInt8 = 0x07

    public var connectionHandle: ConnectionHandle
    /// 0x001B to 0x00FB.
    public var maxTxOctets: UInt16
    /// In microseconds.
    public var maxTxTime: UInt16
    /// 0x001B to 0x00FB.
    public var maxRxOctets: UInt16
    /// In microseconds.
    public var maxRxTime: UInt16

    public init(
        connectionHandle: ConnectionHandle,
        maxTxOctets: UInt16,
        maxTxTime: UInt16,
        maxRxOctets: UInt16,
        maxRxTime: UInt16
    ) {
        self.connectionHandle = connectionHandle
        self.maxTxOctets = maxTxOctets
        self.maxTxTime = maxTxTime
        self.maxRxOctets = maxRxOctets
        self.maxRxTime = maxRxTime
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        maxTxOctets = try reader.readUInt16()
        maxTxTime = try reader.readUInt16()
        maxRxOctets = try reader.readUInt16()
        maxRxTime = try reader.readUInt16()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        buffer.append(maxTxOctets)
        buffer.append(maxTxTime)
        buffer.append(maxRxOctets)
        buffer.append(maxRxTime)
    }
}

/// A connection has other PHYs, or asked for them in vain (Vol 4, Part E, 7.7.65.12).
public struct LEPHYUpdateComplete: LEEventParameters, Sendable, Equatable {
    public static let subeventCode: UInt8 = 0x0C

    public var status: ErrorCode
    public var connectionHandle: ConnectionHandle
    public var txPHY: PHY
    public var rxPHY: PHY

    public init(status: ErrorCode = .success, connectionHandle: ConnectionHandle, txPHY: PHY, rxPHY: PHY) {
        self.status = status
        self.connectionHandle = connectionHandle
        self.txPHY = txPHY
        self.rxPHY = rxPHY
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = ErrorCode(rawValue: try reader.readUInt8())
        connectionHandle = try reader.readConnectionHandle()
        txPHY = PHY(rawValue: try reader.readUInt8())
        rxPHY = PHY(rawValue: try reader.readUInt8())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(connectionHandle.rawValue)
        buffer.append(txPHY.rawValue)
        buffer.append(rxPHY.rawValue)
    }
}

/// Which channel selection algorithm a new connection uses (Vol 4, Part E, 7.7.65.20).
public struct LEChannelSelectionAlgorithm: LEEventParameters, Sendable, Equatable {
    public static let subeventCode: UInt8 = 0x14

    public var connectionHandle: ConnectionHandle
    /// 0 for #1, 1 for #2.
    public var channelSelectionAlgorithm: UInt8

    public init(connectionHandle: ConnectionHandle, channelSelectionAlgorithm: UInt8) {
        self.connectionHandle = connectionHandle
        self.channelSelectionAlgorithm = channelSelectionAlgorithm
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        channelSelectionAlgorithm = try reader.readUInt8()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        buffer.append(channelSelectionAlgorithm)
    }
}
