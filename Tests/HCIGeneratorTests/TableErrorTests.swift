import Testing

@testable import hci_generator

@Suite("A table with an error")
struct TableErrorTests {
    static let types = "type Role u8 open @role /// The role.\n"

    /// A table and its errors, each with its line.
    static let cases: [(String, [String])] = [
        (
            "event 11 Flush Occurred (7.7.11)\n  /// Data was discarded.\n  Handle:u7",
            ["3: unknown type 'u7'"]
        ),
        (
            "event 11 Flush Occurred (7.7.11)\n  /// Data was discarded.\n  Handle:u16*5min",
            ["3: unknown type 'u16*5min'"]
        ),
        (
            "event 11 Flush Occurred (7.7.11)\n  /// Data was discarded.\n  Handle",
            ["3: expected 'Name(swiftName):type/layout! = default /// documentation'"]
        ),
        (
            "event 11 Flush Occurred (7.7.11)\n  /// Data was discarded.\n  A_B:u8 /// One.\n  A_B:u16 /// Two.",
            ["4: a second field 'aB'"]
        ),
        (
            "event 11 Flush Occurred (7.7.11)\n  /// Data was discarded.\n  A:u8 /// 1 to 2",
            ["3: the documentation does not end with a period"]
        ),
        (
            "event 11 Flush Occurred (7.7.11)\n  /// Data was discarded.\n  A:u8\n  B:u16*1s\n  C:Role",
            ["3: 'A' has no documentation, and neither has its type"]
        ),
        (
            "event 11 Flush Occurred (7.7.11)\n  /// Data was discarded",
            ["2: the sentence does not end with a period"]
        ),
        (
            "event 11 Flush Occurred\n  /// Data was discarded.\n  A:u8 = 1",
            ["2: 'Flush Occurred' has no section"]
        ),
        (
            "event 11 Flush Occurred (7.7.11, by hand)\n  /// Data was discarded.",
            ["2: a type by hand has its documentation in Swift"]
        ),
        (
            "event 11 Flush Occurred (7.7.11)\n  A:u8\n  /// Data was discarded.",
            ["3: the sentence about a type is one line, the first of its entry"]
        ),
        ("event 11 Flush Occurred\n  Handle", ["2: 'Handle' is not a word of a layout, such as Name:type"]),
        ("event 11 Flush Occurred\n  A:u8\n  none", ["3: 'none' stands alone, in an entry without a generated type"]),
        ("event 11 Flush Occurred\n  none\n  A:u8", ["3: parameters after 'none'"]),
        ("  A:u8", ["1: a line of an entry before the first entry"]),
        ("# A comment.\n\nevent 011 Flush Occurred", ["3: expected 'command 0C03 Name (…)', 'event 0E Name'"]),
        ("command C03 Reset\n  none", ["1: expected 'command 0C03 Name (…)', 'event 0E Name'"]),
        ("packet 0C03 Reset", ["1: expected 'command 0C03 Name (…)', 'event 0E Name'"]),
        ("command 0C03 Reset (7.3.2, fast)", ["1: unknown attribute 'fast'"]),
        ("event 11 Flush Occurred (bit 5.7)", ["1: unknown attribute 'bit 5.7'"]),
        ("event 11 Flush Occurred (answered by status)", ["1: unknown attribute 'answered by status'"]),
        ("command 0C03 Reset (bit 64.0)", ["1: 'bit 64.0' is not a byte, 0 to 63, and a bit, 0 to 7"]),
        ("command 0C03 Reset (bit 5.8)", ["1: 'bit 5.8' is not a byte, 0 to 63, and a bit, 0 to 7"]),
        ("command 0C03 Reset (bit 5)", ["1: 'bit 5' is not a byte, 0 to 63, and a bit, 0 to 7"]),
        (
            "command 0C01 Set Event Mask (bit 5.7)\ncommand 0C03 Reset (bit 5.7)",
            ["2: a second command with bit 5.7"]
        ),
        ("command 0C03 Reset\n  returns\n  A:u8", ["2: 'returns' without parameters before it"]),
        (
            "event 11 Flush Occurred\n  none\n  returns\n  A:u8",
            ["3: only a command returns parameters"]
        ),
        (
            "command 0C03 Reset (7.3.2, answered by status)\n  /// Resets.\n  returns\n  A:u8",
            ["3: only a command returns parameters, and not one that is answered by status"]
        ),
        ("command 0C03 Reset (7.3.2)\n  /// Resets.\n  returns", ["1: 'returns' of 'Reset' has no fields"]),
        ("command 0C03 Reset\ncommand 0C03 Reset Again", ["2: a second command 0x0C03"]),
        (
            "command 0C03 Reset\ncommand 0C01 Set Event Mask",
            ["2: command 0x0C01 after command 0x0C03: entries are in ascending order"]
        ),
        (
            "event 11 Flush Occurred\ncommand 0C03 Reset",
            ["2: command 0x0C03 after event 0x11: entries are in ascending order"]
        ),
        (
            "command 0C03 Reset (by hand)\nevent 11 RESET (by hand)\nevent 12 Reset (by hand)",
            ["3: a second type 'Reset'"]
        ),
    ]

    @Test(arguments: cases)
    func tableWithAnErrorIsRejectedWithTheLine(table: String, messages: [String]) throws {
        let errors = try #require(throws: TableErrors.self) { try Tables(["A.hci": table, "Types.hci": Self.types]) }
        #expect(errors.errors.count == messages.count, "\(errors)")
        for (error, message) in zip(errors.errors, messages) {
            let description = error.description.replacing(": error: ", with: ": ")
            #expect(description.hasPrefix("Sources/BLEHCI/Tables/A.hci:" + message))
        }
    }

    @Test func errorsAreInTheFormOfEditorsAndInTheOrderOfLines() throws {
        let errors = try #require(throws: TableErrors.self) {
            try Tables(["B.hci": "command 0C03 Reset\npacket", "A.hci": "command 0C03 Reset (quick)\n  none"])
        }
        #expect(
            errors.description == """
                Sources/BLEHCI/Tables/A.hci:1: error: unknown attribute 'quick'
                Sources/BLEHCI/Tables/B.hci:2: error: expected 'command 0C03 Name (…)', 'event 0E Name' or 'subevent 01 Name'
                """
        )
    }

    @Test func malformedOrRepeatedValueTypeIsRejected() throws {
        let types = """
            # Types.
            type Role u8 open @role
            type PHY u8 half @phy
            type Role coded x8
            type PHY u8 open @phy /// A PHY

            """
        let errors = try #require(throws: TableErrors.self) { try Tables(["Types.hci": types]) }
        #expect(errors.errors.map(\.location.line) == [3, 4, 5])
        #expect(errors.errors[1].message == "a second type 'Role'")
    }

    @Test func codeThatAnotherTableHasIsRejected() throws {
        let errors = try #require(throws: TableErrors.self) {
            try Tables(["A.hci": "command 0C03 Reset", "B.hci": "command 0C03 Reset"])
        }
        #expect(errors.errors == [TableError("a second command 0x0C03", at: Location(file: "B.hci", line: 1))])
    }
}
