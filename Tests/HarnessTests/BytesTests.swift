import Testing

@testable import BLEHarness

@Suite("Bytes in a script")
struct BytesTests {
    private func octets(_ text: String, _ variables: [String: [UInt8]] = [:]) throws -> [UInt8] {
        try Octets(parsing: LineWords(text[...]).words[...]).filled(variables)
    }

    @Test(
        arguments: [
            ("02 17 00", [0x02, 0x17, 0x00]), ("021700", [0x02, 0x17, 0x00]), ("00*3 fF", [0, 0, 0, 0xFF]),
            ("0102*2", [1, 2, 1, 2]), ("u8(255) u16(0x0203) u24(1)", [255, 3, 2, 1, 0, 0]),
            ("u32(258) u64(1)", [2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]), ("\"a b\"", [0x61, 0x20, 0x62]),
            ("address(F0:12:34:56:78:9A)", [0x9A, 0x78, 0x56, 0x34, 0x12, 0xF0]), ("uuid(180F)", [0x0F, 0x18]),
            (
                "uuid(00010203-0405-0607-0809-0A0B0C0D0E0F)",
                [0x0F, 0x0E, 0x0D, 0x0C, 0x0B, 0x0A, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
            ), ("01 # 02", [0x01]), ("\"#\" 02", [0x23, 0x02]), ("", []),
        ] as [(String, [UInt8])]
    )
    func validBytesAreParsed(text: String, expected: [UInt8]) throws {
        #expect(try octets(text) == expected)
    }

    @Test func namesStandForTheirValues() throws {
        #expect(try octets("01 $a 02 $a", ["a": [7, 8]]) == [1, 7, 8, 2, 7, 8])
        #expect(throws: Complaint("$b has no value yet")) { try octets("$b", ["a": [1]]) }
    }

    @Test(
        arguments: [
            ("1", "pairs"), ("0g", "pairs"), ("u16(65536)", "16 bits"), ("u16()", "16 bits"), ("u12(1)", "not known"),
            ("address(F0:12)", "no address"), ("uuid(18)", "no UUID"), ("uuid(18?F)", "no UUID"),
            ("00*0", "repetitions"),
            ("00*70000", "repetitions"), ("0102*65535", "too long"), ("* 00", "nothing can follow"), ("$", "no name"),
            ("$a=01", "takes ??"), ("$a b=??", "neither"), ("\"a", "not closed"), ("u16(1", "not closed"),
        ]
    )
    func invalidBytesAreRefused(text: String, words: String) {
        let error = #expect(throws: Complaint.self) { try octets(text) }
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    }

    @Test(
        arguments: [
            ("01 02", [1, 2], nil), ("01 02", [1, 3], 1), ("01 02", [1], 1), ("01 02", [1, 2, 3], 2), ("??", [9], nil),
            ("??", [], 0), ("4? ?1", [0x4F, 0x21], nil), ("4?", [0x5F], 0), ("01 *", [1], nil),
            ("01 *", [1, 2, 3], nil),
            ("01 *", [2, 2, 3], 0), ("*", [], nil), ("??*3 05", [1, 2, 3, 5], nil), ("$known", [0xAB, 0xCD], nil),
            ("$known", [0xAB, 0xCE], 1), ("", [], nil), ("", [1], 0),
        ] as [(String, [UInt8], Int?)]
    )
    func patternIsComparedUpToTheFirstDifference(text: String, octets: [UInt8], difference: Int?) throws {
        let pattern = try Pattern(Octets(parsing: LineWords(text[...]).words[...]), ["known": [0xAB, 0xCD]])
        #expect(pattern.difference(to: octets) == difference)
    }

    @Test func patternSetsNamesToTheBytesInTheirPlace() throws {
        let written = try Octets(parsing: ["01", "$one=??", "02", "$two=??*2", "$rest=*"])
        #expect(!written.isComplete)
        let pattern = try Pattern(written, [:])
        #expect(pattern.difference(to: [1, 9, 2, 7, 8, 3, 4]) == nil)
        #expect(pattern.captures(in: [1, 9, 2, 7, 8, 3, 4]) == ["one": [9], "two": [7, 8], "rest": [3, 4]])
        #expect(pattern.description == "01 ?? 02 ?? ?? *")
    }
}
