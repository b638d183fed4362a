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

    /// The number of the command's bit, counted from bit 0 of octet 0.
    static func position(of opcode: Opcode) -> Int? {
        for run in runs where run.opcodes.contains(opcode.rawValue) {
            return run.octet << 3 + run.bit + Int(opcode.rawValue - run.opcodes.lowerBound)
        }
        return nil
    }

    /// Opcodes that follow each other and whose bits do too, with the place of the first.
    private struct Run {
        let opcodes: ClosedRange<UInt16>
        let octet: Int
        let bit: Int

        init(_ opcodes: ClosedRange<UInt16>, _ octet: Int, _ bit: Int) {
            self.opcodes = opcodes
            self.octet = octet
            self.bit = bit
        }
    }

    /// Kept to the commands of this module and, where a run passes over them, their LE neighbours.
    private static let runs: [Run] = [
        Run(0x0406...0x0406, 0, 5),
        Run(0x041D...0x041D, 2, 7),
        Run(0x0C01...0x0C01, 5, 6),
        Run(0x0C03...0x0C03, 5, 7),
        Run(0x0C2D...0x0C2D, 10, 2),
        Run(0x0C31...0x0C31, 10, 5),
        Run(0x0C33...0x0C33, 10, 6),
        Run(0x0C35...0x0C35, 10, 7),
        Run(0x0C63...0x0C63, 22, 2),
        Run(0x0C6D...0x0C6D, 24, 6),
        Run(0x0C7B...0x0C7C, 32, 4),
        Run(0x1001...0x1001, 14, 3),
        Run(0x1003...0x1003, 14, 5),
        Run(0x1005...0x1005, 14, 7),
        Run(0x1009...0x1009, 15, 1),
        Run(0x1405...0x1405, 15, 5),
        Run(0x2001...0x2003, 25, 0),
        Run(0x2005...0x201F, 25, 4),
        Run(0x2020...0x205E, 33, 4),
        Run(0x205F...0x207B, 41, 4),
        Run(0x207C...0x207C, 45, 6),
        Run(0x207D...0x2086, 46, 0),
    ]
}
