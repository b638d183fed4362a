import FoundationEssentials
import Glibc

/// A small file that is replaced as a whole. If the program or the machine stops at any moment, the file holds either
/// all of the newest contents or all of the contents before.
///
/// Only its owner can read it. Calls block, so they belong on a queue that may be blocked.
package struct StateFile: Hashable, Sendable {
    /// The steps of replacing a file, in this order.
    package enum Step: CaseIterable, Sendable {
        case create
        case write
        case synchronizeFile
        case rename
        case synchronizeDirectory
    }

    /// The contents of a file.
    package struct Contents: Hashable, Sendable {
        package let data: Data
        /// The file's mode, if users other than its owner could read or change it.
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

    /// Returns the contents of the file; nil if it does not exist.
    package func read() throws(StateFileError) -> Contents? {
        // Without blocking, because it may be a pipe without a writer.
        let descriptor = uninterrupted { unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
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
        guard unsafe fstat(descriptor, &status) == 0 else { throw .failed("read", path) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .notRegular(path) }
        guard status.st_uid == geteuid() else { throw .foreign(path, owner: status.st_uid) }
        let mode = status.st_mode & 0o777
        return Contents(data: try read(descriptor), laxMode: mode & 0o077 == 0 ? nil : mode)
    }

    private func read(_ descriptor: Int32) throws(StateFileError) -> Data {
        var contents = Data()
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while contents.count <= sizeLimit {
            let count = uninterrupted { unsafe Glibc.read(descriptor, &buffer, buffer.count) }
            guard count >= 0 else { throw .failed("read", path) }
            if count == 0 { return contents }
            contents.append(contentsOf: buffer.prefix(count))
        }
        throw .tooLarge(path, limit: sizeLimit)
    }

    /// Lets only the owner read and write the file.
    package func tighten() throws(StateFileError) {
        guard unsafe chmod(path, 0o600) == 0 else { throw .failed("change the mode of", path) }
    }

    /// Checks, by the owner and the mode of the directory, that only this user and root can replace the file.
    ///
    /// Only the directory itself is checked, not its parents. A directory that does not exist is made by
    /// ``replace(with:isDurable:stoppingBefore:)``, with a mode of 0700.
    package func checkDirectory() throws(StateFileError) {
        var status = stat()
        guard unsafe stat(directory, &status) == 0 else {
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

    /// Replaces the contents of the file; makes its directory if it does not exist.
    ///
    /// - Parameters:
    ///   - isDurable: whether the contents survive a loss of power after this call. A file that is not durable holds
    ///     the old or the new contents after a crash of the process.
    ///   - step: the step before which to stop, as a crash would; for tests.
    /// - Throws: ``StateFileError/tooLarge(_:limit:)`` for contents that could not be read again; nothing is written
    ///   then.
    package func replace(
        with contents: Data,
        isDurable: Bool = true,
        stoppingBefore step: Step? = nil
    ) throws(StateFileError) {
        guard contents.count <= sizeLimit else { throw .tooLarge(path, limit: sizeLimit) }
        if step == .create { return }
        try makeDirectory()
        if let entries = try? StateDirectory.names(in: directory) {
            StateFile.removeLeftovers(among: entries, in: directory) { $0 == name }
        }
        let temporary = "\(path).\(getpid()).new"
        unsafe unlink(temporary)
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = uninterrupted { unsafe open(temporary, flags, 0o600) }
        guard descriptor >= 0 else { throw .failed("create", temporary) }
        do throws(StateFileError) {
            guard try fill(descriptor, temporary, with: contents, isDurable, stoppingBefore: step) else { return }
            guard unsafe Glibc.rename(temporary, path) == 0 else { throw .failed("replace", path) }
        } catch {
            unsafe unlink(temporary)
            throw error
        }
        if step == .synchronizeDirectory || !isDurable { return }
        try StateFile.synchronize(directory: directory)
    }

    /// Writes the temporary file and closes it.
    ///
    /// - Returns: whether to continue with the next step.
    private func fill(
        _ descriptor: Int32,
        _ temporary: String,
        with contents: Data,
        _ isDurable: Bool,
        stoppingBefore step: Step?
    ) throws(StateFileError) -> Bool {
        var isOpen = true
        defer { if isOpen { close(descriptor) } }
        if step == .write { return false }
        try write(contents, to: descriptor, temporary)
        if step == .synchronizeFile { return false }
        guard !isDurable || uninterrupted({ fsync(descriptor) }) == 0 else { throw .failed("synchronize", temporary) }
        isOpen = false
        // Some file systems report only now that a write has failed. The descriptor is closed in any case.
        guard close(descriptor) == 0 || errno == EINTR else { throw .failed("write", temporary) }
        return step != .rename
    }

    private func write(_ contents: Data, to descriptor: Int32, _ path: String) throws(StateFileError) {
        var rest = contents[...]
        while !rest.isEmpty {
            let count = uninterrupted {
                unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
            }
            guard count >= 0 else { throw .failed("write", path) }
            // A device that accepts nothing would otherwise be tried without end.
            guard count > 0 else { throw .failed("write", path, errno: EIO) }
            rest = rest.dropFirst(count)
        }
    }

    /// Makes the directory and its parents if they do not exist.
    func makeDirectory() throws(StateFileError) {
        try StateFile.makeDirectory(directory)
    }

    private static func makeDirectory(_ path: String) throws(StateFileError) {
        if unsafe mkdir(path, 0o700) == 0 { return try synchronizeParent(ofNew: path) }
        switch errno {
        case EEXIST:
            var status = stat()
            guard unsafe stat(path, &status) == 0 else { throw .failed("make", path) }
            guard status.st_mode & S_IFMT == S_IFDIR else { throw .failed("make", path, errno: ENOTDIR) }
        case ENOENT where parent(of: path) != path:
            try makeDirectory(parent(of: path))
            // Not a recursive call, which might not end: in some places `mkdir` fails with ENOENT although the parent
            // exists.
            if unsafe mkdir(path, 0o700) == 0 { return try synchronizeParent(ofNew: path) }
            guard errno == EEXIST else { throw .failed("make", path) }
        default: throw .failed("make", path)
        }
    }

    /// Makes a new directory survive a crash, or removes it again, so that the next attempt does not take it for one
    /// that survives. A parent that this user may change but not read cannot be synchronized, and need not be.
    private static func synchronizeParent(ofNew path: String) throws(StateFileError) {
        let parent = parent(of: path)
        do throws(StateFileError) {
            try synchronize(directory: parent)
        } catch {
            if error == .failed("open", parent, errno: EACCES) { return }
            unsafe rmdir(path)
            throw error
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
        let descriptor = uninterrupted { unsafe open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw .failed("open", directory) }
        defer { close(descriptor) }
        guard uninterrupted({ fsync(descriptor) }) == 0 else { throw .failed("synchronize", directory) }
    }

    /// Removes unfinished files of processes that have ended. The caller writes no such file at the same time.
    ///
    /// - Parameters:
    ///   - entries: the names of the directory's entries.
    ///   - isIncluded: whether to remove the unfinished files for the file with this name.
    static func removeLeftovers(
        among entries: [String],
        in directory: String,
        where isIncluded: (Substring) -> Bool
    ) {
        for entry in entries where entry.hasSuffix(".new") {
            // The name of the file, a period and the process.
            let parts = entry.dropLast(4)
            guard let period = parts.lastIndex(of: "."), isIncluded(parts[..<period]),
                let process = pid_t(parts[parts.index(after: period)...])
            else { continue }
            // A file with the number of this process is that of an earlier one, as in a container.
            if process == getpid() || kill(process, 0) != 0 && errno == ESRCH {
                unsafe unlink("\(directory)/\(entry)")
            }
        }
    }

    // MARK: Damage

    /// Gives the file's contents a second name, unless that was done before.
    ///
    /// - Returns: the path of that name.
    package func copyAside() throws(StateFileError) -> String {
        for number in 1...1000 {
            let other = "\(path).damaged-\(number)"
            // A link fails if the name is taken; a rename would not. The file is never changed, only replaced.
            if unsafe link(path, other) == 0 { return other }
            guard errno == EEXIST else { break }
            var (this, that) = (stat(), stat())
            if unsafe lstat(path, &this) == 0, unsafe lstat(other, &that) == 0, this.st_ino == that.st_ino,
                this.st_dev == that.st_dev
            {
                return other
            }
        }
        throw .failed("set aside", path)
    }
}
