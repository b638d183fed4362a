import Foundation
import Glibc

/// A small file that is replaced as a whole: whatever stops the program or the machine, at any moment, it holds all that was
/// written last or all that was written before.
///
/// Only its owner can read it. Calls block; they belong on a queue where that is no harm.
package struct StateFile: Sendable {
    /// What replacing a file does, in this order.
    package enum Step: CaseIterable, Sendable {
        case create
        case write
        case synchronizeFile
        case rename
        case synchronizeDirectory
    }

    package let directory: String
    package let name: String

    /// How much of a file is read: more is no file of ours.
    static let sizeLimit = 16 << 20

    package init(directory: String, name: String) {
        self.directory = directory
        self.name = name
    }

    package var path: String { directory + "/" + name }

    // MARK: Reading

    /// What the file holds; nil where there is none.
    package func read() throws(StateFileError) -> Data? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw StateFileError("read", path)
        }
        defer { close(descriptor) }
        var contents = Data()
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while contents.count <= StateFile.sizeLimit {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw StateFileError("read", path) }
            if count == 0 { return contents }
            contents.append(contentsOf: buffer.prefix(count))
        }
        throw StateFileError("read", path, errno: EFBIG)
    }

    // MARK: Replacing

    /// Replaces what the file holds; its directory is made where it is not there.
    ///
    /// - Parameter step: where to stop, as a crash would; for tests.
    package func replace(with contents: Data, stoppingBefore step: Step? = nil) throws(StateFileError) {
        if step == .create { return }
        try makeDirectory()
        removeLeftovers()
        let temporary = "\(path).\(getpid()).new"
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw StateFileError("create", temporary) }
        defer { close(descriptor) }
        do throws(StateFileError) {
            if step == .write { return }
            try write(contents, to: descriptor, temporary)
            if step == .synchronizeFile { return }
            guard fsync(descriptor) == 0 else { throw StateFileError("synchronize", temporary) }
            if step == .rename { return }
            guard Glibc.rename(temporary, path) == 0 else { throw StateFileError("replace", path) }
        } catch {
            unlink(temporary)
            throw error
        }
        if step == .synchronizeDirectory { return }
        try synchronizeDirectory()
    }

    private func write(_ contents: Data, to descriptor: Int32, _ path: String) throws(StateFileError) {
        var rest = contents[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw StateFileError("write", path) }
            rest = rest.dropFirst(count)
        }
    }

    private func makeDirectory() throws(StateFileError) {
        var isDirectory: ObjCBool = false
        if FileManager.default.fileExists(atPath: directory, isDirectory: &isDirectory), isDirectory.boolValue {
            return
        }
        do {
            try FileManager.default.createDirectory(
                atPath: directory,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw StateFileError("make", directory, errno: EACCES)
        }
    }

    private func synchronizeDirectory() throws(StateFileError) {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw StateFileError("open", directory) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw StateFileError("synchronize", directory) }
    }

    /// Removes what programs that are no more had begun to write.
    private func removeLeftovers() {
        let prefix = name + "."
        for entry in (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        where entry.hasPrefix(prefix) && entry.hasSuffix(".new") {
            guard let process = pid_t(entry.dropFirst(prefix.count).dropLast(4)) else { continue }
            if kill(process, 0) != 0, errno == ESRCH { unlink("\(directory)/\(entry)") }
        }
    }

    // MARK: Damage

    /// Gives a file that cannot be understood another name, under which it is kept; says which.
    package func setAside() throws(StateFileError) -> String {
        for number in 1...1000 {
            let other = "\(path).damaged-\(number)"
            // A link fails where the name is taken, which a rename would not.
            if link(path, other) == 0 {
                unlink(path)
                return other
            }
            guard errno == EEXIST else { break }
        }
        throw StateFileError("set aside", path)
    }
}

/// What could not be done with a file, and why.
package struct StateFileError: Error, Hashable, Sendable, CustomStringConvertible {
    package let operation: String
    package let path: String
    package let errno: Int32

    init(_ operation: String, _ path: String, errno: Int32 = Glibc.errno) {
        self.operation = operation
        self.path = path
        self.errno = errno
    }

    package var description: String { "cannot \(operation) \(path): \(String(cString: strerror(errno)))" }
}
