import BLECapture
import Foundation
import Glibc
import Testing

@testable import BLEHCITransport
@testable import BLETool

@Suite("The monitor")
final class MonitorTests {
    private let path = FileManager.default.temporaryDirectory.path + "/monitor-\(UUID().uuidString)"

    deinit { try? FileManager.default.removeItem(atPath: path) }

    @Test("A capture that fails ends the monitor after the packet and the summary")
    func failedCaptureEndsTheMonitorAfterThePacketAndTheSummary() throws {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue)
        try #require(unsafe socketpair(AF_UNIX, type, 0, &ends) == 0)
        let kernel = OwnedDescriptor(ends[1])
        var channel = MonitorChannel(OwnedDescriptor(ends[0]), stop: CancellationToken())
        // The host sends Reset to hci0.
        let message: [UInt8] = [0x02, 0x00, 0x00, 0x00, 0x03, 0x00, 0x03, 0x0C, 0x00]
        try #require(unsafe Glibc.write(kernel.number, message, message.count) == message.count)

        // The reader of the capture closes its end after the header.
        try #require(unsafe mkfifo(path, 0o600) == 0)
        let reader = unsafe Glibc.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        let file = try CaptureFile(path: path, format: .monitor(path: path))
        close(reader)

        var text: [UInt8] = []
        var printer = PacketPrinter(
            try PacketOptions.parse(["--color", "never"]),
            printsPackets: true,
            summarizes: true,
            output: { text += $0 }
        )
        var failure: (any Error)?
        do {
            try Monitor.print(&channel, with: &printer, to: file)
        } catch {
            failure = error
        }
        #expect(failure as? TransportError == .captureFile(path, errno: EPIPE))
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
        #expect(lines.first?.hasSuffix("Reset") == true)
        #expect(lines.dropFirst().first?.hasPrefix("1 packets") == true)
    }
}
