import Testing

@testable import hci_generator

@Suite("The documentation of a generated type")
struct DocumentationTests {
    static let types = """
        type ChannelMap coded x40
        type DataFragment coded ad8
        type LegacyData coded ad8of31
        type Role u8 open @role /// The role of the controller.
        type SupportedCommands coded bytes64
        """

    /// A field and the documentation of its property.
    static let fields: [(String, String)] = [
        ("Connection_Handle:handle!", "`Connection_Handle`: the connection, 0x0000 to 0x0EFF."),
        ("Connection_Handle:handle! /// The new connection.", "`Connection_Handle`: the new connection."),
        ("Min_CE_Length:u16*625us", "`Min_CE_Length`, in units of 0.625 ms."),
        ("Interval_Min:u16*1250us /// 0x0006 to 0x0C80.", "`Interval_Min`, in units of 1.25 ms, 0x0006 to 0x0C80."),
        ("Max_CE_Length:u16*625us /// At least `min`.", "`Max_CE_Length`, in units of 0.625 ms, at least `min`."),
        ("RSSI:i8dBm /// ; 127 if it is not available.", "`RSSI`, in dBm; 127 if it is not available."),
        ("Max_TX_Octets:u16 /// In bytes, 27 to 251.", "`Max_TX_Octets`, in bytes, 27 to 251."),
        ("Role:Role", "`Role`: the role of the controller."),
        ("Role:Role /// The role of the peer.", "`Role`: the role of the peer."),
        ("LE_States:x64 /// LE states, one bit for each.", "`LE_States`: LE states, one bit for each."),
        ("Peer_Address:typedAddress /// The peer.", "`Peer_Address_Type` and `Peer_Address`: the peer."),
        ("Address:PeerAddress /// ``PeerAddress/a``.", "`Address_Type` and `Address`: ``PeerAddress/a``."),
        ("Random_Address:randomAddress /// Encoded alone.", "`Random_Address`: encoded alone."),
    ]

    @Test(arguments: fields)
    func propertyIsDocumentedByItsNameUnitAndNote(field: String, documentation: String) throws {
        let text = try Self.text("event 11 Flush Occurred (7.7.11)\n  /// Data was discarded.\n  \(field)")
        #expect(text.contains("\n    /// \(documentation)\n    public var "))
    }

    /// Fields and the length of the parameters.
    static let lengths: [([String], String?)] = [
        (["A:u8 /// A."], "1 byte"),
        (["A:u24 /// A.", "B:u32 /// B.", "C:i8dBm"], "8 bytes"),
        (["A:u64 /// A.", "B:u128 /// B."], "24 bytes"),
        (["A:handle", "B:flag /// B.", "C:Role"], "4 bytes"),
        (["A:randomAddress /// A.", "B:typedAddress /// B.", "C:PeerAddress /// C."], "20 bytes"),
        (["A:ChannelMap /// A.", "B:LegacyData /// B."], "37 bytes"),
        (["A:SupportedCommands /// A."], "64 bytes"),
        (["A:u8 /// A.", "B:DataFragment /// B."], nil),
    ]

    @Test(arguments: lengths)
    func codingIsDocumentedByTheLengthOfTheParameters(fields: [String], length: String?) throws {
        let lines = fields.map { "\n  " + $0 }.joined()
        let text = try Self.text("command 0C01 Test (7.3.1)\n  /// Tests.\(lines)\n  returns\(lines)")
        let whole = length.map { "which are \($0) long" }
        #expect(text.contains("/// Decodes the parameters, \(whole ?? "which fill `parameters`").\n"))
        #expect(
            text.contains("/// Appends the parameters, \(whole.map { $0 + ", " } ?? "")without the command header.\n")
        )
        #expect(text.contains("/// Decodes the \(length ?? "parameters") after the status, which was success.\n"))
        #expect(text.contains("/// Appends the \(length ?? "parameters") after the status.\n"))
    }

    @Test func opcodeIsDocumentedByItsValueAndItsBit() throws {
        let withBit = try Self.text("command 0C03 Reset (7.3.2, bit 5.7)\n  /// Resets.")
        #expect(withBit.contains("/// The opcode of Reset, 0x0C03, at byte 5, bit 7 of ``SupportedCommands``.\n"))
        let withoutBit = try Self.text("command 1002 Read Local Supported Commands (7.4.2)\n  /// Reads.")
        #expect(withoutBit.contains("/// The opcode of Read Local Supported Commands, 0x1002.\n"))
    }

    @Test func everyPublicDeclarationIsDocumented() throws {
        let tables = try Tables([
            "A.hci": """
            command 0406 Disconnect (7.1.6, answered by status)
              /// Ends a connection.
              Connection_Handle:handle
            command 0C03 Reset (7.3.2, bit 5.7)
              /// Resets.
            command 1405 Read RSSI (7.5.4)
              /// Reads the signal strength.
              Connection_Handle:handle
              returns
              RSSI:i8dBm
            event 05 Disconnection Complete (7.7.5)
              /// Reports the end of a connection.
              Connection_Handle:handle
            event 0E Command Complete (by hand)
            subevent 11 LE Scan Timeout (7.7.65.17)
              /// Reports that scanning ended.
            """
        ])
        for text in [try #require(PacketTypes.file(tables.tables[0])), EventEnumeration.file(tables)] {
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { $0.drop { $0 == " " } }
            for (before, line) in zip(lines, lines.dropFirst()) {
                let isCase = line.hasPrefix("case ") && !line.hasSuffix(":") && !line.contains(": event.encode")
                guard line.hasPrefix("public ") || isCase else { continue }
                #expect(before.hasPrefix("/// "), "\(line)")
            }
        }
    }

    /// The Swift of one entry.
    private static func text(_ entry: String) throws -> String {
        try #require(PacketTypes.file(try Tables(["A.hci": entry, "Types.hci": types]).tables[0]))
    }
}
