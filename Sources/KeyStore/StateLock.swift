import Glibc

/// Holds a file of the state directory for one user at a time: of several that would replace it, each would undo what the
/// others have written.
///
/// The lock lies on a file beside it, for the file itself is another one after each change. It ends with its owner, however
/// that ends; the file beside stays.
final class StateLock: Sendable {
    private let descriptor: Int32

    /// How long who still holds the lock may take to let it go, such as a program that has just been stopped.
    static let patience = 25
    private static let pause: useconds_t = 20_000

    init(_ file: StateFile) throws(StateFileError) {
        try file.makeDirectory()
        let path = file.path + ".lock"
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else { throw .failed("lock", path) }
        var attempts = 0
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let isHeld = errno == EWOULDBLOCK
            attempts += 1
            if errno == EINTR { continue }
            guard isHeld, attempts < StateLock.patience else {
                let error: StateFileError =
                    isHeld
                    ? .inUse(file.path, process: StateLock.owner(descriptor)) : .failed("lock", path)
                close(descriptor)
                throw error
            }
            usleep(StateLock.pause)
        }
        self.descriptor = descriptor
        // Who comes second is told by whom the file is used.
        let process = Array("\(getpid())\n".utf8)
        if ftruncate(descriptor, 0) == 0 { _ = pwrite(descriptor, process, process.count, 0) }
    }

    deinit {
        close(descriptor)
    }

    private static func owner(_ descriptor: Int32) -> pid_t? {
        var text = [UInt8](repeating: 0, count: 16)
        let count = pread(descriptor, &text, text.count, 0)
        guard count > 0 else { return nil }
        return pid_t(String(decoding: text.prefix(count).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }
}
