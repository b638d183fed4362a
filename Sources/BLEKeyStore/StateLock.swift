import Glibc

/// A lock that gives one user at a time exclusive use of a file in the state directory. Without it, each of several
/// users would undo the changes of the others.
///
/// The lock is on a second file beside it, because the file itself is replaced by each change. The lock ends with its
/// owner, even after a crash; the second file stays.
final class StateLock: Sendable {
    private let descriptor: Int32

    /// Maximum number of attempts to take the lock, because a program that has just been stopped may still hold it.
    static let patience = 25
    private static let pause: useconds_t = 20_000

    init(_ file: StateFile) throws(StateFileError) {
        try file.makeDirectory()
        let path = file.path + ".lock"
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        let descriptor = uninterrupted { unsafe open(path, flags, 0o600) }
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
        // The second user reports which process uses the file, or none if it cannot be written. An earlier owner must
        // not remain there.
        let process = Array("\(getpid())\n".utf8)
        let written = uninterrupted { unsafe pwrite(descriptor, process, process.count, 0) }
        _ = uninterrupted { ftruncate(descriptor, written == process.count ? process.count : 0) }
    }

    deinit {
        close(descriptor)
    }

    private static func owner(_ descriptor: Int32) -> pid_t? {
        var text = [UInt8](repeating: 0, count: 16)
        let count = uninterrupted { unsafe pread(descriptor, &text, text.count, 0) }
        guard count > 0 else { return nil }
        return pid_t(String(decoding: text.prefix(count).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }
}
