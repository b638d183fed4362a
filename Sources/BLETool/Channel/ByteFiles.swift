import Dispatch
import Glibc
import Synchronization

/// A file or standard input, read in blocks.
final class ByteInput: Sendable {
    private static let length = 16384

    private let descriptor: Int32
    /// The path, or the words "standard input".
    let path: String
    private let queue = DispatchQueue(label: "ble.input")

    /// - Parameters:
    ///   - path: nil for standard input.
    ///   - followsLinks: whether the path may be a symbolic link; otherwise that is an error.
    init(_ path: String?, followsLinks: Bool = true) throws(FileError) {
        self.path = path ?? "standard input"
        let flags = O_RDONLY | O_CLOEXEC | (followsLinks ? 0 : O_NOFOLLOW)
        descriptor = path.map { unsafe open($0, flags) } ?? STDIN_FILENO
        guard descriptor >= 0 else {
            throw unsafe FileError(path: self.path, problem: String(cString: strerror(errno)))
        }
    }

    deinit {
        if descriptor != STDIN_FILENO { close(descriptor) }
    }

    /// Opens a file, also a named pipe that nobody has opened for writing yet: that open waits for a writer.
    ///
    /// - Throws: ``FileError``, or `CancellationError` at once if the task is cancelled.
    static func opened(_ path: String?, followsLinks: Bool = true) async throws -> ByteInput {
        try await openCancellably { () throws(FileError) in try ByteInput(path, followsLinks: followsLinks) }
    }

    /// Returns the next bytes; none at the end, or if the task is cancelled.
    ///
    /// The reading thread may stay blocked after a cancellation, but no task waits for it.
    func next() async throws -> [UInt8] {
        let reply = Reply<[UInt8]>()
        return try await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                reply.wait(continuation)
                if Task.isCancelled { return reply.give(.success([])) }
                queue.async { [self] in reply.give(read()) }
            }
        } onCancel: {
            reply.give(.success([]))
        }.get()
    }

    private func read() -> Result<[UInt8], FileError> {
        var octets = [UInt8](repeating: 0, count: ByteInput.length)
        while true {
            let count = unsafe octets.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 { return .success(Array(octets.prefix(count))) }
            if errno == EAGAIN {
                var readiness = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                _ = unsafe poll(&readiness, 1, -1)
            } else if errno != EINTR {
                return unsafe .failure(FileError(path: path, problem: String(cString: strerror(errno))))
            }
        }
    }
}

/// Opens a file on another thread, because a named pipe waits there for its other end.
///
/// The thread may stay blocked after a cancellation, but no task waits for it.
///
/// - Throws: the error of `open`, or `CancellationError` at once if the task is cancelled.
func openCancellably<Opened: Sendable>(
    _ open: @escaping @Sendable () throws(FileError) -> Opened
) async throws -> Opened {
    let reply = Reply<Opened?>()
    let opened = try await withTaskCancellationHandler {
        await withCheckedContinuation { (continuation: Reply<Opened?>.Continuation) in
            reply.wait(continuation)
            if Task.isCancelled { return reply.give(.success(nil)) }
            // The threads of a global queue are those of tasks. A blocked one would delay them.
            DispatchQueue(label: "ble.open").async {
                do throws(FileError) {
                    reply.give(.success(try open()))
                } catch {
                    reply.give(.failure(error))
                }
            }
        }
    } onCancel: {
        reply.give(.success(nil))
    }.get()
    guard let opened else { throw CancellationError() }
    return opened
}

/// A single-use result: only the first answer reaches the waiting task.
private final class Reply<Value: Sendable>: Sendable {
    typealias Continuation = CheckedContinuation<Result<Value, FileError>, Never>

    private let continuation = Mutex<Continuation?>(nil)

    func wait(_ continuation: Continuation) {
        self.continuation.withLock { $0 = continuation }
    }

    func give(_ result: Result<Value, FileError>) {
        let waiting = continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
        waiting?.resume(returning: result)
    }
}

/// A file or standard output, written in blocks.
final class ByteOutput: Sendable {
    private let descriptor: Int32
    private let path: String?

    /// - Parameter path: nil for standard output.
    init(_ path: String?) throws(FileError) {
        self.path = path
        descriptor = path.map { unsafe open($0, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666) } ?? STDOUT_FILENO
        if let path, descriptor < 0 { throw unsafe FileError(path: path, problem: String(cString: strerror(errno))) }
    }

    deinit {
        if descriptor != STDOUT_FILENO { close(descriptor) }
    }

    /// Opens a file, also a named pipe without a reader: that open waits for a reader.
    ///
    /// - Throws: ``FileError``, or `CancellationError` at once if the task is cancelled.
    static func opened(_ path: String?) async throws -> ByteOutput {
        try await openCancellably { () throws(FileError) in try ByteOutput(path) }
    }

    func write(_ octets: [UInt8]) throws {
        guard let path else { return try Output.standard.write(octets) }
        if let failure = Output.write(octets, to: descriptor) {
            throw unsafe FileError(path: path, problem: String(cString: strerror(failure.errno)))
        }
    }
}
