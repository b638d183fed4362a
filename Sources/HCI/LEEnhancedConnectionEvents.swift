import BluetoothTypes
import ByteCoding

/// A connection is made, or could not be, version 1 (Vol 4, Part E, 7.7.65.10).
public struct LEEnhancedConnectionComplete: LEEventParameters, Sendable, Equatable {
    public static let subeventCode: UInt8 = 0x0A

    public var status: ErrorCode
    public var connectionHandle: ConnectionHandle
    public var role: Role
    /// An identity address when the peer's resolvable private address was resolved.
    public var peerAddress: PeerAddress
    /// All zero unless the controller made one for this connection.
    public var localResolvablePrivateAddress: DeviceAddress
    /// All zero unless the peer used one that was resolved.
    public var peerResolvablePrivateAddress: DeviceAddress
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
        localResolvablePrivateAddress: DeviceAddress = DeviceAddress(0, isRandom: true),
        peerResolvablePrivateAddress: DeviceAddress = DeviceAddress(0, isRandom: true),
        connectionInterval: UInt16,
        peripheralLatency: UInt16,
        supervisionTimeout: UInt16,
        centralClockAccuracy: UInt8 = 0
    ) {
        self.status = status
        self.connectionHandle = connectionHandle
        self.role = role
        self.peerAddress = peerAddress
        self.localResolvablePrivateAddress = localResolvablePrivateAddress
        self.peerResolvablePrivateAddress = peerResolvablePrivateAddress
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
        localResolvablePrivateAddress = DeviceAddress(try reader.readUInt48(), isRandom: true)
        peerResolvablePrivateAddress = DeviceAddress(try reader.readUInt48(), isRandom: true)
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
        buffer.appendUInt48(localResolvablePrivateAddress.value)
        buffer.appendUInt48(peerResolvablePrivateAddress.value)
        buffer.append(connectionInterval)
        buffer.append(peripheralLatency)
        buffer.append(supervisionTimeout)
        buffer.append(centralClockAccuracy)
    }
}

/// A connection is made, or could not be, version 2 (Vol 4, Part E, 7.7.65.10).
public struct LEEnhancedConnectionCompleteV2: LEEventParameters, Sendable, Equatable {
    public static let subeventCode: UInt8 = 0x29

    public var status: ErrorCode
    public var connectionHandle: ConnectionHandle
    public var role: Role
    /// An identity address when the peer's resolvable private address was resolved.
    public var peerAddress: PeerAddress
    /// All zero unless the controller made one for this connection.
    public var localResolvablePrivateAddress: DeviceAddress
    /// All zero unless the peer used one that was resolved.
    public var peerResolvablePrivateAddress: DeviceAddress
    /// In units of 1.25 ms.
    public var connectionInterval: UInt16
    /// In connection events.
    public var peripheralLatency: UInt16
    /// In units of 10 ms.
    public var supervisionTimeout: UInt16
    /// 0 is 500 ppm, 7 is 20 ppm; of use to the peripheral only.
    public var centralClockAccuracy: UInt8
    /// The advertising set that led to the connection; 0xFF where none did.
    public var advertisingHandle: UInt8
    /// The periodic advertising train that led to the connection; 0xFFFF where none did.
    public var syncHandle: UInt16

    public init(
        status: ErrorCode = .success,
        connectionHandle: ConnectionHandle,
        role: Role,
        peerAddress: PeerAddress,
        localResolvablePrivateAddress: DeviceAddress = DeviceAddress(0, isRandom: true),
        peerResolvablePrivateAddress: DeviceAddress = DeviceAddress(0, isRandom: true),
        connectionInterval: UInt16,
        peripheralLatency: UInt16,
        supervisionTimeout: UInt16,
        centralClockAccuracy: UInt8 = 0,
        advertisingHandle: UInt8 = 0xFF,
        syncHandle: UInt16 = 0xFFFF
    ) {
        self.status = status
        self.connectionHandle = connectionHandle
        self.role = role
        self.peerAddress = peerAddress
        self.localResolvablePrivateAddress = localResolvablePrivateAddress
        self.peerResolvablePrivateAddress = peerResolvablePrivateAddress
        self.connectionInterval = connectionInterval
        self.peripheralLatency = peripheralLatency
        self.supervisionTimeout = supervisionTimeout
        self.centralClockAccuracy = centralClockAccuracy
        self.advertisingHandle = advertisingHandle
        self.syncHandle = syncHandle
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = ErrorCode(rawValue: try reader.readUInt8())
        connectionHandle = try reader.readConnectionHandle()
        role = Role(rawValue: try reader.readUInt8())
        peerAddress = try PeerAddress(decoding: &reader)
        localResolvablePrivateAddress = DeviceAddress(try reader.readUInt48(), isRandom: true)
        peerResolvablePrivateAddress = DeviceAddress(try reader.readUInt48(), isRandom: true)
        connectionInterval = try reader.readUInt16()
        peripheralLatency = try reader.readUInt16()
        supervisionTimeout = try reader.readUInt16()
        centralClockAccuracy = try reader.readUInt8()
        advertisingHandle = try reader.readUInt8()
        syncHandle = try reader.readUInt16()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(connectionHandle.rawValue)
        buffer.append(role.rawValue)
        peerAddress.encode(into: &buffer)
        buffer.appendUInt48(localResolvablePrivateAddress.value)
        buffer.appendUInt48(peerResolvablePrivateAddress.value)
        buffer.append(connectionInterval)
        buffer.append(peripheralLatency)
        buffer.append(supervisionTimeout)
        buffer.append(centralClockAccuracy)
        buffer.append(advertisingHandle)
        buffer.append(syncHandle)
    }
}
