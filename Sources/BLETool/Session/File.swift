import Glibc

/// Reads files that the user has named.
enum File {
    /// Maximum length of a profile in bytes. A profile is a page of text, so a larger file is an error.
    static let greatestLength = 4 << 20

    /// The file's bytes; `-` is standard input.
    ///
    /// - Parameter followsLinks: whether the path may be a symbolic link; otherwise that is an error.
    static func read(_ path: String, followsLinks: Bool = true) throws(FileError) -> [UInt8] {
        let flags = O_RDONLY | O_CLOEXEC | (followsLinks ? 0 : O_NOFOLLOW)
        let descriptor = unsafe path == "-" ? STDIN_FILENO : open(path, flags)
        guard descriptor >= 0 else { throw unsafe FileError(path: path, problem: String(cString: strerror(errno))) }
        defer { if descriptor != STDIN_FILENO { close(descriptor) } }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                bytes += chunk.prefix(count)
                guard bytes.count <= greatestLength else {
                    throw FileError(path: path, problem: "longer than \(greatestLength >> 20) MB")
                }
            } else if count == 0 {
                return bytes
            } else if errno != EINTR {
                throw unsafe FileError(path: path, problem: String(cString: strerror(errno)))
            }
        }
    }
}

extension File {
    /// Makes a folder for files, unless it exists.
    static func makeFolder(_ path: String) throws(FileError) {
        guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw unsafe FileError(path: path, problem: String(cString: strerror(errno)))
        }
        // With the dot, a file of that name is an error.
        guard unsafe access(path + "/.", W_OK | X_OK) == 0 else {
            throw unsafe FileError(path: path, problem: String(cString: strerror(errno)))
        }
    }
}

/// A file that cannot be used.
struct FileError: Error, CustomStringConvertible {
    let path: String
    let problem: String

    var description: String { "\(path): \(problem)" }
}
