import ByteCoding
import CBluetooth
import Capture
import Glibc

/// Reads a capture from a file, in the same memory however long it is.
///
///     var file = try CaptureFileReader(path: "trace.btsnoop")
///     while let record = try file.next() { print(record.number) }
public struct CaptureFileReader: ~Copyable {
    private static let blockLength = 128 * 1024

    /// The name that the file was opened by.
    public let path: String
    private let descriptor: OwnedDescriptor
    private var reader = CaptureReader()
    private var block = [UInt8](repeating: 0, count: CaptureFileReader.blockLength)

    /// Opens a file, which may be a pipe.
    ///
    /// - Throws: ``CaptureFileError/unreadable(path:errno:)`` where it cannot be opened. What it holds shows in ``next()``.
    public init(path: String) throws(CaptureFileError) {
        self.path = path
        descriptor = OwnedDescriptor(unsafe ble_open(path, O_RDONLY, 0))
        guard descriptor.number >= 0 else { throw .unreadable(path: path, errno: -descriptor.number) }
    }

    /// The capture's format, once the first record has been read.
    public var format: CaptureFormat? { reader.format }

    /// Where in the file the last record starts that was read.
    public var offset: UInt64 { reader.offset }

    /// How many records have been read.
    public var recordCount: UInt64 { reader.recordCount }

    /// The next record; nil at the end of the file.
    ///
    /// - Throws: where the file is no capture, is damaged, or cannot be read. The records before are good.
    @_lifetime(&self)
    public mutating func next() throws(CaptureFileError) -> CaptureRecord? {
        guard try advance() else { return nil }
        return reader.record
    }

    private mutating func advance() throws(CaptureFileError) -> Bool {
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
            switch read(descriptor.number, into: &block, from: 0) {
            case .success(0): reader.finish()
            case .success(let count):
                let block = block
                reader.append(block.rawSpan.extracting(first: count))
            case .failure(let error): throw .unreadable(path: path, errno: error.code)
            }
        }
    }
}

/// Why a capture file cannot be read, or no further.
public enum CaptureFileError: Error, Equatable, Sendable {
    /// The system does not give its octets.
    case unreadable(path: String, errno: Int32)
    /// Its octets are no capture, or damaged.
    case invalid(path: String, CaptureReadingError)
}

extension CaptureFileError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unreadable(let path, let errno): "cannot read \(path): \(describe(errno))"
        case .invalid(let path, let error): "\(path) is \(error)"
        }
    }
}
