import DequeModule
import GatewayCore

/// The observations that wait for the queue of the publisher, with their numbers.
///
/// The queue takes some of them at a time. Between two turns, it handles what the broker has confirmed: if it took all
/// at once, a flood of observations would leave no time to send them. If too many wait, the oldest are dropped, before
/// they cost more. Their numbers are missing, so a consumer notices.
struct ObservationIntake {
    /// The greatest number of observations that wait.
    static let limit = 4096
    /// The number of observations that are taken at a time: as many as the broker may leave unconfirmed.
    static let turnLimit = Outbox.window

    private var waiting: Deque<SensorObservation> = []
    /// The number of the last observation.
    private var lastNumber: UInt64 = 0
    /// Whether a turn of the queue is to come.
    private var isTurnPending = false
    private(set) var droppedCount: UInt64 = 0

    var isEmpty: Bool { waiting.isEmpty }

    /// - Returns: whether the caller is to give the queue a turn.
    mutating func append(_ observation: SensorObservation) -> Bool {
        lastNumber += 1
        waiting.append(observation)
        if waiting.count > Self.limit {
            waiting.removeFirst()
            droppedCount += 1
        }
        defer { isTurnPending = true }
        return !isTurnPending
    }

    /// Takes the oldest observations.
    ///
    /// - Returns: the observations, the number of the first one, and whether the caller is to give the queue another
    ///   turn.
    mutating func take() -> (observations: [SensorObservation], firstNumber: UInt64, needsTurn: Bool) {
        let observations = Array(waiting.prefix(Self.turnLimit))
        let firstNumber = lastNumber - UInt64(waiting.count) + 1
        waiting.removeFirst(observations.count)
        isTurnPending = !waiting.isEmpty
        return (observations, firstNumber, isTurnPending)
    }
}
