import Foundation
import Testing

@testable import Gateway

struct LogTests {
    private let time = Date(timeIntervalSince1970: 1_767_225_600.25)

    private func line(_ format: LogFormat, _ message: String) -> String {
        LineLogHandler(label: "test", format: format, logLevel: .info)
            .line(level: .warning, message: message, metadata: ["b": "2", "a": "1"], time: time)
    }

    @Test func textHasTimeLevelLabelMessageAndSortedMetadata() {
        #expect(line(.text, "closed") == "2026-01-01T00:00:00.250Z warning test: closed a=1 b=2")
    }

    @Test func textHasNoControlCharacters() {
        #expect(line(.text, "a\n\u{1B}[31mb").hasSuffix("a  [31mb a=1 b=2"))
    }

    @Test func textHasNoChangesOfTheWritingDirection() {
        #expect(line(.text, "a\u{202E}b\u{2028}c\u{9B}d").hasSuffix("a b c d a=1 b=2"))
    }

    @Test func jsonIsOneObjectInOneLine() throws {
        let line = line(.json, "a\nb")
        #expect(!line.contains("\n"))
        let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        #expect(object["message"] as? String == "a\nb")
        #expect(object["level"] as? String == "warning")
        #expect(object["time"] as? String == "2026-01-01T00:00:00.250Z")
        #expect(object["metadata"] as? [String: String] == ["a": "1", "b": "2"])
    }
}
