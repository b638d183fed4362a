import BluetoothTypes
import ByteCoding

/// Scanning has ended because its duration is over (Vol 4, Part E, 7.7.65.17).
public struct LEScanTimeout: LEEventParameters, Sendable, Equatable {
    public static let subeventCode: UInt8 = 0x11

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}
}

/// An advertising set has stopped (Vol 4, Part E, 7.7.65.18).
public struct LEAdvertisingSetTerminated: LEEventParameters, Sendable, Equatable {
    public static let subeventCode: UInt8 = 0x12

    /// Success when a connection was made.
    public var status: ErrorCode
    /// 0x00 to 0xEF.
    public var advertisingHandle: UInt8
    /// Of use only when the status is success.
    public var connectionHandle: ConnectionHandle
    public var numCompletedExtendedAdvertisingEvents: UInt8

    public init(
        status: ErrorCode = .success,
        advertisingHandle: UInt8,
        connectionHandle: ConnectionHandle,
        numCompletedExtendedAdvertisingEvents: UInt8 = 0
    ) {
        self.status = status
        self.advertisingHandle = advertisingHandle
        self.connectionHandle = connectionHandle
        self.numCompletedExtendedAdvertisingEvents = numCompletedExtendedAdvertisingEvents
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = ErrorCode(rawValue: try reader.readUInt8())
        advertisingHandle = try reader.readUInt8()
        connectionHandle = try reader.readConnectionHandle()
        numCompletedExtendedAdvertisingEvents = try reader.readUInt8()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(advertisingHandle)
        buffer.append(connectionHandle.rawValue)
        buffer.append(numCompletedExtendedAdvertisingEvents)
    }
}

/// A scanner has asked an advertising set for its scan response (Vol 4, Part E, 7.7.65.19).
public struct LEScanRequestReceived: LEEventParameters, Sendable, Equatable {
    public static let subeventCode: UInt8 = 0x13

    /// 0x00 to 0xEF.
    public var advertisingHandle: UInt8
    public var scannerAddress: PeerAddress

    public init(advertisingHandle: UInt8, scannerAddress: PeerAddress) {
        self.advertisingHandle = advertisingHandle
        self.scannerAddress = scannerAddress
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        advertisingHandle = try reader.readUInt8()
        scannerAddress = try PeerAddress(decoding: &reader)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(advertisingHandle)
        scannerAddress.encode(into: &buffer)
    }
}
