import Foundation
import Testing

@testable import BLETool

@Suite("The parts of a file")
final class FilePartsTests {
    private let path = FileManager.default.temporaryDirectory.appendingPathComponent("parts-\(UUID().uuidString)").path

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    private func parts(of bytes: [UInt8]) async throws -> [[UInt8]] {
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        var file = FileParts(try ByteInput(path), partLength: 8)
        var parts: [[UInt8]] = []
        while let part = try await file.next() { parts.append(part) }
        #expect(file.count == parts.count && file.byteCount == bytes.count)
        return parts
    }

    @Test func partsHaveTheirNumberAndTheLastOneIsShorter() async throws {
        #expect(try await parts(of: [1, 2, 3, 4, 5]) == [[0, 0, 0, 0, 1, 2, 3, 4], [1, 0, 0, 0, 5]])
    }

    @Test func fileThatFillsItsPartsHasNoEmptyPart() async throws {
        #expect(try await parts(of: [1, 2, 3, 4]) == [[0, 0, 0, 0, 1, 2, 3, 4]])
        #expect(try await parts(of: []) == [])
    }

    @Test func partsContinueAcrossTheBlocksThatAreRead() async throws {
        let bytes = (0..<40_002).map { UInt8(truncatingIfNeeded: $0) }
        let sdus = try await parts(of: bytes)
        #expect(sdus.count == 10_001)
        #expect(sdus.flatMap { $0.dropFirst(4) } == bytes)
    }
}
