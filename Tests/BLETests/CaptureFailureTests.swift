import BLE
import FaultInjection
import Foundation
import Glibc
import Logging
import Testing

@Suite("An adapter whose capture cannot be written", .timeLimit(.minutes(10)))
struct CaptureFailureTests {
    /// Collects the errors of a logger.
    private struct ErrorHandler: LogHandler {
        let messages: Log<String>
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.error

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            messages.append("\(event.message)")
        }
    }

    @Test("logs the reason once and continues")
    func fullDiskIsLoggedOnceAndTheAdapterContinues() async throws {
        let name = "capture-\(UUID().uuidString)"
        let path = FileManager.default.temporaryDirectory.path + "/\(name).btsnoop"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let messages = Log<String>()
        var configuration = Adapter.Configuration()
        configuration.capturePath = path
        configuration.logger = Logger(label: name) { _ in ErrorHandler(messages: messages) }
        // The header and one packet are written.
        let injection = FaultInjection(Fault(.write, .fails(ENOSPC), after: 2), at: .path(path))
        let adapter = try await Adapter.open(.virtual(name: name), configuration: configuration)
        #expect(injection.uses == 1)
        #expect(
            messages.all == [
                "the capture ends early: cannot write the capture file \(path): No space left on device; free space or "
                    + "choose another path"
            ]
        )
        #expect(adapter.captureFailure == .captureFile(path, errno: ENOSPC))
        await adapter.close()
    }
}
