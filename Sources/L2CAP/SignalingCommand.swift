import ByteCoding

/// The code of an LE signaling command (Vol 3, Part A, 4, table 4.2).
public struct SignalingCode: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let commandReject = SignalingCode(rawValue: 0x01)
    public static let disconnectionRequest = SignalingCode(rawValue: 0x06)
    public static let disconnectionResponse = SignalingCode(rawValue: 0x07)
    public static let connectionParameterUpdateRequest = SignalingCode(rawValue: 0x12)
    public static let connectionParameterUpdateResponse = SignalingCode(rawValue: 0x13)
    public static let leCreditBasedConnectionRequest = SignalingCode(rawValue: 0x14)
    public static let leCreditBasedConnectionResponse = SignalingCode(rawValue: 0x15)
    public static let flowControlCredit = SignalingCode(rawValue: 0x16)
    public static let creditBasedConnectionRequest = SignalingCode(rawValue: 0x17)
    public static let creditBasedConnectionResponse = SignalingCode(rawValue: 0x18)
    public static let creditBasedReconfigureRequest = SignalingCode(rawValue: 0x19)
    public static let creditBasedReconfigureResponse = SignalingCode(rawValue: 0x1A)

    /// Whether a command with this code is a response, which is never answered itself.
    public var isResponse: Bool {
        switch self {
        case .commandReject, .disconnectionResponse, .connectionParameterUpdateResponse,
            .leCreditBasedConnectionResponse, .creditBasedConnectionResponse, .creditBasedReconfigureResponse:
            true
        default: false
        }
    }

    /// Appends the header of a command with `length` bytes of data.
    func encodeHeader(identifier: UInt8, length: Int, into buffer: inout PacketBuffer) {
        buffer.append(rawValue)
        buffer.append(identifier)
        buffer.append(UInt16(truncatingIfNeeded: length))
    }
}

/// The command of an LE C-frame: code, identifier, length, data (Vol 3, Part A, 4).
public struct SignalingCommand: ~Escapable {
    public let code: SignalingCode
    /// Matches a response to its request; never zero.
    public let identifier: UInt8
    public let data: RawSpan

    @_lifetime(copy data)
    public init(code: SignalingCode, identifier: UInt8, data: RawSpan) {
        self.code = code
        self.identifier = identifier
        self.data = data
    }

    /// Decodes a C-frame's payload.
    @_lifetime(copy payload)
    public init(decoding payload: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(payload)
        code = SignalingCode(rawValue: try reader.readUInt8())
        identifier = try reader.readUInt8()
        let length = try reader.readUInt16()
        data = try reader.readBytes(count: Int(length))
        try reader.requireEnd()
        if identifier == 0 { throw .invalidValue(0, field: "signalling identifier") }
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(code.rawValue)
        buffer.append(identifier)
        buffer.append(UInt16(truncatingIfNeeded: data.byteCount))
        buffer.append(data)
    }
}

/// The reason why a signaling command was not executed (Vol 3, Part A, 4.1).
public enum CommandReject: Equatable, Sendable {
    case commandNotUnderstood
    case signalingMTUExceeded(actual: UInt16)
    case invalidChannel(local: UInt16, remote: UInt16)

    public init(decoding data: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(data)
        let reason = try reader.readUInt16()
        switch reason {
        case 0: self = .commandNotUnderstood
        case 1: self = .signalingMTUExceeded(actual: try reader.readUInt16())
        case 2: self = .invalidChannel(local: try reader.readUInt16(), remote: try reader.readUInt16())
        default: throw .invalidValue(UInt64(reason), field: "Command Reject reason")
        }
        try reader.requireEnd()
    }

    /// Appends the whole command.
    public func encode(identifier: UInt8, into buffer: inout PacketBuffer) {
        buffer.append(SignalingCode.commandReject.rawValue)
        buffer.append(identifier)
        switch self {
        case .commandNotUnderstood:
            buffer.append(UInt16(2))
            buffer.append(UInt16(0))
        case .signalingMTUExceeded(let actual):
            buffer.append(UInt16(4))
            buffer.append(UInt16(1))
            buffer.append(actual)
        case .invalidChannel(let local, let remote):
            buffer.append(UInt16(6))
            buffer.append(UInt16(2))
            buffer.append(local)
            buffer.append(remote)
        }
    }
}
