import BLEATT
import BluetoothTypes
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

    /// The file that `SWIFT_BLE_CONFORMANCE` names, otherwise the one beside the package; nil if it does not exist.
    static let file: Data? = {
        let beside = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("shared/conformance")
        let folder =
            ProcessInfo.processInfo.environment["SWIFT_BLE_CONFORMANCE"].map { URL(fileURLWithPath: $0) } ?? beside
        return try? Data(contentsOf: folder.appendingPathComponent("gatt.json"))
    }()

    static let pdus: [String] = {
        guard let file, let exchanges = try? JSONDecoder().decode(Exchanges.self, from: file) else { return [] }
        return Set(exchanges.cases.flatMap { $0.pdus.compactMap(\.hex) }).sorted()
    }()
}

@Suite("PDUs of conformance exchanges", .enabled(if: Exchanges.file != nil))
struct ConformanceTests {
    @Test("The file has PDUs")
    func fileHasPDUs() {
        #expect(!Exchanges.pdus.isEmpty)
    }

    @Test("Each is decoded and encoded to the same bytes", arguments: Exchanges.pdus)
    func recordedPDUIsEncodedToTheSameBytes(hexadecimal: String) throws {
        let bytes = try #require([UInt8](hexadecimal: hexadecimal))
        let sample = try #require(Sample.all.first { $0.bytes[0] == bytes.first })
        #expect(try sample.recode(bytes) == bytes)
    }
}
