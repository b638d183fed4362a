import BLEByteCoding
import BLECapture
import Foundation
import Testing

/// Captures of real devices, which may lie beside the repository, and those that were recorded with this project.
private enum CaptureFiles {
    private static let repository = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    static let shared = files(in: repository.deletingLastPathComponent().appendingPathComponent("shared/captures"))
    static let own = files(in: repository.appendingPathComponent("Fixtures"))

    private static func files(in folder: URL) -> [URL] {
        ((try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? [])
            .filter { ["btsnoop", "log"].contains($0.pathExtension) }
            .sorted { $0.path < $1.path }
    }
}

@Suite("Captures of real devices")
struct PublicCaptureTests {
    @Test("They are read to their end, in pieces as well", arguments: CaptureFiles.shared + CaptureFiles.own)
    func capturesAreReadToTheirEnd(file: URL) throws {
        let bytes = [UInt8](try Data(contentsOf: file))
        let outcome = capture(bytes)
        #expect(outcome.error == nil)
        // A recorded capture has a text file with a line for each packet.
        if let said = try? String(
            contentsOf: file.deletingPathExtension().appendingPathExtension("json"),
            encoding: .utf8
        ) {
            #expect(outcome.readings.count == said.split(separator: "\n").count)
        } else {
            #expect(outcome.readings.count > 100)
        }
        #expect(outcome.readings.allSatisfy { !$0.content.contains("invalid") && !$0.content.contains("truncated") })
        #expect(capture(bytes, pieces: 1009).readings == outcome.readings)
    }

    @Test("Recorded captures are written to the same bytes, also through pcapng", arguments: CaptureFiles.own)
    func capturesAreWrittenUnchanged(file: URL) throws {
        let bytes = [UInt8](try Data(contentsOf: file))
        let again = try rewrite(bytes, as: .btsnoop)
        #expect(again.bytes == bytes && again.refused == 0)
        let there = try rewrite(bytes, as: .pcapng)
        #expect(try rewrite(there.bytes, as: .btsnoop).bytes == bytes && there.refused == 0)
    }
}
