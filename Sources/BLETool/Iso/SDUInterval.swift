import ArgumentParser

/// The time between two SDUs of a stream, as people give it: in milliseconds, with up to three decimals.
struct SDUInterval: ExpressibleByArgument {
    static let bounds: ClosedRange<Duration> = .microseconds(255) ... .milliseconds(1000)

    let duration: Duration

    /// Returns nil for other text, and for an interval out of ``bounds``.
    init?(argument: String) {
        guard let milliseconds = Double(argument), (0...1000).contains(milliseconds) else { return nil }
        let duration = Duration.microseconds(Int((milliseconds * 1000).rounded()))
        guard SDUInterval.bounds.contains(duration) else { return nil }
        self.duration = duration
    }

    init(_ duration: Duration) {
        self.duration = duration
    }

    var defaultValueDescription: String { "\(duration / .milliseconds(1))" }

    /// The longest time for an SDU: three intervals in whole milliseconds, at least 40 ms. Framed PDUs need two.
    var latency: Duration { max(.milliseconds(40), .milliseconds(Int((duration * 3 / .milliseconds(1)).rounded(.up)))) }
}
