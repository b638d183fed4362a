import Testing

@testable import BLEProfiles

@Suite("JSON")
struct JSONTests {
    @Test(
        arguments: [
            (["b": 1, "a": [nil, true, false]], #"{"b":1,"a":[null,true,false]}"#),
            ([:], "{}"),
            (["text": "a\"b\\c\n\u{1}é🌡"], #"{"text":"a\"b\\c\n\u0001é🌡"}"#),
            (.decimal(1.5), "1.5"),
            (JSON([0x00, 0xFF]), #""00ff""#),
            (JSON(nil as String?), "null"),
            (JSON(-60 as Int?), "-60"),
        ] as [(JSON, String)]
    )
    func valueIsWrittenOnOneLineWithMembersInOrder(value: JSON, text: String) {
        #expect(value.description == text)
    }

    @Test(
        arguments: [
            (" { \"a\" : [ 1 , -2.5e1, \"x\" ] } ", ["a": [1, .decimal(-25), "x"]]),
            (#""\u00e9\ud83c\udf21\/\b\f\n\r\t\"\\""#, "é🌡/\u{8}\u{C}\n\r\t\"\\"),
            ("[true,false,null]", [true, false, nil]),
            ("0", 0),
            ("12345678901234567890", .decimal(12_345_678_901_234_567_168)),
        ] as [(String, JSON)]
    )
    func validTextIsRead(text: String, value: JSON) throws {
        #expect(try JSON(parsing: Array(text.utf8)) == value)
    }

    @Test(
        arguments: [
            ("", "line 1, column 1: the document ends where a value should be"),
            ("{\n  \"a\": 1,\n}", "line 3, column 1: expected a key in double quotes"),
            ("{\"a\" 1}", "line 1, column 6: expected a colon after the key"),
            // The key, which could control a terminal, is not repeated.
            ("{\"\\u001b[2J\" 1}", "line 1, column 14: expected a colon after the key"),
            ("{\"a\": 1 \"b\": 2}", "line 1, column 9: expected a comma or }"),
            ("[1 2]", "line 1, column 4: expected a comma or ]"),
            ("[1]]", "line 1, column 4: something follows the end of the document"),
            ("01", "line 1, column 2: something follows the end of the document"),
            ("nul", "line 1, column 1: expected a value"),
            ("-", "line 1, column 2: expected a digit"),
            ("1.", "line 1, column 3: expected a digit after the point"),
            ("1e", "line 1, column 3: expected a digit in the exponent"),
            ("1e999", "line 1, column 6: the number is too large"),
            ("\"abc", "line 1, column 5: the string has no closing quote"),
            ("\"\\", "line 1, column 3: the string has no closing quote"),
            ("\"\\x\"", "line 1, column 4: unknown escape"),
            ("\"\\u12\"", "line 1, column 6: expected four hexadecimal digits"),
            ("\"\\ud800\"", "line 1, column 8: half of a surrogate pair"),
            ("\"a\nb\"", "line 1, column 3: a control character in a string must be escaped"),
            (String(repeating: "[", count: 65), "line 1, column 65: nested too deeply"),
        ]
    )
    func malformedTextIsRefusedWithThePosition(text: String, problem: String) {
        let error = #expect(throws: JSONSyntaxError.self) { try JSON(parsing: Array(text.utf8)) }
        #expect(error?.description == problem)
    }

    @Test func textThatIsNotUTF8IsRefused() {
        let error = #expect(throws: JSONSyntaxError.self) { try JSON(parsing: [0x22, 0xFF, 0x22]) }
        #expect(error?.description == "line 1, column 3: the string is not UTF-8")
    }

    @Test func truncatedTextIsRefused() throws {
        let text = Array(#"{"a":[1.5e3,"b\u0041c",{"d":null}],"e":true}"#.utf8)
        _ = try JSON(parsing: text)
        for count in 0..<text.count {
            #expect(throws: JSONSyntaxError.self) { try JSON(parsing: Array(text.prefix(count))) }
        }
    }
}
