import Testing

@testable import BLEHarness

@Suite("A script")
struct ScriptTests {
    @Test func scriptHasTitleHostAndLines() throws {
        let script = try Script(
            parsing: """
                # What a comment says is not read.
                title A server tells its MTU
                spec Vol 3, Part F, 3.4.2
                host ble serve {here}/Server.json --adapter {adapter}
                needs pairing

                controller legacy packets 1 27
                  att> 02 u16(23)   # so does one at the end of a line
                att< 03 ?? ?? within 2s
                input notify #3 00
                """,
            path: "a/b.hci"
        )
        #expect(script.title == "A server tells its MTU")
        #expect(script.specification == "Vol 3, Part F, 3.4.2")
        #expect(script.host == ["ble", "serve", "{here}/Server.json", "--adapter", "{adapter}"])
        #expect(script.needs == ["pairing"])
        #expect(script.lines.map(\.number) == [7, 8, 9, 10])
        #expect(script.lines.map(\.file) == Array(repeating: "a/b.hci", count: 4))
        let request = Octets(items: [2, 0x17, 0].map { .octet($0, mask: 0xFF) })
        let response = Octets(items: [.octet(3, mask: 0xFF), .octet(0, mask: 0), .octet(0, mask: 0)])
        #expect(
            script.lines.map(\.statement) == [
                .controller(Controller(packetLength: 27, packetCount: 1)), .send(.channel(4), request),
                .expect(.channel(4), response, within: .seconds(2)), .input("notify #3 00"),
            ]
        )
    }

    @Test(
        arguments: [
            ("within 1.5s", .patience(.milliseconds(1500))), ("fragments 27", .fragments(27)),
            ("fragments whole", .fragments(nil)), ("completions off", .completions(false)),
            ("link 0x0041", .link(0x41)),
            ("send 04 10 00", .send(.packet, .of(4, 0x10, 0))),
            ("event> Hardware_Error 01", .send(.event(0x10, subevent: nil), .of(1))),
            ("event> LE_Advertising_Report 00", .send(.event(0x3E, subevent: 2), .of(0))),
            ("event> 0x99", .send(.event(0x99, subevent: nil), .of())),
            ("acl> start 01", .send(.acl(boundary: 2), .of(1))),
            ("acl> continue 01", .send(.acl(boundary: 1), .of(1))), ("acl> 3", .send(.acl(boundary: 3), .of())),
            ("sig> 01", .send(.channel(5), .of(1))), ("smp> 01", .send(.channel(6), .of(1))),
            ("l2cap> 0x0040 01", .send(.channel(0x40), .of(1))),
            ("expect 01 03 0C 00", .expect(.packet, .of(1, 3, 0xC, 0), within: nil)),
            ("command< Reset", .expect(.command(0x0C03), .of(), within: nil)),
            ("command< 0x0C03 within 300ms", .expect(.command(0x0C03), .of(), within: .milliseconds(300))),
            ("await LE_Set_Scan_Enable 01 00", .await(0x200C, .of(1, 0), within: nil)), ("reply 00", .reply(.of(0))),
            ("status 0C", .status(0x0C)), ("completed 2", .completed(2)), ("connect", .connect(Connection())),
            (
                "connect central F1:02:03:04:05:06 public",
                .connect(Connection(role: .central, peer: [6, 5, 4, 3, 2, 0xF1], isPeerRandom: false))
            ), ("disconnect", .disconnect(reason: 0x13)), ("disconnect 08", .disconnect(reason: 8)),
            ("nothing 1s", .nothing(.seconds(1))),
            ("pause 10ms", .pause(.milliseconds(10))), ("close", .close), ("accept", .accept), ("input", .input("")),
            ("output \"event\":\"ready\"", .output("\"event\":\"ready\"")), ("errors # no", .errors("# no")),
            ("exit 1", .exit(1)),
            ("define a_1 = 01", .define("a_1", .of(1))),
            (
                "on att 02 ?? ?? reply 03 17 00",
                .rule(
                    Rule(
                        source: .channel(4),
                        pattern: Octets(items: [.octet(2, mask: 0xFF), .octet(0, mask: 0), .octet(0, mask: 0)]),
                        action: .reply(.of(3, 0x17, 0)),
                        isOnce: false
                    )
                )
            ),
            (
                "once command Reset status 0C",
                .rule(
                    Rule(
                        source: .command(0x0C03),
                        pattern: Octets(items: [.rest(nil)]),
                        action: .status(0x0C),
                        isOnce: true
                    )
                )
            ),
        ] as [(String, Statement)]
    )
    func statementOfEachKindIsParsed(text: String, statement: Statement) throws {
        #expect(try Statement(parsing: text[...]) == statement)
    }

    @Test(
        arguments: [
            ("jump 3", "\"jump\" is not known"), ("att> 02 ??", "no wildcards"), ("att< 0", "pairs"),
            ("att< 02 within soon", "no time"), ("within -1s", "no time"),
            ("controller", "legacy or extended is missing"),
            ("controller old", "use legacy or extended"), ("controller legacy colour", "address or packets"),
            ("command< Riset", "no command"), ("command< 0x10000", "no command"), ("event> Boom", "no event"),
            ("event> 0x100", "no event"), ("acl> middle 00", "no boundary flag"), ("l2cap> 0x10000", "up to 65535"),
            ("fragments 0", "one byte or more"), ("completions maybe", "on nor off"), ("status 0", "pairs"),
            ("status", "one byte"), ("status 01 02", "one byte"), ("close 1", "does not take \"1\""),
            ("connect sideways", "no address"), ("define a 01", "define NAME = BYTES"), ("define 1 = 01", "no name"),
            ("on att 02", "reply BYTES"), ("on att 02 status 01", "only a command"),
            ("on fire 02 ignore", "no channel"),
            ("output", "needs a text"), ("exit soon", "up to 255"), ("link 0x0F00", "up to 3839"),
            ("reply $x=??", "no wildcards"),
        ]
    )
    func invalidScriptIsRefusedWithItsLine(line: String, words: String) {
        let error = #expect(throws: ScriptError.self) { try Script(parsing: "title t\n\n\(line)\n", path: "x.hci") }
        #expect(error?.line == 3)
        #expect(error?.description.hasPrefix("x.hci:3: ") == true)
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    }

    @Test func scriptIncludesOthersFromItsFolderButNotItself() throws {
        let folder = try TemporaryFolder()
        try write("controller legacy\n", to: folder.path + "/begin.hci")
        try write("include begin.hci\natt> 0A\n", to: folder.path + "/main.hci")
        let script = try Script(contentsOf: folder.path + "/main.hci")
        #expect(
            script.lines.map { "\($0.file):\($0.number)" } == [
                "\(folder.path)/begin.hci:1", "\(folder.path)/main.hci:2",
            ]
        )
        try write("include loop.hci\n", to: folder.path + "/loop.hci")
        let error = #expect(throws: ScriptError.self) { try Script(contentsOf: folder.path + "/loop.hci") }
        #expect(error?.message == "scripts include each other without end")
        let missing = #expect(throws: ScriptError.self) { try Script(contentsOf: folder.path + "/nothing.hci") }
        #expect(missing?.message.contains("cannot be read") == true)
    }
}

extension Octets {
    fileprivate static func of(_ octets: UInt8...) -> Octets {
        Octets(items: octets.map { .octet($0, mask: 0xFF) })
    }
}
