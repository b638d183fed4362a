import BLEByteCoding

/// The code of an LE signaling command (Vol 3, Part A, 4, table 4.2).
public struct SignalingCode: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Rejects a command that the device cannot execute (4.1).
    public static let commandReject = SignalingCode(rawValue: 0x01)
    /// Ends a connection-oriented channel (4.6).
    public static let disconnectionRequest = SignalingCode(rawValue: 0x06)
    /// Confirms that a channel has ended (4.7).
    public static let disconnectionResponse = SignalingCode(rawValue: 0x07)
    /// The peripheral requests other connection parameters of the central (4.20).
    public static let connectionParameterUpdateRequest = SignalingCode(rawValue: 0x12)
    /// The central accepts or rejects the parameters (4.21).
    public static let connectionParameterUpdateResponse = SignalingCode(rawValue: 0x13)
    /// Requests one channel with LE credit-based flow control (4.22).
    public static let leCreditBasedConnectionRequest = SignalingCode(rawValue: 0x14)
    /// Opens or refuses that channel (4.23).
    public static let leCreditBasedConnectionResponse = SignalingCode(rawValue: 0x15)
    /// Grants credits for a credit-based channel of either variant (4.24). It has no response.
    public static let flowControlCredit = SignalingCode(rawValue: 0x16)
    /// Requests up to five channels with enhanced credit-based flow control (4.25).
    public static let creditBasedConnectionRequest = SignalingCode(rawValue: 0x17)
    /// Opens or refuses each of those channels (4.26).
    public static let creditBasedConnectionResponse = SignalingCode(rawValue: 0x18)
    /// Changes the MTU and MPS of channels of the enhanced variant (4.27).
    public static let creditBasedReconfigureRequest = SignalingCode(rawValue: 0x19)
    /// Accepts or refuses that change (4.28).
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

    /// Whether a device may have to answer a frame that begins with this byte.
    package static func isAnswered(_ byte: UInt8?) -> Bool {
        guard let byte else { return true }
        let code = SignalingCode(rawValue: byte)
        return !code.isResponse && code != .flowControlCredit
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
    /// The kind of the command, which determines the format of ``data``.
    public let code: SignalingCode
    /// Matches a response to its request; never zero.
    public let identifier: UInt8
    /// The bytes after the command's header, borrowed from the payload that was decoded.
    public let data: RawSpan

    /// Creates a command from its fields.
    ///
    /// - Parameters:
    ///   - code: the kind of the command.
    ///   - identifier: 1 to 255; it is not checked.
    ///   - data: the command's fields, at most 65,535 bytes.
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
        if identifier == 0 { throw .invalidValue(0, field: "signaling identifier") }
    }

    /// Appends the command's header and data.
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(code.rawValue)
        buffer.append(identifier)
        buffer.append(UInt16(truncatingIfNeeded: data.byteCount))
        buffer.append(data)
    }
}

/// The reason why a signaling command was not executed (Vol 3, Part A, 4.1).
public enum CommandReject: Equatable, Sendable {
    /// The device does not know the command, or the command is malformed.
    case commandNotUnderstood
    /// The C-frame is longer than the signaling MTU of the rejecting device, which is `actual`, in bytes.
    case signalingMTUExceeded(actual: UInt16)
    /// The command names a channel that does not exist. `local` is the endpoint on the device that sends the reject,
    /// `remote` the other endpoint.
    case invalidChannel(local: UInt16, remote: UInt16)

    /// Decodes the command's data, without the header.
    ///
    /// - Throws: `PacketDecodingError` if the reason is unknown or the length does not match it.
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
