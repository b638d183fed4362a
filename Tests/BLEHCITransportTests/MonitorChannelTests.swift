import BLEByteCoding
import BLECapture
import Dispatch
import Glibc
import Testing

@testable import BLEHCITransport

@Suite("The monitor channel", .timeLimit(.minutes(10)))
struct MonitorChannelTests {
    /// A socket in place of the kernel's, and the kernel's end of it.
    private static func sockets() throws -> (channel: OwnedDescriptor, kernel: OwnedDescriptor) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        return (OwnedDescriptor(ends[0]), OwnedDescriptor(ends[1]))
    }

    private static func send(_ message: [UInt8], from kernel: OwnedDescriptor) throws {
        _ = try BLEHCITransport.send(kernel.number, message.rawSpan).get()
    }

    @Test func messagesBecomeRecordsWithAdapterAndTime() throws {
        let (socket, kernel) = try Self.sockets()
        var channel = MonitorChannel(socket, stop: CancellationToken())
        let before = CaptureTime(wallClock())
        try Self.send([0x02, 0x00, 0x01, 0x00, 0x03, 0x00, 0x03, 0x0C, 0x00], from: kernel)
        try Self.send([0x03, 0x00, 0x02, 0x00, 0x06, 0x00, 0x0E, 0x04, 0x01, 0x03, 0x0C, 0x00], from: kernel)
        try Self.send([0x0C, 0x00, 0xFF, 0xFF, 0x02, 0x00, 0x41, 0x00], from: kernel)
        try Self.send([0x02, 0x00, 0x01, 0x00, 0x04, 0x00, 0x03, 0x0C, 0x00], from: kernel)
        let after = CaptureTime(wallClock())
        var found: [String] = []
        while found.count < 4, let record = try channel.next() {
            let content =
                switch record.content {
                case .packet(let kind, let direction, let bytes):
                    "\(kind) \(direction.map { "\($0)" } ?? "") \([UInt8](copying: bytes))"
                case .note(let note, let bytes): "\(note) \([UInt8](copying: bytes))"
                case .malformed(let error, _, let bytes): "\(error), \(bytes.byteCount) bytes"
                }
            found.append("\(record.number) \(record.adapterIndex) \(content)")
            let time = record.time
            #expect(time.map { before <= $0 && $0 <= after } == true)
        }
        #expect(
            found == [
                "1 1 command hostToController [3, 12, 0]",
                "2 2 event controllerToHost [14, 4, 1, 3, 12, 0]",
                "3 65535 monitor(BLECapture.MonitorOpcode(rawValue: 12)) [65, 0]",
                "4 0 truncated: 4 bytes needed, 3 left, 9 bytes",
            ]
        )
    }

    @Test func messagesBeforeTheStopAreDelivered() throws {
        let (socket, kernel) = try Self.sockets()
        let stop = CancellationToken()
        var channel = MonitorChannel(socket, stop: stop)
        try Self.send([0x00, 0x00, 0x00, 0x00, 0x00, 0x00], from: kernel)
        var waits = 0
        var count = 0
        while try channel.next(beforeWaiting: {
            waits += 1
            stop.cancel()
        }) != nil { count += 1 }
        #expect(count == 1)
        #expect(waits == 1)
        let isOver = try channel.next() == nil
        #expect(isOver)
    }

    @Test func readingEndsAfterTheStopWhileTrafficContinues() throws {
        let (socket, kernel) = try Self.sockets()
        let stop = CancellationToken()
        var channel = MonitorChannel(socket, stop: stop)
        let message: [UInt8] = [0x00, 0x00, 0x00, 0x00, 0x00, 0x00]
        try Self.send(message, from: kernel)
        stop.cancel()
        // A message is always there.
        var count = 0
        while count <= MonitorChannel.limitAfterStop, try channel.next() != nil {
            count += 1
            try Self.send(message, from: kernel)
        }
        #expect(count == MonitorChannel.limitAfterStop)
        let isOver = try channel.next() == nil
        #expect(isOver)
    }

    @Test func stopFromAnotherThreadEndsTheWait() async throws {
        let (socket, kernel) = try Self.sockets()
        let stop = CancellationToken()
        let count = try await withThrowingTaskGroup(of: UInt64.self) { group in
            group.addTask {
                var channel = MonitorChannel(socket, stop: stop)
                while try channel.next(beforeWaiting: { DispatchQueue.global().async { stop.cancel() } }) != nil {}
                return channel.recordCount
            }
            return try await group.next()
        }
        #expect(count == 0)
        withExtendedLifetime(kernel) {}
    }

    @Test(arguments: ["btsnoop", "pcapng"])
    func captureOfTheChannelKeepsAdaptersAndTimes(ending: String) throws {
        let folder = TemporaryFolder()
        let path = "\(folder.path)/capture.\(ending)"
        let (socket, kernel) = try Self.sockets()
        var channel = MonitorChannel(socket, stop: CancellationToken())
        try Self.send([0x04, 0x00, 0x03, 0x00, 0x05, 0x00, 0x40, 0x00, 0x01, 0x00, 0xAA], from: kernel)
        try Self.send([0x0C, 0x00, 0xFF, 0xFF, 0x02, 0x00, 0x41, 0x00], from: kernel)
        var times: [CaptureTime?] = []
        do {
            let file = try CaptureFile(path: path, format: .monitor(path: path))
            while times.count < 2, let record = try channel.next() {
                file.append(record)
                times.append(record.time)
            }
            #expect(file.failure == nil)
        }
        var file = try CaptureFileReader(path: path)
        var adapters: [UInt16] = []
        while let record = try file.next() {
            adapters.append(record.adapterIndex)
            // btsnoop counts microseconds.
            let expected = times[adapters.count - 1]
            #expect(record.time?.microsecondsSince1970 == expected?.microsecondsSince1970)
        }
        let format = file.format
        #expect(adapters == [3, 0xFFFF])
        #expect(format == (ending == "pcapng" ? .pcapng : .btsnoop(.linuxMonitor)))
    }
}

extension CaptureTime {
    fileprivate init(_ time: timespec) {
        self.init(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec))
    }
}
