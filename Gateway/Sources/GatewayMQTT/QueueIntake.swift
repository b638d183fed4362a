import DequeModule

/// The elements that wait for the queue of the publisher, with their numbers.
///
/// The queue may be busy for long, for example with a slow disk. If too many elements wait, the oldest are dropped,
/// before they cost more. Their numbers are missing, so a consumer notices.
///
/// The queue takes some elements at a time. Between two turns, it handles what the broker has confirmed: if it took all
/// at once, a flood of elements would leave no time to send them.
struct QueueIntake<Element> {
    /// The greatest number of elements that are taken at a time: as many as the broker may leave unconfirmed.
    static var turnLimit: Int { Outbox.window }

    private let limit: Int
    private var waiting: Deque<Element> = []
    /// The number of the last element.
    private var lastNumber: UInt64 = 0
    /// Whether a turn of the queue is to come.
    private var isTurnPending = false
    private(set) var droppedCount: UInt64 = 0

    /// - Parameter limit: the greatest number of elements that wait.
    init(limit: Int) { self.limit = limit }

    var isEmpty: Bool { waiting.isEmpty }

    /// - Returns: whether the caller is to give the queue a turn.
    mutating func append(_ element: Element) -> Bool {
        lastNumber += 1
        waiting.append(element)
        if waiting.count > limit {
            waiting.removeFirst()
            droppedCount += 1
        }
        defer { isTurnPending = true }
        return !isTurnPending
    }

    /// Takes the oldest elements.
    ///
    /// - Returns: the elements, the number of the first one, and whether the caller is to give the queue another turn.
    mutating func take() -> (elements: [Element], firstNumber: UInt64, needsTurn: Bool) {
        let elements = Array(waiting.prefix(Self.turnLimit))
        let firstNumber = lastNumber - UInt64(waiting.count) + 1
        waiting.removeFirst(elements.count)
        isTurnPending = !waiting.isEmpty
        return (elements, firstNumber, isTurnPending)
    }
}
