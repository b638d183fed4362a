/// The automatic answers of a controller, so that a script has only the packets of its test case.
///
/// A command that is not listed is answered as an unknown command.
struct Controller: Equatable, Sendable {
    /// Whether the controller has the commands of extended advertising, which came with version 5.0.
    var isExtended = false
    /// The public address, least significant byte first.
    var address: [UInt8] = [0x01, 0x53, 0x00, 0x5E, 0x00, 0x00]
    /// The maximum data length of an ACL packet in bytes, and the number of packet buffers.
    var packetLength: UInt16 = 251
    var packetCount: UInt8 = 8

    /// An answer to a command.
    enum Answer: Equatable {
        /// Command Complete with these return parameters.
        case complete([UInt8])
        /// Command Status.
        case status(UInt8)
    }

    private static let success: UInt8 = 0x00
    private static let unknownCommand: UInt8 = 0x01
    private static let featuresOfLE: [UInt8] = [0x00, 0x00, 0x00, 0x00, 0x60, 0x00, 0x00, 0x00]

    /// LE Encryption and Peripheral-initiated Features Exchange; also LE Extended Advertising if the controller is
    /// extended.
    private var features: [UInt8] { [0x09, isExtended ? 0x10 : 0x00, 0, 0, 0, 0, 0, 0] }

    func answer(to opcode: UInt16, _ parameters: [UInt8]) -> Answer {
        guard knows(opcode) else { return .status(Controller.unknownCommand) }
        return switch opcode {
        case 0x0406, 0x041D, 0x200D, 0x2013, 0x2016, 0x2019, 0x2043: .status(Controller.success)
        default: .complete([Controller.success] + values(of: opcode, parameters))
        }
    }

    /// The return parameters after the status.
    private func values(of opcode: UInt16, _ parameters: [UInt8]) -> [UInt8] {
        switch opcode {
        case 0x1001: version
        case 0x1002: supportedCommands
        case 0x1003: Controller.featuresOfLE
        case 0x1005: [UInt8](number: packetLength) + [0x00] + [UInt8](number: UInt16(packetCount)) + [0x00, 0x00]
        case 0x1009: address
        case 0x1405: parameters.prefix(2) + [0xC4]
        case 0x2002: [UInt8](number: packetLength) + [packetCount]
        case 0x2003: features
        case 0x2007: [0x00]
        case 0x200F: [0x08]
        case 0x2018: [0x53, 0x77, 0x69, 0x66, 0x74, 0x42, 0x4C, 0x45]
        case 0x201A, 0x201B: Array(parameters.prefix(2))
        case 0x201C: [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x03, 0x00, 0x00]
        case 0x2036: [0x00]
        case 0x203A: [UInt8](number: 251)
        case 0x203B: [0x04]
        default: []
        }
    }

    /// Version 4.2 or 5.0, with the company identifier for tests.
    private var version: [UInt8] {
        let number: UInt8 = isExtended ? 0x09 : 0x08
        return [number, 0x00, 0x00, number, 0xFF, 0xFF, 0x00, 0x00]
    }

    private func knows(_ opcode: UInt16) -> Bool {
        Controller.commands.contains(opcode) || isExtended && Controller.extendedCommands.contains(opcode)
    }

    private static let commands: Set<UInt16> = [
        0x0406, 0x041D, 0x0C01, 0x0C03, 0x1001, 0x1002, 0x1003, 0x1005, 0x1009, 0x1405, 0x2001, 0x2002, 0x2003, 0x2005,
        0x2006, 0x2007, 0x2008, 0x2009, 0x200A, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2010, 0x2011, 0x2012, 0x2013,
        0x2016, 0x2018, 0x2019, 0x201A, 0x201B, 0x201C,
    ]
    private static let extendedCommands: Set<UInt16> = [
        0x2035, 0x2036, 0x2037, 0x2038, 0x2039, 0x203A, 0x203B, 0x203C, 0x203D, 0x2041, 0x2042, 0x2043,
    ]

    /// One bit for each supported command (Vol 4, Part E, 6.27).
    private var supportedCommands: [UInt8] {
        var octets = [UInt8](repeating: 0, count: 64)
        for opcode in Controller.commands.union(isExtended ? Controller.extendedCommands : []) {
            guard let position = Controller.bit(of: opcode) else { continue }
            octets[position / 8] |= 1 << UInt8(position % 8)
        }
        return octets
    }

    /// The number of a command's bit; nil for a command without a bit, such as Read Local Supported Commands.
    private static func bit(of opcode: UInt16) -> Int? {
        switch opcode {
        case 0x0406: 0 * 8 + 5
        case 0x041D: 2 * 8 + 7
        case 0x0C01: 5 * 8 + 6
        case 0x0C03: 5 * 8 + 7
        case 0x1001: 14 * 8 + 3
        case 0x1003: 14 * 8 + 5
        case 0x1005: 14 * 8 + 7
        case 0x1009: 15 * 8 + 1
        case 0x1405: 15 * 8 + 5
        // The bits of the LE commands are consecutive, with a gap after the third.
        case 0x2001...0x2003: 25 * 8 + Int(opcode - 0x2001)
        case 0x2005...0x201F: 25 * 8 + 4 + Int(opcode - 0x2005)
        case 0x2020...0x205E: 33 * 8 + 4 + Int(opcode - 0x2020)
        default: nil
        }
    }
}

extension Controller {
    /// Reads `legacy` or `extended`, then optional `address A` and `packets COUNT LENGTH`.
    init(parsing words: inout ArraySlice<String>) throws(Complaint) {
        switch try words.next("legacy or extended") {
        case "legacy": isExtended = false
        case "extended": isExtended = true
        case let other: throw Complaint("\"\(other)\" is no controller; use legacy or extended")
        }
        while let word = words.popFirst() {
            switch word {
            case "address": address = try Octets.address(words.next("an address"))
            case "packets":
                packetCount = UInt8(try UInt16(number: words.next("a number of packets"), upTo: 255))
                packetLength = try UInt16(number: words.next("a length"), upTo: 0xFFFF)
            default: throw Complaint("\"\(word)\" is nothing that a controller has; use address or packets")
            }
        }
    }
}
