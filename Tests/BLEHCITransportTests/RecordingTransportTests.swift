import BLEByteCoding
import BLECapture
import Dispatch
import Glibc
import Testing

@testable import BLEHCITransport

@Suite("A recording", .timeLimit(.minutes(10)))
struct RecordingTransportTests {
    private let folder = TemporaryFolder()

    private func contents(_ path: String) -> [UInt8] {
        let file = OwnedDescriptor(open(path, O_RDONLY))
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        guard case .success(let count) = read(file.number, into: &bytes, from: 0) else { return [] }
        return Array(bytes.prefix(count))
    }

    @Test(
        arguments: [false, true]
    )
    func recordingHoldsPacketsOfBothDirectionsWhileTheFileIsOpen(atControllersEnd: Bool) async throws {
        let path = folder.path + "/capture.btsnoop"
        let queue = DispatchQueue(label: "recording")
        let ends = PipeTransport.makePair(queue, queue)
        let file = LoopConfined(try CaptureFile(path: path) { 1_700_000_000_000_001 }, to: queue)
        func recorded(_ end: any Transport) -> any Transport {
            RecordingTransport(end, file: file, isControllersEnd: atControllersEnd)
        }
        let host = Probe(atControllersEnd ? ends.0 : recorded(ends.0), on: queue)
        let controller = Probe(atControllersEnd ? recorded(ends.1) : ends.1, on: queue)
        await host.send([Sample.reset])
        #expect(await controller.next() == .packet(Sample.reset))
        await controller.send([Sample.commandComplete, Sample.acl])
        #expect(await host.next(2) == [.packet(Sample.commandComplete), .packet(Sample.acl)])

        let bytes = contents(path)
        var reader = ByteReader(bytes.rawSpan)
        let header = try BTSnoopHeader(decoding: reader.readBytes(count: BTSnoopHeader.length))
        #expect(header.dataLink == .hciUART)
        let expected: [([UInt8], UInt32)] = [(Sample.reset, 2), (Sample.commandComplete, 3), (Sample.acl, 1)]
        for (packet, flags) in expected {
            let record = try BTSnoopRecord(decoding: &reader)
            #expect([UInt8](copying: record.packet) == packet)
            #expect(record.flags == flags)
            #expect(record.microsecondsSince1970 == 1_700_000_000_000_001)
        }
        let isAtEnd = reader.isAtEnd
        #expect(isAtEnd)
        #expect(queue.sync { file.value.failure } == nil)
    }

    /// A recording holds keys.
    @Test func recordingIsReadableByItsOwnerOnly() throws {
        let path = folder.path + "/capture.btsnoop"
        _ = try CaptureFile(path: path)
        var status = stat()
        #expect(stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
    }

    @Test func recordingOverAFileWithALaxModeRestrictsIt() throws {
        let path = folder.path + "/capture.btsnoop"
        let old = OwnedDescriptor(open(path, O_WRONLY | O_CREAT, 0o666))
        #expect(fchmod(old.number, 0o666) == 0)
        #expect(write(old.number, [UInt8](repeating: 7, count: 4096), 4096) == 4096)
        _ = try CaptureFile(path: path)
        var status = stat()
        #expect(stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        #expect(status.st_size == 16, "the header alone")
    }

    @Test func linksAndForeignFilesAreRefused() throws {
        let (path, target) = (folder.path + "/link.btsnoop", folder.path + "/target")
        _ = OwnedDescriptor(open(target, O_WRONLY | O_CREAT, 0o644))
        #expect(symlink(target, path) == 0)
        #expect(throws: TransportError.captureFile(path, errno: ELOOP)) { try CaptureFile(path: path) }
        var status = stat()
        #expect(stat(target, &status) == 0 && status.st_size == 0)
        guard geteuid() == 0 else { return }
        #expect(chown(target, 12345, 12345) == 0)
        #expect(throws: TransportError.captureFile(target, errno: EPERM)) { try CaptureFile(path: target) }
    }

    @Test func pipeOfAnotherUserIsRefused() throws {
        let path = folder.path + "/pipe.btsnoop"
        try #require(mkfifo(path, 0o644) == 0)
        let end = OwnedDescriptor(open(path, O_RDONLY | O_NONBLOCK))
        _ = try CaptureFile(path: path)
        var status = stat()
        #expect(stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        guard geteuid() == 0 else { return }
        var header = [UInt8](repeating: 0, count: 64)
        #expect(read(end.number, into: &header, from: 0) == .success(16))
        #expect(chown(path, 12345, 12345) == 0)
        #expect(throws: TransportError.captureFile(path, errno: EPERM)) { try CaptureFile(path: path) }
        #expect(read(end.number, into: &header, from: 0) == .success(0), "no header, and no writer any more")
    }

    @Test func recordingHoldsNoKeysIfTheyAreMasked() throws {
        let path = folder.path + "/capture.btsnoop"
        let key = [UInt8](repeating: 0xE7, count: 16)
        let file = try CaptureFile(path: path, masksKeys: true)
        let command = [0x01, 0x1A, 0x20, 18, 0x40, 0x00] + key
        file.append(command.rawSpan, direction: .hostToController)
        let data = [0x02, 0x40, 0x20, 21, 0, 17, 0, 6, 0, 6] + key
        file.append(data.rawSpan, direction: .controllerToHost)
        let acl = Sample.acl
        file.append(acl.rawSpan, direction: .controllerToHost)
        let bytes = contents(path)
        var reader = ByteReader(bytes.rawSpan)
        _ = try BTSnoopHeader(decoding: reader.readBytes(count: BTSnoopHeader.length))
        var lengths: [Int] = []
        while !reader.isAtEnd {
            let packet = [UInt8](copying: try BTSnoopRecord(decoding: &reader).packet)
            // The time of a record may contain any byte.
            #expect(!packet.contains(0xE7))
            lengths.append(packet.count)
        }
        #expect(lengths == [22, 26, Sample.acl.count])
    }

    @Test func recordingThatCannotBeCreatedIsAnError() throws {
        #expect(throws: TransportError.captureFile("/nonexistent/x", errno: ENOENT)) {
            try CaptureFile(path: "/nonexistent/x")
        }
        #expect(throws: TransportError.captureFile("/dev/full", errno: ENOSPC)) {
            try CaptureFile(path: "/dev/full")
        }
    }

    @Test func deviceThatDiscardsARecordingIsAllowed() throws {
        #expect(try CaptureFile(path: "/dev/null").failure == nil)
    }
}
