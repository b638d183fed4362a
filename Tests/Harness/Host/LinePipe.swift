import Glibc

/// The output of a process on one of its streams, line by line.
struct LinePipe {
    /// The number of recent lines that are kept for reports.
    private static let recentCount = 8
    /// The maximum length of a line in bytes; longer lines are cut.
    private static let longestLine = 1 << 20

    private let reader: Descriptor
    private var unfinished: [UInt8] = []
    private var lines: [String] = []
    private(set) var hasEnded = false
    /// The most recent lines, whether taken or not.
    private(set) var recent: [String] = []

    init(_ reader: Descriptor) {
        self.reader = reader
        setNonBlocking(reader)
    }

    var descriptor: Int32 { reader.number }

    mutating func receive() {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while !hasEnded {
            let count: Int
            do throws(SystemError) {
                count = try uninterrupted { read(reader.number, &buffer, buffer.count) }
            } catch {
                if !error.wouldBlock { hasEnded = true }
                return
            }
            if count == 0 {
                hasEnded = true
                if !unfinished.isEmpty { finishLine() }
            }
            for octet in buffer.prefix(count) {
                if octet == UInt8(ascii: "\n") {
                    finishLine()
                } else if unfinished.count < LinePipe.longestLine {
                    unfinished.append(octet)
                }
            }
        }
    }

    private mutating func finishLine() {
        let line = String(decoding: unfinished, as: UTF8.self)
        unfinished = []
        lines.append(line)
        recent = (recent + [line]).suffix(LinePipe.recentCount)
    }

    /// Removes the first line that contains a text, and all lines before it. Returns whether there was one.
    mutating func take(_ text: String) -> Bool {
        guard let index = lines.firstIndex(where: { $0.contains(text) }) else { return false }
        lines.removeFirst(index + 1)
        return true
    }
}

extension String {
    /// Whether this string contains another.
    fileprivate func contains(_ text: String) -> Bool {
        let (whole, part) = (Array(utf8), Array(text.utf8))
        guard part.count <= whole.count else { return false }
        return (0...(whole.count - part.count)).contains { whole[$0...].starts(with: part) }
    }
}
