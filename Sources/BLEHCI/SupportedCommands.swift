import BLEByteCoding

/// The commands that a controller supports: one bit for each in 64 bytes (Vol 4, Part E, 6.27).
public struct SupportedCommands: Sendable, Equatable {
    /// The length in bytes.
    public static let length = 64

    /// Inline, so that a copy allocates nothing and retains nothing.
    private var octets = InlineArray<64, UInt8>(repeating: 0)

    /// Creates an empty set.
    public init() {}

    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        let bytes = try reader.readBytes(count: Self.length)
        for index in octets.indices { octets[index] = bytes[checked: index] ?? 0 }
    }

    func encode(into buffer: inout PacketBuffer) {
        for index in octets.indices { buffer.append(octets[index]) }
    }

    public static func == (left: Self, right: Self) -> Bool {
        left.octets.indices.allSatisfy { left.octets[$0] == right.octets[$0] }
    }

    /// Whether a bit is set; false outside the ranges.
    ///
    /// - Parameters:
    ///   - octet: the octet in the table of 6.27, 0 to 63.
    ///   - bit: the bit in the octet, 0 to 7.
    public func contains(octet: Int, bit: Int) -> Bool {
        guard octets.indices.contains(octet), (0..<8).contains(bit) else { return false }
        return octets[octet] >> UInt8(bit) & 1 == 1
    }

    /// Whether the controller supports the command; false for a command without a bit, such as Read Local Supported
    /// Commands.
    public func contains(_ opcode: HCIOpcode) -> Bool {
        guard let position = Self.position(of: opcode) else { return false }
        return contains(octet: position >> 3, bit: position & 7)
    }

    /// Whether the controller supports the command.
    public func contains<C: Command>(_ command: C.Type) -> Bool {
        contains(C.opcode)
    }

    /// Sets the command's bit. The call has no effect for a command without a bit.
    public mutating func insert(_ opcode: HCIOpcode) {
        guard let position = Self.position(of: opcode) else { return }
        octets[position >> 3] |= 1 << UInt8(position & 7)
    }

    /// Sets the command's bit.
    public mutating func insert<C: Command>(_ command: C.Type) {
        insert(C.opcode)
    }
}
