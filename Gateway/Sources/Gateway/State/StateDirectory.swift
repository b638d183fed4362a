import Foundation

/// The directory in which a gateway keeps its key, its bonds and its status socket. Only its owner and root can change
/// its files.
struct StateDirectory {
    let path: String

    /// The directory if no setting names one: the first of `$STATE_DIRECTORY`, which systemd sets,
    /// `/var/lib/ble-gateway` for root, `$XDG_STATE_HOME/ble-gateway` and `~/.local/state/ble-gateway`; nil without a
    /// home.
    static func defaultPath(environment: [String: String], isRoot: Bool) -> String? {
        func value(_ name: String) -> String? {
            environment[name].flatMap { $0.isEmpty ? nil : $0 }
        }
        if let directories = value("STATE_DIRECTORY") {
            return directories.split(separator: ":").first.map(String.init)
        }
        if isRoot { return "/var/lib/ble-gateway" }
        // A relative path must be ignored (XDG Base Directory Specification).
        if let directory = value("XDG_STATE_HOME"), directory.hasPrefix("/") { return "\(directory)/ble-gateway" }
        return value("HOME").map { "\($0)/.local/state/ble-gateway" }
    }

    /// Creates the directory with mode 0700 if it does not exist. Checks the owner and the mode of one that exists.
    ///
    /// From then on, only the owner can use new files of this process. This also restricts the files of messages for
    /// the broker that an earlier process has made.
    ///
    /// - Throws: ``StateError`` if the directory cannot be created, if it belongs to another user than this one and
    ///   root, or if other users can change its files.
    func create() throws(StateError) {
        // SQLite and others give their files no mode of their own.
        umask(0o077)
        do {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw StateError(path: path, failure: "the directory cannot be created", advice: Self.advice)
        }
        try checkAccess()
        for suffix in ["", "-wal", "-shm"] { try restrict("\(path)/mqtt.sqlite\(suffix)") }
    }

    /// Checks the directory as ``create()`` does, if it exists.
    func check() throws(StateError) {
        if access(path, F_OK) != 0, errno == ENOENT { return }
        try checkAccess()
    }

    /// Checks that only this user and root can change the files of the directory.
    private func checkAccess() throws(StateError) {
        var status = stat()
        guard stat(path, &status) == 0 else { throw .failed("the directory cannot be used", path, errno) }
        if let error = StateError.foreign("the directory", path, owner: status.st_uid) { throw error }
        let mode = status.st_mode & 0o7777
        guard mode & 0o022 == 0 else {
            throw StateError(
                path: path,
                failure: "other users can change files in the directory: its mode is \(String(mode, radix: 8))",
                advice: "run `chmod go-w \(path)`, or name another directory with --state-dir"
            )
        }
    }

    /// Lets only the owner use a file, if it exists.
    private func restrict(_ file: String) throws(StateError) {
        var status = stat()
        guard stat(file, &status) == 0, status.st_mode & 0o077 != 0 else { return }
        // SQLite may have removed the file by now.
        guard chmod(file, 0o600) == 0 || errno == ENOENT else {
            throw .failed("the mode of the file cannot be changed to 600", file, errno)
        }
    }

    /// The command that prints the key in this directory.
    ///
    /// - Parameters:
    ///   - environment: the environment of the user who runs the command. `$STATE_DIRECTORY` is ignored, because only a
    ///     service has it.
    ///   - isRoot: whether the user is root.
    func keyCommand(environment: [String: String], isRoot: Bool) -> String {
        let environment = environment.filter { $0.key != "STATE_DIRECTORY" }
        let isDefault = path == Self.defaultPath(environment: environment, isRoot: isRoot)
        return isDefault ? "ble-gateway key" : "ble-gateway key --state-dir \(path)"
    }

    /// The file with the encryption key.
    var keyFile: KeyFile { KeyFile(path: "\(path)/encryption.key") }

    /// The UNIX socket on which a running gateway reports its status.
    var statusSocketPath: String { "\(path)/status.sock" }

    /// The file of the lock that a running gateway has.
    var lockPath: String { "\(path)/lock" }

    /// The directory of the messages that `fleet` has not written yet.
    var fleetJournalPath: String { "\(path)/fleet" }

    fileprivate static let advice = "name a directory that this user can write to with --state-dir"
}

/// A failure to use the state directory.
struct StateError: Error, Equatable, CustomStringConvertible {
    let path: String
    let failure: String
    let advice: String

    /// A failed system call, with its error number.
    static func failed(_ action: String, _ path: String, _ number: Int32) -> StateError {
        let advice =
            switch number {
            case _ where isRefusal(number): "run the command as the user of the service, or \(StateDirectory.advice)"
            case ENOSPC, EDQUOT: "free some space there, or name another directory with --state-dir"
            default: StateDirectory.advice
            }
        return StateError(
            path: path,
            failure: "\(action): \(String(cString: strerror(number)))",
            advice: advice
        )
    }

    /// Returns the error of a file or a directory that belongs to another user than this one and root; nil for others.
    ///
    /// - Parameter what: the words for the file.
    static func foreign(_ what: String, _ path: String, owner: uid_t) -> StateError? {
        guard owner != geteuid(), owner != 0 else { return nil }
        return StateError(
            path: path,
            failure: "\(what) belongs to user \(owner), and this program runs as user \(geteuid())",
            advice: "run the command as that user, change the owner, or name another directory with --state-dir"
        )
    }

    /// Returns the error of a command about a running gateway if this user cannot use the gateway's directory; nil for
    /// other error numbers.
    static func refusal(_ path: String, _ number: Int32) -> StateError? {
        guard isRefusal(number) else { return nil }
        return StateError(
            path: path,
            failure: "this user cannot use the directory",
            advice: "run the command as the user of the service"
        )
    }

    private static func isRefusal(_ number: Int32) -> Bool { [EACCES, EPERM].contains(number) }

    var description: String { "\(path): \(failure); \(advice)" }
}
