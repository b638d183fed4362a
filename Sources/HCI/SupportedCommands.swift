import ByteCoding

/// Which commands a controller knows: one bit for each in 64 octets (Vol 4, Part E, 6.27).
public struct SupportedCommands: Sendable, Equatable {
    /// In octets.
    public static let length = 64

    private var octets: [UInt8]

    /// None.
    public init() {
        octets = [UInt8](repeating: 0, count: Self.length)
    }

    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        octets = [UInt8](copying: try reader.readBytes(count: Self.length))
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(octets)
    }

    /// Whether the bit is set that the table of 6.27 gives as an octet, 0 to 63, and a bit in it, 0 to 7; false outside
    /// those ranges.
    public func contains(octet: Int, bit: Int) -> Bool {
        guard octets.indices.contains(octet), (0..<8).contains(bit) else { return false }
        return octets[octet] >> UInt8(bit) & 1 == 1
    }

    /// Whether the command is known to the controller; false for a command that has no bit, as that which reads these.
    public func contains(_ opcode: Opcode) -> Bool {
        guard let position = Self.position(of: opcode) else { return false }
        return contains(octet: position >> 3, bit: position & 7)
    }

    /// Whether the command is known to the controller.
    public func contains<C: Command>(_ command: C.Type) -> Bool {
        contains(C.opcode)
    }

    /// Sets the command's bit. Nothing happens for a command that has none.
    public mutating func insert(_ opcode: Opcode) {
        guard let position = Self.position(of: opcode) else { return }
        octets[position >> 3] |= 1 << UInt8(position & 7)
    }

    /// Sets the command's bit.
    public mutating func insert<C: Command>(_ command: C.Type) {
        insert(C.opcode)
    }
}
