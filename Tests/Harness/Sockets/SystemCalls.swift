import Glibc

/// The error of a failed system call, with the system's description.
struct SystemError: Error, Equatable, CustomStringConvertible {
    let code: Int32

    static var last: SystemError { SystemError(code: errno) }

    var wouldBlock: Bool { code == EAGAIN || code == EWOULDBLOCK }

    var description: String { strerror(code).map { String(cString: $0) } ?? "error \(code)" }
}

/// A file descriptor that is closed with its last owner.
final class Descriptor {
    let number: Int32

    init(_ number: Int32) throws(SystemError) {
        guard number >= 0 else { throw SystemError.last }
        self.number = number
    }

    deinit {
        _ = Glibc.close(number)
    }
}

/// Repeats a call that was interrupted by a signal.
func uninterrupted(_ call: () -> Int) throws(SystemError) -> Int {
    while true {
        let result = call()
        if result >= 0 { return result }
        if errno != EINTR { throw SystemError.last }
    }
}

func readFile(_ path: String) -> Result<[UInt8], SystemError> {
    Result { () throws(SystemError) in
        let file = try Descriptor(open(path, O_RDONLY | O_CLOEXEC))
        var octets: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while case let count = try uninterrupted({ read(file.number, &buffer, buffer.count) }), count > 0 {
            octets += buffer.prefix(count)
        }
        return octets
    }
}

/// Makes calls on a descriptor return immediately instead of blocking.
func setNonBlocking(_ descriptor: Descriptor) {
    _ = fcntl(descriptor.number, F_SETFL, fcntl(descriptor.number, F_GETFL) | O_NONBLOCK)
}

/// A new temporary folder, removed with its contents on deinitialization.
final class TemporaryFolder {
    let path: String

    init() throws(SystemError) {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/hci-harness-XXXXXX".utf8CString)
        guard let made = template.withUnsafeMutableBufferPointer({ $0.baseAddress.flatMap { mkdtemp($0) } }) else {
            throw SystemError.last
        }
        path = String(cString: made)
    }

    deinit {
        TemporaryFolder.remove(path)
    }

    private static func remove(_ path: String) {
        if let directory = opendir(path) {
            while let entry = readdir(directory) {
                let name = withUnsafeBytes(of: &entry.pointee.d_name) { octets in
                    String(decoding: octets.prefix { $0 != 0 }, as: UTF8.self)
                }
                // Symbolic links are removed, not followed.
                if name != ".", name != "..", unlink(path + "/" + name) != 0 { remove(path + "/" + name) }
            }
            closedir(directory)
        }
        rmdir(path)
    }
}
