import Glibc

/// Reads files that the user has named.
enum File {
    /// Maximum length of a profile in bytes. A profile is a page of text, so a larger file is an error.
    static let greatestLength = 4 << 20

    /// The file's bytes; `-` is standard input.
    ///
    /// - Parameter followsLinks: whether the path may be a symbolic link; otherwise that is an error.
    /// - Throws: ``FileError``, or `CancellationError` at once if the task is cancelled: a person who types the input,
    ///   or the writer of a pipe, may never end it.
    static func read(_ path: String, followsLinks: Bool = true) async throws -> [UInt8] {
        let input = try await ByteInput.opened(path == "-" ? nil : path, followsLinks: followsLinks)
        var bytes: [UInt8] = []
        while true {
            let block = try await input.next()
            try Task.checkCancellation()
            guard !block.isEmpty else { return bytes }
            bytes += block
            guard bytes.count <= greatestLength else {
                throw FileError(path: path, problem: "longer than \(greatestLength >> 20) MB")
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
