import BLEByteCoding

/// The identifier of a command: the group in the upper 6 bits, the command in the lower 10 (Vol 4, Part E, 5.4.1).
public struct HCIOpcode: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16

    @inlinable
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// - Parameters:
    ///   - group: the Opcode Group Field, 6 bits.
    ///   - command: the Opcode Command Field, 10 bits.
    @inlinable
    public init(group: UInt8, command: UInt16) {
        rawValue = UInt16(group) << 10 | command & 0x03FF
    }

    /// Zero: Command Complete and Command Status with this opcode only return command credits.
    public static let none = HCIOpcode(rawValue: 0)

    /// The Opcode Group Field (OGF): the upper 6 bits.
    @inlinable
    public var group: UInt8 { UInt8(truncatingIfNeeded: rawValue >> 10) }

    /// The Opcode Command Field (OCF): the lower 10 bits.
    @inlinable
    public var command: UInt16 { rawValue & 0x03FF }
}

extension HCIOpcode: CustomStringConvertible {
    /// The command's name in the specification, or its number.
    public var description: String { name ?? "command 0x" + String(rawValue, radix: 16, uppercase: true) }
}

/// An HCI command: its parameters, its opcode, and its return parameters (Vol 4, Part E, 7).
///
/// Commands are both encoded and decoded, so that a software controller and a capture decoder can read the commands of
/// a host.
public protocol Command: Sendable {
    /// The return parameters in Command Complete, or ``NoReturnParameters`` if the controller answers with Command
    /// Status and another event.
    associatedtype ReturnParameters: BLEHCI.ReturnParameters

    /// The opcode, with which the command's packet begins.
    static var opcode: HCIOpcode { get }

    /// Decodes the parameters, which fill `parameters`.
    init(decoding parameters: RawSpan) throws(PacketDecodingError)

    /// Appends the parameters, without the command header.
    func encode(into buffer: inout PacketBuffer)
}

extension Command {
    /// Whether the controller answers with Command Status rather than Command Complete.
    public static var isAnsweredByStatus: Bool { ReturnParameters.self == NoReturnParameters.self }

    /// Appends the whole packet: the command header, then the parameters (Vol 4, Part E, 5.4.1).
    ///
    /// The parameters never exceed 255 bytes; each command ensures this when it is created.
    public func encodePacket(into buffer: inout PacketBuffer) {
        let start = buffer.count
        buffer.append(Self.opcode.rawValue)
        buffer.append(UInt8(0))
        encode(into: &buffer)
        buffer.overwrite(at: start + 2, with: UInt8(truncatingIfNeeded: buffer.count - start - 3))
    }
}

/// The return parameters of a command in Command Complete. They always begin with a status, an ``HCIErrorCode``.
///
/// A controller that fails a command may return the status alone, so nothing more is read if it is not success.
public protocol ReturnParameters: Sendable {
    /// Decodes the bytes after the status, which was success.
    init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError)

    /// Appends the bytes after the status.
    func encodeAfterStatus(into buffer: inout PacketBuffer)
}

/// Return parameters with only a status.
public struct StatusReturnParameters: ReturnParameters, Equatable {
    /// Creates return parameters without a value besides the status.
    public init() {}
    public init(decodingAfterStatus reader: inout ByteReader) {}
    public func encodeAfterStatus(into buffer: inout PacketBuffer) {}
}

/// Marks a command that is answered by Command Status, which has no return parameters.
public struct NoReturnParameters: ReturnParameters, Equatable {
    /// Creates a value, which has no content.
    public init() {}
    public init(decodingAfterStatus reader: inout ByteReader) {}
    public func encodeAfterStatus(into buffer: inout PacketBuffer) {}
}
