import BLEByteCoding
import BLECapture
import CBLEBluetooth
import Glibc

/// Reads a capture from a file. Its memory does not grow with the file's length.
///
///     var file = try CaptureFileReader(path: "trace.btsnoop")
///     while let record = try file.next() { print(record.number) }
public struct CaptureFileReader: ~Copyable {
    private static let blockLength = 256 * 1024

    /// The path of the file, or a name for standard input.
    public let path: String
    private let descriptor: OwnedDescriptor
    private let stop: CancellationToken
    private var reader = CaptureReader()
    private var block = [UInt8](repeating: 0, count: CaptureFileReader.blockLength)

    /// Opens a file, which may be a pipe.
    ///
    /// - Parameters:
    ///   - path: the file's path.
    ///   - stop: ends the records before the file does.
    /// - Throws: ``CaptureFileError/unreadable(path:errno:)`` if it cannot be opened. Errors in its content are thrown
    ///   by ``next(beforeWaiting:)``.
    public init(path: String, stop: CancellationToken = CancellationToken()) throws(CaptureFileError) {
        // Otherwise the opening of a pipe would wait for its writer, which `stop` could not end. `next` waits instead.
        try self.init(unsafe ble_open(path, O_RDONLY | O_NONBLOCK, 0), path: path, stop)
    }

    /// Reads from standard input.
    ///
    /// - Parameter stop: ends the records before the input does.
    public static func standardInput(
        stop: CancellationToken = CancellationToken()
    ) throws(CaptureFileError) -> CaptureFileReader {
        try CaptureFileReader(ble_duplicate(STDIN_FILENO), path: "standard input", stop)
    }

    /// - Parameter result: a descriptor, or a negative errno.
    private init(_ result: Int32, path: String, _ stop: CancellationToken) throws(CaptureFileError) {
        guard result >= 0 else { throw .unreadable(path: path, errno: -result) }
        descriptor = OwnedDescriptor(result)
        self.path = path
        self.stop = stop
    }

    /// The capture's format, once the first record has been read.
    public var format: CaptureFormat? { reader.format }

    /// The number of records read.
    public var recordCount: UInt64 { reader.recordCount }

    /// Returns the next record, or nil at the end of the file or when reading is stopped.
    ///
    /// - Parameter beforeWaiting: called if no more bytes are available yet, as in a pipe.
    /// - Throws: ``CaptureFileError`` if the file is not a capture, is damaged, or cannot be read. Earlier records are
    ///   valid.
    @_lifetime(&self)
    public mutating func next(beforeWaiting: () -> Void = {}) throws(CaptureFileError) -> CaptureRecord? {
        guard try advance(beforeWaiting) else { return nil }
        return reader.record
    }

    private mutating func advance(_ beforeWaiting: () -> Void) throws(CaptureFileError) -> Bool {
        while true {
            do throws(CaptureReadingError) {
                switch try reader.advance() {
                case .record: return true
                case .end: return false
                case .needsBytes: break
                }
            } catch {
                throw .invalid(path: path, error)
            }
            guard try wait(beforeWaiting) else { return false }
            switch read(descriptor.number, into: &block, from: 0) {
            case .success(0): reader.finish()
            case .success(let count):
                let block = block
                reader.append(block.rawSpan.extracting(first: count))
            // A descriptor passed to this process may be non-blocking.
            case .failure(let error) where error.wouldBlock: continue
            case .failure(let error): throw .unreadable(path: path, errno: error.code)
            }
        }
    }
}

extension CaptureFileReader {
    private func wait(_ beforeWaiting: () -> Void) throws(CaptureFileError) -> Bool {
        do throws(Errno) {
            return try stop.wait(for: descriptor.number, beforeWaiting: beforeWaiting)
        } catch {
            throw .unreadable(path: path, errno: error.code)
        }
    }
}

/// The reason why a capture file cannot be read, or not any further.
public enum CaptureFileError: Error, Equatable, Sendable {
    /// The system cannot open or read the file.
    case unreadable(path: String, errno: Int32)
    /// The bytes of the file are not a capture, or are damaged.
    case invalid(path: String, CaptureReadingError)
}

extension CaptureFileError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unreadable(let path, let errno):
            "cannot read \(path): \(describeWithAdvice(errno))"
        case .invalid(let path, let error): "\(path) is \(error)"
        }
    }
}
