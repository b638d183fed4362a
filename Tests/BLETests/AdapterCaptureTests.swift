import BLE
import FaultInjection
import Foundation
import Glibc
import Logging
import Testing

@Suite("An adapter with a capture", .timeLimit(.minutes(10)))
struct AdapterCaptureTests {
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

    @Test("logs once why the capture cannot be written, and continues")
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

    @Test("ends the capture when it is closed, so the reader of a pipe finds the end", .timeLimit(.minutes(1)))
    func readerOfAPipeFindsTheEndOfAClosedAdapter() async throws {
        let name = "capture-\(UUID().uuidString)"
        let path = FileManager.default.temporaryDirectory.path + "/\(name).btsnoop"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try #require(mkfifo(path, 0o600) == 0)
        let reader = open(path, O_RDONLY | O_NONBLOCK)
        try #require(reader >= 0)
        defer { close(reader) }
        var configuration = Adapter.Configuration()
        configuration.capturePath = path
        let adapter = try await Adapter.open(.virtual(name: name), configuration: configuration)
        await adapter.close()
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        var total = 0
        var count = read(reader, &buffer, buffer.count)
        while count != 0 {
            // The pipe is empty, and not closed yet.
            if count < 0 { try await Task.sleep(for: .milliseconds(1)) }
            total += max(count, 0)
            count = read(reader, &buffer, buffer.count)
        }
        #expect(total > 16)
        #expect(adapter.captureFailure == nil)
    }
}
