import FoundationEssentials
import Glibc

/// A small file that is replaced as a whole: whatever stops the program or the machine, at any moment, it holds all that was
/// written last or all that was written before.
///
/// Only its owner can read it. Calls block; they belong on a queue where that is no harm.
package struct StateFile: Hashable, Sendable {
    /// What replacing a file does, in this order.
    package enum Step: CaseIterable, Sendable {
        case create
        case write
        case synchronizeFile
        case rename
        case synchronizeDirectory
    }

    /// What a file held.
    package struct Contents: Hashable, Sendable {
        package let data: Data
        /// The file's mode, where others than its owner could read or change it.
        package let laxMode: mode_t?
    }

    package let directory: String
    package let name: String

    /// The largest file that is read or written, in bytes.
    package let sizeLimit: Int

    package init(directory: String, name: String, sizeLimit: Int = 16 << 20) {
        self.directory = directory
        self.name = name
        self.sizeLimit = sizeLimit
    }

    package var path: String { directory + "/" + name }

    // MARK: Reading

    /// What the file holds; nil where there is none.
    package func read() throws(StateFileError) -> Contents? {
        // Without waiting, for it may be a pipe that nobody writes to.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            switch errno {
            case ENOENT: return nil
            case ELOOP: throw .symbolicLink(path)
            // A socket.
            case ENXIO: throw .notRegular(path)
            default: throw .failed("read", path)
            }
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .failed("read", path) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .notRegular(path) }
        guard status.st_uid == geteuid() else { throw .foreign(path, owner: status.st_uid) }
        let mode = status.st_mode & 0o777
        return Contents(data: try read(descriptor), laxMode: mode & 0o077 == 0 ? nil : mode)
    }

    private func read(_ descriptor: Int32) throws(StateFileError) -> Data {
        var contents = Data()
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while contents.count <= sizeLimit {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .failed("read", path) }
            if count == 0 { return contents }
            contents.append(contentsOf: buffer.prefix(count))
        }
        throw .tooLarge(path, limit: sizeLimit)
    }

    /// Makes the file its owner's alone.
    package func tighten() throws(StateFileError) {
        guard chmod(path, 0o600) == 0 else { throw .failed("change the mode of", path) }
    }

    /// Checks that nobody but this user and root can replace the file: by the owner and the mode of its directory.
    ///
    /// Only the directory itself is checked, not those that it is in. A directory that does not exist is made by
    /// ``replace(with:isDurable:stoppingBefore:)``, with a mode of 0700.
    package func checkDirectory() throws(StateFileError) {
        var status = stat()
        guard stat(directory, &status) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return }
            throw .failed("read", directory)
        }
        guard status.st_uid == geteuid() || status.st_uid == 0 else {
            throw .foreignDirectory(directory, owner: status.st_uid)
        }
        let mode = status.st_mode & 0o7777
        guard mode & 0o022 == 0 else { throw .laxDirectory(directory, mode: mode) }
    }

    // MARK: Replacing

    /// Replaces what the file holds; its directory is made where it is not there.
    ///
    /// - Parameters:
    ///   - isDurable: whether the contents survive a loss of power after this call. A file that is not durable holds the
    ///     old or the new contents after a crash of the process.
    ///   - step: where to stop, as a crash would; for tests.
    /// - Throws: ``StateFileError/tooLarge(_:limit:)`` for contents that could not be read again; nothing is written then.
    package func replace(
        with contents: Data,
        isDurable: Bool = true,
        stoppingBefore step: Step? = nil
    ) throws(StateFileError) {
        guard contents.count <= sizeLimit else { throw .tooLarge(path, limit: sizeLimit) }
        if step == .create { return }
        try makeDirectory()
        removeLeftovers()
        let temporary = "\(path).\(getpid()).new"
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .failed("create", temporary) }
        defer { close(descriptor) }
        do throws(StateFileError) {
            if step == .write { return }
            try write(contents, to: descriptor, temporary)
            if step == .synchronizeFile { return }
            guard !isDurable || fsync(descriptor) == 0 else { throw .failed("synchronize", temporary) }
            if step == .rename { return }
            guard Glibc.rename(temporary, path) == 0 else { throw .failed("replace", path) }
        } catch {
            unlink(temporary)
            throw error
        }
        if step == .synchronizeDirectory || !isDurable { return }
        try StateFile.synchronize(directory: directory)
    }

    private func write(_ contents: Data, to descriptor: Int32, _ path: String) throws(StateFileError) {
        var rest = contents[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .failed("write", path) }
            rest = rest.dropFirst(count)
        }
    }

    /// Makes the directory, and those that it is in, where they are not there.
    func makeDirectory() throws(StateFileError) {
        try StateFile.makeDirectory(directory)
    }

    private static func makeDirectory(_ path: String) throws(StateFileError) {
        if mkdir(path, 0o700) == 0 {
            // It is there after a crash only where the directory that it is in says so.
            return try synchronize(directory: parent(of: path))
        }
        switch errno {
        case EEXIST:
            var status = stat()
            guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                throw .failed("make", path, errno: ENOTDIR)
            }
        case ENOENT where parent(of: path) != path:
            try makeDirectory(parent(of: path))
            // Not by another call: there are places where nothing can be made though they are there.
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .failed("make", path) }
            try synchronize(directory: parent(of: path))
        default: throw .failed("make", path)
        }
    }

    private static func parent(of path: String) -> String {
        var rest = path[...]
        while rest.count > 1, rest.last == "/" { rest.removeLast() }
        guard let slash = rest.lastIndex(of: "/") else { return "." }
        rest = rest[..<slash]
        while rest.last == "/" { rest.removeLast() }
        return rest.isEmpty ? "/" : String(rest)
    }

    static func synchronize(directory: String) throws(StateFileError) {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .failed("open", directory) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw .failed("synchronize", directory) }
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

    /// Keeps what the file holds now under another name too, unless that was done before.
    ///
    /// - Returns: the other path.
    package func copyAside() throws(StateFileError) -> String {
        for number in 1...1000 {
            let other = "\(path).damaged-\(number)"
            // A link fails where the name is taken, which a rename would not; the file is never changed, only replaced.
            if link(path, other) == 0 { return other }
            guard errno == EEXIST else { break }
            var (this, that) = (stat(), stat())
            if lstat(path, &this) == 0, lstat(other, &that) == 0, this.st_ino == that.st_ino, this.st_dev == that.st_dev
            {
                return other
            }
        }
        throw .failed("set aside", path)
    }
}
