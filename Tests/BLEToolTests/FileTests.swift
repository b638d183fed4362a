import ArgumentParser
import Foundation
import Glibc
import Testing

@testable import BLETool

@Suite("A file that is read whole")
final class FileTests {
    private let path = FileManager.default.temporaryDirectory.path + "/file-\(UUID().uuidString)"

    deinit { try? FileManager.default.removeItem(atPath: path) }

    @Test("Its bytes are returned, however many blocks they need")
    func wholeFileIsReturned() async throws {
        let content = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
        try Data(content).write(to: URL(fileURLWithPath: path))
        #expect(try await File.read(path) == content)
    }

    @Test("A file that is too long is an error")
    func longFileIsAnError() async throws {
        try Data(count: File.greatestLength + 1).write(to: URL(fileURLWithPath: path))
        let error = await #expect(throws: FileError.self) { try await File.read(self.path) }
        #expect(error.map { "\($0)" } == "\(path): longer than 4 MB")
    }

    @Test("A cancelled task does not wait for the writer of a pipe")
    func cancelledTaskDoesNotWaitForTheWriterOfAPipe() async throws {
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let reading = Task { [path] in try await File.read(path) }
        reading.cancel()
        await #expect(throws: CancellationError.self) { try await reading.value }
        // A thread that waits for a writer gets one.
        let descriptor = unsafe open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        close(descriptor)
    }

    @Test("A cancelled task does not wait for a file that is being opened")
    func cancelledTaskDoesNotWaitForAnOpen() async {
        let (begun, start) = AsyncStream<Void>.makeStream()
        let otherEnd = DispatchSemaphore(value: 0)
        let opening = Task {
            try await openCancellably { () throws(FileError) -> Void in
                start.finish()
                otherEnd.wait()
            }
        }
        for await _ in begun {}
        opening.cancel()
        await #expect(throws: CancellationError.self) { try await opening.value }
        otherEnd.signal()
    }

    /// The task may be cancelled before it waits. See the test above for one that waits.
    @Test(
        "A cancelled transfer does not wait for the other end of a pipe",
        arguments: ["--input", "--output", "--send", "--receive"]
    )
    func cancelledTransferDoesNotWaitForTheOtherEndOfAPipe(option: String) async throws {
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let opening = Task { [path] in
            switch option {
            case "--input": _ = try await ChannelOptions.parse([option, path]).openFiles()
            case "--output": _ = try await ChannelOptions.parse(["--input", "/dev/null", option, path]).openFiles()
            default: _ = try await StreamFileOptions.parse([option, path]).openFiles()
            }
        }
        opening.cancel()
        // A thread that waits for the other end gets one.
        let descriptor = unsafe open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        defer { close(descriptor) }
        await #expect(throws: CancellationError.self) { try await opening.value }
    }

    @Test("A cancelled task does not wait for the end of a pipe")
    func cancelledTaskDoesNotWaitForTheEndOfAPipe() async throws {
        #expect(unsafe mkfifo(path, 0o600) == 0)
        // While the pipe is open for writing, it has no end.
        let descriptor = unsafe open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        defer { close(descriptor) }
        #expect(unsafe write(descriptor, [UInt8(ascii: "{")], 1) == 1)
        let reading = Task { [path] in try await File.read(path) }
        var unread: Int32 = 1
        while unread > 0 {
            await Task.yield()
            #expect(unsafe ioctl(descriptor, UInt(FIONREAD), &unread) == 0)
        }
        reading.cancel()
        await #expect(throws: CancellationError.self) { try await reading.value }
    }
}
