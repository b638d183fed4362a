import Glibc

/// The file to which bonds are exported.
enum ExportFile {
    /// Writes a new file, which only its owner can read. An existing file is an error.
    static func write(_ octets: [UInt8], to path: String) throws(FileError) {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw FileError(path: path, problem: errno == EEXIST ? "the file exists already" : problem(errno))
        }
        defer { close(descriptor) }
        if let failure = Output.write(octets, to: descriptor) {
            unsafe unlink(path)
            throw FileError(path: path, problem: problem(failure.errno))
        }
        guard fsync(descriptor) == 0 || errno == EINVAL else { throw FileError(path: path, problem: problem(errno)) }
    }

    private static func problem(_ errno: Int32) -> String { unsafe String(cString: strerror(errno)) }
}
