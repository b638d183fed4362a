import BLECapture
import Dispatch
import FaultInjection
import Glibc
import Synchronization
import Testing

@testable import BLEHCITransport

@Suite("A fault of the system, while a capture is written or read,", .timeLimit(.minutes(10)))
struct CaptureFaultTests {
    private let folder = TemporaryFolder()

    private var path: String { folder.path + "/capture.btsnoop" }

    private func size(of path: String) -> Int? {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : nil
    }

    private func append(_ packet: [UInt8], to file: CaptureFile) {
        file.append(packet.rawSpan, direction: .hostToController)
    }

    /// The number of records in a capture that is valid to its end.
    private func countRecords() throws -> UInt64 {
        var reader = try CaptureFileReader(path: path)
        while try reader.next() != nil {}
        return reader.recordCount
    }

    private static let creation: [(Fault, Int32?)] = [
        (Fault(.open, .fails(ENOSPC)), ENOSPC), (Fault(.open, .fails(EMFILE)), EMFILE),
        (Fault(.open, .fails(ENFILE)), ENFILE), (Fault(.open, .fails(EROFS)), EROFS),
        (Fault(.open, .fails(EINTR), count: 3), nil), (Fault(.fstat, .fails(EIO)), EIO),
        (Fault(.fchmod, .fails(EPERM)), EPERM), (Fault(.ftruncate, .fails(EIO)), EIO),
        (Fault(.ftruncate, .fails(EINTR), count: 3), nil), (Fault(.write, .fails(ENOSPC)), ENOSPC),
        (Fault(.write, .fails(EIO)), EIO), (Fault(.write, .returns(0)), EIO),
        (Fault(.write, .fails(EINTR), count: 3), nil), (Fault(.write, .transfers(1)), nil),
        (Fault(.close, .fails(EIO)), nil),
    ]

    @Test("makes its creation fail with its reason, and leaves no new file", arguments: creation)
    func failedCreationLeavesNoFile(fault: Fault, errno: Int32?) {
        let path = path
        FaultCase(fault, error: errno.map { TransportError.captureFile(path, errno: $0) }).run {
            _ = try CaptureFile(path: path)
        }
        #expect(size(of: path) == (errno == nil ? 16 : nil))
    }

    @Test("keeps an existing file if it cannot be used", arguments: creation)
    func existingFileIsKept(fault: Fault, errno: Int32?) throws {
        let path = path
        append(Sample.reset, to: try CaptureFile(path: path))
        let oldSize = try #require(size(of: path))
        try #require(oldSize > 16)
        FaultCase(fault, error: errno.map { TransportError.captureFile(path, errno: $0) }).run {
            _ = try CaptureFile(path: path)
        }
        // The file is emptied before its header is written.
        let isEmptied = fault.call == .write
        #expect(size(of: path) == (errno == nil ? 16 : isEmptied ? 0 : oldSize))
    }

    @Test(
        "ends the capture with a whole record, and is reported once",
        arguments: [
            ([Fault(.write, .fails(ENOSPC))], ENOSPC), ([Fault(.write, .fails(EDQUOT))], EDQUOT),
            ([Fault(.write, .fails(EIO))], EIO), ([Fault(.write, .returns(0))], EIO),
            ([Fault(.write, .transfers(5), count: 2), Fault(.write, .fails(ENOSPC), after: 2)], ENOSPC),
        ] as [([Fault], Int32)]
    )
    func captureEndsWithAWholeRecord(faults: [Fault], errno: Int32) throws {
        let failures = Mutex<[TransportError]>([])
        let file = try CaptureFile(path: path, onFailure: { error in failures.withLock { $0.append(error) } })
        append(Sample.reset, to: file)
        let trial = FaultRun(faults) {
            append(Sample.reset, to: file)
            append(Sample.reset, to: file)
        }
        #expect(trial.unused.isEmpty)
        // Nothing more is written, although it would succeed.
        append(Sample.reset, to: file)
        #expect(file.failure == .captureFile(path, errno: errno))
        #expect(failures.withLock { $0 } == [.captureFile(path, errno: errno)])
        #expect(try countRecords() == 1)
    }

    @Test("that prevents the removal of a cut record leaves the records before it")
    func cutRecordThatStaysDoesNotHarmTheOthers() throws {
        let file = try CaptureFile(path: path)
        append(Sample.reset, to: file)
        let trial = FaultRun([
            Fault(.write, .transfers(5), count: 1), Fault(.write, .fails(ENOSPC), after: 1),
            Fault(.ftruncate, .fails(EIO)),
        ]) { append(Sample.reset, to: file) }
        #expect(trial.unused.isEmpty)
        var reader = try CaptureFileReader(path: path)
        #expect(try reader.next() != nil)
        #expect(throws: CaptureFileError.self) { while try reader.next() != nil {} }
    }

    @Test(
        "is overcome if a signal interrupts a call or the system writes less than asked",
        arguments: [
            Fault(.write, .fails(EINTR), count: 3), Fault(.write, .transfers(1)), Fault(.write, .transfers(7)),
        ]
    )
    func interruptedAndShortWritesAreContinued(fault: Fault) throws {
        let file = try CaptureFile(path: path)
        let trial = FaultRun([fault]) { for _ in 0..<3 { append(Sample.acl, to: file) } }
        #expect(trial.unused.isEmpty)
        #expect(file.failure == nil)
        #expect(try countRecords() == 3)
    }

    @Test("a limit for the size of files, ends the capture and not the process")
    func sizeLimitEndsTheCapture() async {
        await #expect(processExitsWith: .success) {
            let folder = TemporaryFolder()
            let path = folder.path + "/capture.btsnoop"
            let file = try CaptureFile(path: path)
            let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
            var limit = rlimit()
            try #require(getrlimit(resource, &limit) == 0)
            let previous = limit.rlim_cur
            // The header, a record, and a part of another record.
            let end = 16 + 24 + Sample.reset.count
            limit.rlim_cur = rlim_t(end + 10)
            try #require(setrlimit(resource, &limit) == 0)
            let packet = Sample.reset
            for _ in 0..<3 { file.append(packet.rawSpan, direction: .hostToController) }
            limit.rlim_cur = previous
            try #require(setrlimit(resource, &limit) == 0)
            #expect(file.failure == .captureFile(path, errno: EFBIG))
            var status = stat()
            try #require(stat(path, &status) == 0)
            #expect(Int(status.st_size) == end)
            var pending = sigset_t()
            sigpending(&pending)
            #expect(sigismember(&pending, SIGXFSZ) == 0)
            withExtendedLifetime(folder) {}
        }
    }

    @Test("a reader that closes its end of a pipe, ends the capture and not the process")
    func closedPipeEndsTheCapture() throws {
        try #require(mkfifo(path, 0o600) == 0)
        var end: OwnedDescriptor? = OwnedDescriptor(open(path, O_RDONLY | O_NONBLOCK))
        let file = try CaptureFile(path: path)
        append(Sample.reset, to: file)
        #expect(file.failure == nil)
        withExtendedLifetime(end) {}
        end = nil
        append(Sample.reset, to: file)
        #expect(file.failure == .captureFile(path, errno: EPIPE))
        var pending = sigset_t()
        sigpending(&pending)
        #expect(sigismember(&pending, SIGPIPE) == 0)
    }

    @Test("a reader that pauses, ends the capture and does not stop the loop", arguments: [4, 1000, 6000])
    func fullPipeEndsTheCapture(length: Int) throws {
        try #require(mkfifo(path, 0o600) == 0)
        let end = OwnedDescriptor(open(path, O_RDONLY | O_NONBLOCK))
        let failures = Mutex<[TransportError]>([])
        let file = try CaptureFile(path: path, onFailure: { error in failures.withLock { $0.append(error) } })
        let packet = [0x02] + [UInt8](repeating: 0, count: length - 1)
        // A pipe of 1 MiB holds fewer of the shortest records.
        for _ in 0..<1_000_000 where file.failure == nil { append(packet, to: file) }
        #expect(failures.withLock { $0 } == [.captureFile(path, errno: EAGAIN)])
        #expect(
            file.failure?.description
                == "cannot write the capture file \(path): Resource temporarily unavailable; the pipe is full because "
                + "its reader is too slow; write to a regular file instead"
        )
        // The reader finds the records before, and then the end, although the file is still in use.
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        var count = 0
        var result = read(end.number, into: &buffer, from: 0)
        while case .success(let part) = result, part > 0 {
            count += part
            result = read(end.number, into: &buffer, from: 0)
        }
        #expect(result == .success(0))
        #expect(count > 16 + 24 + length)
        // The system writes a record of up to 4096 bytes whole, or not at all.
        if length < 4000 { #expect((count - 16) % (24 + length) == 0) }
        append(packet, to: file)
        #expect(read(end.number, into: &buffer, from: 0) == .success(0))
        #expect(failures.withLock { $0.count } == 1)
    }

    @Test("a pipe without a reader, is an error")
    func pipeWithoutAReaderIsAnError() throws {
        try #require(mkfifo(path, 0o600) == 0)
        #expect {
            try CaptureFile(path: path)
        } throws: { error in
            "\(error)"
                == "cannot write the capture file \(path): No such device or address; if it is a pipe, start its "
                + "reader first"
        }
    }

    @Test("a pipe without a reader, is overcome if the caller may wait")
    func callerThatMayWaitGetsTheReader() throws {
        let path = path
        try #require(mkfifo(path, 0o600) == 0)
        let ends = Mutex<[OwnedDescriptor]>([])
        DispatchQueue.global().async {
            let end = OwnedDescriptor(open(path, O_RDONLY))
            ends.withLock { $0.append(end) }
        }
        let file = try CaptureFile(path: path, mayWait: true)
        append(Sample.reset, to: file)
        #expect(file.failure == nil)
        ends.withLock { $0.removeAll() }
    }

    @Test("a reader that does not come, is not waited for after the stop")
    func stopEndsTheWaitForTheReaderOfAPipe() throws {
        let path = path
        try #require(mkfifo(path, 0o600) == 0)
        let stop = CancellationToken()
        let failure = Mutex<TransportError?>(nil)
        let isDone = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            do throws(TransportError) {
                _ = try CaptureFile(path: path, mayWait: true, stop: stop)
            } catch {
                failure.withLock { $0 = error }
            }
            isDone.signal()
        }
        stop.cancel()
        let result = isDone.wait(timeout: .now() + .seconds(60))
        // A thread that waits for a reader gets one.
        withExtendedLifetime(OwnedDescriptor(open(path, O_RDWR | O_NONBLOCK))) {}
        #expect(result == .success)
        #expect(failure.withLock { $0 } == .captureFile(path, errno: ENXIO))
    }

    @Test("a socket, which has no reader to wait for, is refused at once")
    func socketIsRefusedAtOnce() throws {
        let listener = Listener.seqpacket()
        guard case .seqpacket(let path) = listener.specification else {
            Issue.record("the listener has no path")
            return
        }
        #expect(throws: TransportError.captureFile(path, errno: ENXIO)) {
            _ = try CaptureFile(path: path, mayWait: true)
        }
    }

    @Test("a reader that pauses, is waited for if the caller may wait, until the stop")
    func callerThatMayWaitWaitsForRoomUntilTheStop() throws {
        try #require(mkfifo(path, 0o600) == 0)
        let end = OwnedDescriptor(open(path, O_RDONLY | O_NONBLOCK))
        let stop = CancellationToken()
        let file = try CaptureFile(path: path, mayWait: true, stop: stop)
        // These packets are more than a pipe holds.
        let count = 500
        let packet = [0x02] + [UInt8](repeating: 0, count: 6000 - 1)
        try #require(fcntl(end.number, F_SETFL, 0) == 0)
        let total = Mutex(0)
        let isRead = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            var sum = 0
            while sum < 16 + count * (24 + packet.count),
                case .success(let part) = read(end.number, into: &buffer, from: 0), part > 0
            {
                sum += part
            }
            total.withLock { $0 = sum }
            isRead.signal()
        }
        for _ in 0..<count { append(packet, to: file) }
        isRead.wait()
        #expect(file.failure == nil)
        #expect(total.withLock { $0 } == 16 + count * (24 + packet.count))
        // The reader has stopped reading.
        stop.cancel()
        for _ in 0..<1000 where file.failure == nil { append(packet, to: file) }
        #expect(file.failure == .captureFile(path, errno: EAGAIN))
    }

    // MARK: The clock

    @Test(
        "that sets the realtime clock changes neither the order nor the distance of packets",
        arguments: [7200, -7200]
    )
    func settingTheClockDoesNotChangeTheTimesOfPackets(seconds: Int) throws {
        let file = try CaptureFile(path: path)
        append(Sample.reset, to: file)
        let trial = FaultRun([Fault(.clock, .isAhead(seconds: seconds))]) {
            #expect(abs(wallClock().tv_sec - time(nil)) > 3600)
            append(Sample.reset, to: file)
        }
        append(Sample.reset, to: file)
        #expect(trial.unused.isEmpty)
        var times: [CaptureTime] = []
        var reader = try CaptureFileReader(path: path)
        while let record = try reader.next() {
            if let time = record.time { times.append(time) }
        }
        #expect(times.count == 3)
        #expect(times == times.sorted())
        #expect((times.last?.seconds ?? 0) - (times.first?.seconds ?? 0) < 3600)
    }

    // MARK: Reading

    @Test(
        "makes reading fail with its reason, or is overcome",
        arguments: [
            (Fault(.open, .fails(ENOENT)), ENOENT), (Fault(.open, .fails(EMFILE)), EMFILE),
            (Fault(.open, .fails(EINTR), count: 3), nil), (Fault(.read, .fails(EIO)), EIO),
            (Fault(.read, .fails(EIO), after: 1), EIO), (Fault(.read, .fails(EINTR), count: 3), nil),
            (Fault(.read, .fails(EAGAIN), count: 3), nil), (Fault(.read, .transfers(1)), nil),
            (Fault(.poll, .fails(ENOMEM)), ENOMEM), (Fault(.poll, .fails(EINTR), count: 3), nil),
            (Fault(.eventfd, .fails(EMFILE)), nil), (Fault(.close, .fails(EIO)), nil),
        ] as [(Fault, Int32?)]
    )
    func readingFailsWithItsReason(fault: Fault, errno: Int32?) throws {
        let path = path
        let file = try CaptureFile(path: path)
        for _ in 0..<3 { append(Sample.acl, to: file) }
        FaultCase(fault, error: errno.map { CaptureFileError.unreadable(path: path, errno: $0) }).run {
            let count = try countRecords()
            #expect(count == 3)
        }
    }

    @Test("makes the reading of standard input fail with its reason")
    func standardInputFailsWithItsReason() {
        FaultCase(
            Fault(.fcntl, .fails(EMFILE)),
            error: CaptureFileError.unreadable(path: "standard input", errno: EMFILE)
        ).run { _ = try CaptureFileReader.standardInput() }
        #expect(
            CaptureFileError.unreadable(path: "/c", errno: EMFILE).description
                == "cannot read /c: Too many open files; raise the limit of open files with `ulimit -n`"
        )
    }
}
