import BLEByteCoding
import DequeModule

/// The bytes that the kernel has not accepted yet, in order, in the pieces to be written.
struct WriteBacklog {
    private var pieces = Deque<[UInt8]>()
    /// The number of bytes of the first piece already written.
    private var written = 0
    /// The number of waiting bytes.
    private(set) var octets = 0

    var isEmpty: Bool { pieces.isEmpty }

    mutating func append(_ bytes: RawSpan) {
        pieces.append([UInt8](copying: bytes))
        octets += bytes.byteCount
    }

    mutating func removeAll() {
        pieces.removeAll()
        written = 0
        octets = 0
    }

    /// Writes with `write` until nothing is left, or until an error, which it returns.
    mutating func flush(_ write: (RawSpan) -> Result<Int, Errno>) -> Errno? {
        while let piece = pieces.first {
            switch write(piece.rawSpan.extracting(droppingFirst: written)) {
            case .success(let count):
                octets -= count
                written += count
                if written >= piece.count {
                    pieces.removeFirst()
                    written = 0
                }
            case .failure(let error):
                return error
            }
        }
        return nil
    }
}
