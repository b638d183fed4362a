/// The log of an exchange. A failure report shows its last lines.
struct Journal {
    private static let shownCount = 16

    /// Whether each packet is printed immediately.
    var isShownAtOnce = false
    private let start = ContinuousClock.now
    private(set) var lines: [String] = []

    mutating func note(_ packet: [UInt8], fromHost: Bool) {
        note((fromHost ? "< " : "> ") + Description.packet(packet))
    }

    mutating func note(_ text: String) {
        let elapsed = start.duration(to: .now)
        let milliseconds = elapsed.components.seconds * 1000 + elapsed.components.attoseconds / 1_000_000_000_000_000
        let digits = String(milliseconds % 1000 + 1000).dropFirst()
        let line = "\(milliseconds / 1000).\(digits)  \(text)"
        if isShownAtOnce { printError("  " + line) }
        lines = (lines + [line]).suffix(Journal.shownCount)
    }
}
