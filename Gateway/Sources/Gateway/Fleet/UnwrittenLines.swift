import DequeModule

/// The lines that are not written yet, in their order. Of the first one, a part may be written.
struct UnwrittenLines {
    /// The greatest number of lines that are written at once.
    private static let batchLimit = 256

    private var lines: Deque<FleetOutput.Line> = []
    /// The number of bytes of the first line that are written.
    private var writtenCount = 0

    /// Adds lines after the others.
    mutating func append(_ new: [FleetOutput.Line]) { lines.append(contentsOf: new) }

    /// The bytes of some lines that are to be written next, with their line breaks; nil if there are no lines.
    var nextBytes: [UInt8]? {
        guard !lines.isEmpty else { return nil }
        var bytes: [UInt8] = []
        for line in lines.prefix(Self.batchLimit) {
            bytes += line.text.utf8
            bytes.append(UInt8(ascii: "\n"))
        }
        bytes.removeFirst(writtenCount)
        return bytes
    }

    /// Removes bytes that were written.
    ///
    /// - Parameter count: the number of bytes, at most that of ``nextBytes``.
    /// - Returns: the lines that are complete now.
    mutating func removeWritten(_ count: Int) -> [FleetOutput.Line] {
        writtenCount += count
        var complete: [FleetOutput.Line] = []
        while let line = lines.first, writtenCount > line.text.utf8.count {
            writtenCount -= line.text.utf8.count + 1
            lines.removeFirst()
            complete.append(line)
        }
        return complete
    }
}
