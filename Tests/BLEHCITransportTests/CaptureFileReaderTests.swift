import BLEByteCoding
import BLECapture
import Dispatch
import Glibc
import Synchronization
import Testing

@testable import BLEHCITransport

@Suite("A capture file", .timeLimit(.minutes(10)))
struct CaptureFileReaderTests {
    private let folder = TemporaryFolder()

    private func write(_ bytes: [UInt8], to name: String) throws -> String {
        let path = "\(folder.path)/\(name)"
        let file = OwnedDescriptor(open(path, O_WRONLY | O_CREAT, 0o600))
        var written = 0
        while written < bytes.count {
            written += try BLEHCITransport.write(file.number, bytes.rawSpan.extracting(droppingFirst: written)).get()
        }
        return path
    }

    @Test(arguments: ["btsnoop", "pcapng"])
    func recordedCaptureIsReadBackRecordByRecord(ending: String) throws {
        let path = "\(folder.path)/capture.\(ending)"
        let clock = Mutex<Int64>(1_700_000_000_000_000)
        do {
            let file = try CaptureFile(path: path) {
                clock.withLock { time in
                    time += 1
                    return time
                }
            }
            let (reset, acl) = (Sample.reset, Sample.acl)
            for _ in 0..<10_000 {
                file.append(reset.rawSpan, direction: .hostToController)
                file.append(acl.rawSpan, direction: .controllerToHost)
            }
        }
        var file = try CaptureFileReader(path: path)
        while let record = try file.next() {
            let isData = record.number % 2 == 0
            guard case .packet(let kind, let direction, let bytes) = record.content else {
                Issue.record("record \(record.number) is no packet")
                return
            }
            guard kind == (isData ? .acl : .command), direction == (isData ? .controllerToHost : .hostToController),
                [UInt8](copying: bytes) == Array((isData ? Sample.acl : Sample.reset).dropFirst()),
                record.time?.microsecondsSince1970 == 1_700_000_000_000_000 + Int64(record.number)
            else {
                Issue.record("record \(record.number) is not what was written")
                return
            }
        }
        let count = file.recordCount
        let format = file.format
        #expect(count == 20_000)
        #expect(format == (ending == "pcapng" ? .pcapng : .btsnoop(.hciUART)))
    }

    @Test(
        arguments: [
            ("empty", "", "an empty file, not a capture"),
            ("text", "# swift-ble", "text, not a capture (btsnoop, pcap, pcapng or PacketLogger)"),
            ("cut", "btsnoop\0\0\0\0\u{1}\0\0", "damaged at byte 0: truncated: 4 bytes needed, 2 left"),
        ]
    )
    func fileThatIsNoCaptureIsRefusedWithTheReason(name: String, content: String, reason: String) throws {
        let path = try write(Array(content.utf8), to: name)
        var file = try CaptureFileReader(path: path)
        do throws(CaptureFileError) {
            let hasRecord = try file.next() != nil
            Issue.record("a record: \(hasRecord)")
        } catch {
            #expect(error.description == "\(path) is \(reason)")
        }
    }

    @Test func unreadableCaptureGivesTheSystemsReason() throws {
        #expect(throws: CaptureFileError.unreadable(path: "/nonexistent", errno: ENOENT)) {
            _ = try CaptureFileReader(path: "/nonexistent")
        }
        var directory = try CaptureFileReader(path: folder.path)
        do throws(CaptureFileError) {
            _ = try directory.next() != nil
            Issue.record("a folder is read")
        } catch {
            #expect(error == .unreadable(path: folder.path, errno: EISDIR))
            #expect(error.description == "cannot read \(folder.path): Is a directory")
        }
    }

    @Test func captureInAPipeIsReadAsItFills() throws {
        let path = "\(folder.path)/pipe"
        try #require(mkfifo(path, 0o600) == 0)
        // Opened for both directions; otherwise opening would wait for the other end.
        let pipe = OwnedDescriptor(open(path, O_RDWR))
        let capture: [UInt8] = [
            0x62, 0x74, 0x73, 0x6E, 0x6F, 0x6F, 0x70, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x03, 0xEA, 0x00, 0x00,
            0x00, 0x04, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0xE3, 0x11, 0x74,
            0xF5, 0xD0, 0x40, 0x00, 0x01, 0x03, 0x0C, 0x00,
        ]
        var rest = capture[...]
        let stop = CancellationToken()
        var file = try CaptureFileReader(path: path, stop: stop)
        var count = 0
        while try file.next(beforeWaiting: {
            guard let octet = rest.popFirst() else { return stop.cancel() }
            let octets = [octet]
            _ = BLEHCITransport.write(pipe.number, octets.rawSpan)
        }) != nil { count += 1 }
        #expect(count == 1)
        #expect(rest.isEmpty)
    }

    @Test func stopEndsTheWaitForTheWriterOfAPipe() throws {
        let path = "\(folder.path)/pipe"
        try #require(mkfifo(path, 0o600) == 0)
        let stop = CancellationToken()
        let isAtEnd = Mutex(false)
        let isDone = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            do throws(CaptureFileError) {
                var file = try CaptureFileReader(path: path, stop: stop)
                let hasEnded = try file.next() == nil
                isAtEnd.withLock { $0 = hasEnded }
            } catch {
                // The end was not reached.
            }
            isDone.signal()
        }
        stop.cancel()
        let result = isDone.wait(timeout: .now() + .seconds(60))
        // A thread that waits for a writer gets one.
        withExtendedLifetime(OwnedDescriptor(open(path, O_RDWR | O_NONBLOCK))) {}
        #expect(result == .success)
        #expect(isAtEnd.withLock { $0 })
    }
}
