import ByteCoding
import DequeModule

/// What the kernel has not taken yet, in order, in the pieces in which it is to be written.
struct WriteBacklog {
    private var pieces = Deque<[UInt8]>()
    /// How much of the first piece has been written.
    private var written = 0
    /// How many octets wait.
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

    /// Writes with `write` until all is gone or an error comes, which is returned.
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
