import BLE
import Foundation
import Glibc
import Testing

@testable import BLETool

@Suite("A command whose capture fails", .timeLimit(.minutes(10)))
final class CaptureResultTests {
    private let folder = FileManager.default.temporaryDirectory.path + "/result-\(UUID().uuidString)"

    init() throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    @Test("The result is shown before the failure is reported")
    func resultIsShownBeforeTheFailure() async throws {
        let path = folder + "/capture"
        #expect(unsafe mkfifo(path, 0o600) == 0)
        // A reader that reads nothing.
        let descriptor = unsafe open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        defer { close(descriptor) }
        let options = try GlobalOptions.parse([
            "--adapter", "virtual:\(folder)", "--state-dir", folder, "--capture", path,
        ])
        let shown = PrintedLines()
        await #expect(throws: TransportError.captureFile(path, errno: EAGAIN)) {
            try await options.withAdapter { adapter in
                let block = [UInt8](repeating: 0, count: 4096)
                for count in [4096, 1] {
                    while unsafe write(descriptor, block, count) > 0 {}
                }
                _ = try await adapter.peripheral.startAdvertising(AdvertisementConfiguration())
                return "the result"
            } show: { (result: String) in
                shown.append(result)
            }
        }
        #expect(shown.all == ["the result"])
    }
}
