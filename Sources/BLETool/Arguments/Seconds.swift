import BLEProfiles
import BluetoothTypes

/// A duration typed by the user: a number of seconds, or a number followed by `ms`, `s` or `min`.
struct Seconds: Hashable, Sendable {
    let duration: Duration

    init(_ duration: Duration) {
        self.duration = duration
    }

    init(argument text: String) throws(ArgumentProblem) {
        let units: [(String, nanoseconds: Double)] = [("ms", 1e6), ("min", 60e9), ("s", 1e9)]
        let unit = units.first { text.hasSuffix($0.0) }
        let number = text.dropLast(unit?.0.utf8.count ?? 0)
        guard number.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == ".") }), let value = Double(number) else {
            throw ArgumentProblem(
                "\"\(terminalSafe(text))\" is not a time: use seconds, as in 10 or 2.5, or 500ms, 2min"
            )
        }
        let nanoseconds = value * (unit?.nanoseconds ?? 1e9)
        guard nanoseconds >= 1e6, nanoseconds <= 1e9 * 86_400 * 365 else {
            throw ArgumentProblem("\"\(terminalSafe(text))\" is out of range: use a time from 1ms to a year")
        }
        duration = .nanoseconds(Int64(nanoseconds))
    }
}

extension Seconds: CustomStringConvertible {
    /// In seconds, as in `2.5 s`.
    var description: String {
        let milliseconds = duration.wholeNanoseconds / 1_000_000
        let (whole, rest) = milliseconds.quotientAndRemainder(dividingBy: 1000)
        guard rest != 0 else { return "\(whole) s" }
        var digits = String(1000 + rest).dropFirst()
        while digits.last == "0" { digits.removeLast() }
        return "\(whole).\(digits) s"
    }
}
