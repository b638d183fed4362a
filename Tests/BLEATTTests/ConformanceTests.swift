import BLEATT
import BluetoothTypes
import ConformanceFolder
import Foundation
import Testing

/// The PDUs of exchanges that follow the SIG's test purposes, each once.
private struct Exchanges: Decodable {
    struct Case: Decodable {
        let pdus: [Step]
    }

    /// A step of an exchange: a PDU, or an instruction for the implementation.
    struct Step: Decodable {
        let hex: String?
    }

    let cases: [Case]

    static var isExpected: Bool { ConformanceFolder.isExpected("gatt.json") }

    /// Reads the file.
    static func read() throws -> Exchanges {
        try JSONDecoder().decode(Exchanges.self, from: Data(contentsOf: ConformanceFolder.location(of: "gatt.json")))
    }

    /// The PDUs of the file; none if it cannot be read.
    static let pdus: [String] = {
        guard let exchanges = try? read() else { return [] }
        return Set(exchanges.cases.flatMap { $0.pdus.compactMap(\.hex) }).sorted()
    }()
}

@Suite("PDUs of conformance exchanges", .enabled(if: Exchanges.isExpected))
struct ConformanceTests {
    @Test("The file can be read, and has PDUs")
    func fileHasPDUs() throws {
        _ = try Exchanges.read()
        #expect(!Exchanges.pdus.isEmpty)
    }

    @Test("Each is decoded and encoded to the same bytes", arguments: Exchanges.pdus)
    func recordedPDUIsEncodedToTheSameBytes(hexadecimal: String) throws {
        let bytes = try #require([UInt8](hexadecimal: hexadecimal))
        let sample = try #require(Sample.all.first { $0.bytes[0] == bytes.first })
        #expect(try sample.recode(bytes) == bytes)
    }
}
