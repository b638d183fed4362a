import Glibc

/// The reason why a file of the state directory cannot be used. The description says what to do if the system's message
/// does not. It does not say how to name another directory; see ``text(_:namingDirectoryWith:)``.
package enum StateFileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The system refused an operation.
    case system(operation: String, path: String, errno: Int32)
    /// The path is a symbolic link: replacing the file would replace the link.
    case symbolicLink(String)
    /// The path is a directory, a pipe or the like, not a regular file.
    case notRegular(String)
    /// The file belongs to another user, which controls its contents.
    case foreign(String, owner: uid_t)
    /// Another process, or another host of this one, uses the file.
    case inUse(String, process: pid_t?)
    /// The contents of the file are not valid state.
    case damaged(String)
    /// The file is of a later version of the format.
    case laterFormat(String)
    /// The file is, or would be, larger than the limit, in bytes. A larger file is neither read nor written.
    case tooLarge(String, limit: Int)
    /// Users other than the owner can replace files in the directory; the value is its mode.
    case laxDirectory(String, mode: mode_t)
    /// The directory belongs neither to this user nor to root.
    case foreignDirectory(String, owner: uid_t)

    static func failed(_ operation: String, _ path: String, errno: Int32 = Glibc.errno) -> StateFileError {
        .system(operation: operation, path: path, errno: errno)
    }

    private static let otherDirectory = "name another directory"

    /// Adds a variable or an option to each advice to name another directory, in a text with descriptions of errors.
    ///
    /// - Parameter means: the variable or the option; nil if the app has chosen the directory. The text stays as it is
    ///   then.
    package static func text(_ text: String, namingDirectoryWith means: String?) -> String {
        means.map { text.replacing(otherDirectory, with: "\(otherDirectory) with \($0)") } ?? text
    }

    /// What to do about an errno, if the system's message does not say it.
    private static func advice(_ errno: Int32) -> String {
        switch errno {
        case EMFILE: "; raise the limit of open files with `ulimit -n`"
        case ENFILE: "; close other programs, or raise the limit with `sysctl fs.file-max`"
        case ENOSPC, EDQUOT: "; free space, or \(otherDirectory)"
        case EROFS: "; \(otherDirectory)"
        case EIO: "; check the disk with `dmesg`"
        default: ""
        }
    }

    package var description: String {
        switch self {
        case .system(let operation, let path, let errno):
            unsafe "cannot \(operation) \(path): \(String(cString: strerror(errno)))\(StateFileError.advice(errno))"
        case .symbolicLink(let path):
            "\(path) is a symbolic link: put the file itself there, or \(StateFileError.otherDirectory)"
        case .notRegular(let path): "\(path) is not a regular file: move it away"
        case .foreign(let path, let owner):
            "\(path) belongs to user \(owner), not to user \(geteuid()) who runs this program: run it as that user, change the "
                + "owner, or \(StateFileError.otherDirectory)"
        case .inUse(let path, let process):
            "\(path) is in use by \(process.map { "process \($0)" } ?? "another process")"
        case .damaged(let path): "\(path) is damaged"
        case .laterFormat(let path): "\(path) is of a later version and is left as it is"
        case .tooLarge(let path, let limit): "\(path): File too large; the limit is \(limit >> 10) KB"
        case .laxDirectory(let path, let mode):
            "users other than the owner can change files in \(path) (mode \(String(mode, radix: 8))): make it safe with "
                + "`chmod go-w \(path)`, or \(StateFileError.otherDirectory)"
        case .foreignDirectory(let path, let owner):
            "\(path) belongs to user \(owner), not to user \(geteuid()) who runs this program: change the owner, or "
                + StateFileError.otherDirectory
        }
    }
}

/// Repeats a call that a signal interrupts.
func uninterrupted<Result: SignedInteger>(_ call: () -> Result) -> Result {
    while true {
        let result = call()
        if result >= 0 || errno != EINTR { return result }
    }
}
