import ByteCoding
import Capture
import Glibc

/// A file or standard input, read in large pieces.
struct CaptureInput: ~Copyable {
    private static let chunkLength = 1 << 18

    /// Why no more could be read, if that was not the end.
    private(set) var failure: FileError?
    /// Whether more may be long in coming, as from a pipe.
    let isSlow: Bool
    private let path: String
    private let descriptor: Int32
    private var chunk = [UInt8](repeating: 0, count: CaptureInput.chunkLength)

    /// - Parameter path: `-` is standard input.
    init(_ path: String) throws(FileError) {
        self.path = path
        descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileError(path: path, problem: String(cString: strerror(errno))) }
        var status = stat()
        isSlow = fstat(descriptor, &status) != 0 || status.st_mode & S_IFMT != S_IFREG
    }

    deinit {
        if descriptor != STDIN_FILENO { close(descriptor) }
    }

    /// Gives the reader the next octets; false where there are no more.
    mutating func append(to reader: inout CaptureReader) -> Bool {
        while true {
            let count = chunk.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                reader.append(chunk.rawSpan.extracting(first: count))
                return true
            }
            if count == 0 { return false }
            if errno != EINTR {
                failure = FileError(path: path, problem: String(cString: strerror(errno)))
                return false
            }
        }
    }
}
