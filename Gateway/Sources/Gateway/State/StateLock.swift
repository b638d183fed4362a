import Foundation

/// A lock that gives the use of a state directory to one gateway at a time.
///
/// The lock ends with its owner, also after a crash. The programs that the process starts do not inherit it.
final class StateLock: Sendable {
    private let descriptor: Int32

    /// Takes the lock of a directory that exists.
    ///
    /// - Throws: ``StateError`` if another gateway has the lock, or if it cannot be taken.
    init(_ directory: StateDirectory) throws(StateError) {
        let path = directory.lockPath
        let flags = O_CREAT | O_CLOEXEC | O_NOFOLLOW
        // NFS requires write access for the lock. Local file systems do not: after a run by root, other users can only
        // read the file, and lock it nevertheless.
        var descriptor = open(path, O_RDWR | flags, 0o644)
        if descriptor < 0, errno == EACCES { descriptor = open(path, O_RDONLY | flags, 0o644) }
        guard descriptor >= 0 else { throw .failed("the directory cannot be locked", path, errno) }
        // The umask may have removed the permission of other users to read the file. Only the owner can restore it.
        fchmod(descriptor, 0o644)
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let number = errno
            close(descriptor)
            guard number == EWOULDBLOCK else { throw .failed("the directory cannot be locked", path, number) }
            throw StateError(
                path: directory.path,
                failure: "another gateway runs with this state directory",
                advice: "stop it, or name another directory with --state-dir"
            )
        }
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }
}
