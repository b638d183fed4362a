/// Lines that are written together.
struct LineBatch {
    /// The lines, each with its line break.
    let bytes: [UInt8]
    /// Whether a line break comes first, after a line that was written in part.
    private let beginsWithBreak: Bool

    /// - Parameter isAfterIncompleteLine: whether the last line before was written in part.
    init(_ lines: some Collection<String>, isAfterIncompleteLine: Bool) {
        beginsWithBreak = isAfterIncompleteLine
        bytes = Array((isAfterIncompleteLine ? "\n" : "").utf8) + lines.flatMap { Array($0.utf8) + [0x0A] }
    }

    /// The number of lines that are lost if only so many bytes are written.
    func lostCount(afterWriting count: Int) -> Int {
        let breakCount = bytes.dropFirst(count).count { $0 == 0x0A }
        return beginsWithBreak && count == 0 ? breakCount - 1 : breakCount
    }

    /// Whether the last line is incomplete if only so many bytes are written.
    func isIncomplete(afterWriting count: Int) -> Bool {
        count == 0 ? beginsWithBreak : bytes[count - 1] != 0x0A
    }
}
