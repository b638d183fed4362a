import BluetoothTypes
import HeapModule

/// A timer for the earliest deadline of an engine or a link.
///
/// A timer that is due before the deadline stays. When it fires, it finds nothing to do and is set again. So a deadline
/// that moves with each packet costs no timer for each packet.
struct DeadlineTimer {
    let token: TimerQueue.Token
    let due: Instant
}

/// The timers of one host: a heap with one alarm for the earliest timer.
///
/// Scheduling and firing cost O(log n). A cancelled timer stays in the heap, without its key, until it is due or until
/// most timers in the heap are cancelled.
struct TimerQueue {
    struct Token: Hashable {
        fileprivate let sequence: UInt64
    }

    /// An engine of the host with a deadline.
    enum Engine: Int, CaseIterable {
        /// The controller session: answers to commands, recovery and handles without a link.
        case session
        /// GAP: silent scans, attempts to connect and their turns, advertisements to start again, private addresses.
        case gap
    }

    private struct Entry: Comparable {
        let due: Instant
        let sequence: UInt64

        static func < (left: Entry, right: Entry) -> Bool {
            (left.due.nanoseconds, left.sequence) < (right.due.nanoseconds, right.sequence)
        }
    }

    /// This number of cancelled timers may stay in the heap in any case.
    private static let cancelledLimit = 64

    private var entries = Heap<Entry>()
    private var keys: [UInt64: TimerKey] = [:]
    private var nextSequence: UInt64 = 0
    /// The timers of the engines, in the order of their cases.
    private var engineTimers = [DeadlineTimer?](repeating: nil, count: Engine.allCases.count)
    /// The alarm of the host's loop, from when it is first needed.
    var alarm: (any Alarm)?
    /// When the alarm fires; nil if it is not set.
    private var alarmDue: Instant?

    /// The number of timers that are set and not cancelled.
    var count: Int { keys.count }

    /// The number of timers with those that were cancelled and are not due yet.
    var heapCount: Int { entries.count }

    /// Whether the alarm is set.
    var isAlarmSet: Bool { alarmDue != nil }

    /// When the next timer is due.
    var nextDue: Instant? {
        mutating get {
            while let entry = entries.min, keys[entry.sequence] == nil { entries.removeMin() }
            return entries.min?.due
        }
    }

    mutating func schedule(_ key: TimerKey, at due: Instant) -> Token {
        nextSequence += 1
        entries.insert(Entry(due: due, sequence: nextSequence))
        keys[nextSequence] = key
        return Token(sequence: nextSequence)
    }

    mutating func cancel(_ token: Token?) {
        guard let token else { return }
        keys[token.sequence] = nil
        if entries.count > 2 * keys.count + TimerQueue.cancelledLimit { removeCancelled() }
    }

    /// Removes the cancelled timers from the heap. Otherwise timers that are due in a day or a year, and are cancelled
    /// every few seconds, would accumulate.
    private mutating func removeCancelled() {
        entries = Heap(entries.unordered.filter { keys[$0.sequence] != nil })
    }

    /// Cancels all timers, and the alarm.
    ///
    /// - Returns: their keys, which the caller releases. Code of apps may run at the release.
    mutating func cancelAll() -> [TimerKey] {
        let cancelled = keys.values.map(\.self)
        keys.removeAll()
        entries = Heap()
        alarm?.set(nil)
        alarmDue = nil
        for index in engineTimers.indices { engineTimers[index] = nil }
        return cancelled
    }

    // MARK: Engines

    /// When the timer of an engine is due; nil if it is not set.
    func due(of engine: Engine) -> Instant? { engineTimers[engine.rawValue]?.due }

    /// Sets the timer of an engine to its deadline; for nil, cancels it.
    mutating func set(_ engine: Engine, to deadline: Instant?) {
        let timer = engineTimers[engine.rawValue]
        if let timer, let deadline, timer.due <= deadline { return }
        cancel(timer?.token)
        engineTimers[engine.rawValue] = deadline.map {
            DeadlineTimer(token: schedule(.engine(engine), at: $0), due: $0)
        }
    }

    /// Cancels the timer of an engine whose deadline is being handled, so that it can be set again.
    mutating func clear(_ engine: Engine) {
        set(engine, to: nil)
    }

    // MARK: The alarm

    /// The instant to which the alarm must be set now; nil if it fires early enough. An alarm that fires too early is
    /// set again.
    mutating func nextAlarm() -> Instant? {
        guard let due = nextDue else { return nil }
        if let alarmDue, alarmDue <= due { return nil }
        alarmDue = due
        return due
    }

    mutating func alarmFired() {
        alarmDue = nil
    }

    /// Removes and returns the key of the earliest timer that is due at `now`.
    mutating func takeDue(at now: Instant) -> TimerKey? {
        while let entry = entries.min, entry.due <= now {
            entries.removeMin()
            if let key = keys.removeValue(forKey: entry.sequence) { return key }
        }
        return nil
    }
}
