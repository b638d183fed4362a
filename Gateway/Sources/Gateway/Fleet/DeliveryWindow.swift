import DequeModule

/// Elements that are sent in their order, and of which a limited number is not confirmed.
struct DeliveryWindow<Element> {
    private struct Entry {
        let element: Element
        /// The number of connections on which the element was not confirmed in time.
        var overdueCount = 0
    }

    private struct Delivery {
        let number: Int32
        let sent: Duration
        var entry: Entry
    }

    /// How an element that was not confirmed in time is handled.
    enum Overdue {
        /// End the connection: the element is sent again on the next one.
        case reconnect
        /// The element was removed, because it was not confirmed in time on ``overdueLimit`` connections.
        case removed(Element)
    }

    /// The number of connections on which an element may be overdue.
    static var overdueLimit: Int { 3 }

    private let limit: Int
    private let timeout: Duration
    private var waiting: Deque<Entry> = []
    private var unconfirmed: [Delivery] = []
    /// The number of connections that were lost with unconfirmed elements since an element was confirmed.
    private(set) var fruitlessConnectionCount = 0

    /// - Parameters:
    ///   - limit: the greatest number of elements that are sent and not confirmed.
    ///   - timeout: the time in which an element should be confirmed.
    init(limit: Int, timeout: Duration) {
        self.limit = limit
        self.timeout = timeout
    }

    /// The number of elements that are not confirmed.
    var count: Int { waiting.count + unconfirmed.count }

    /// Adds an element after the others.
    mutating func append(_ element: Element) { waiting.append(Entry(element: element)) }

    /// Sends elements until too many are not confirmed.
    ///
    /// - Parameters:
    ///   - now: the time, since any moment.
    ///   - send: sends an element; returns the number of its delivery, nil if it cannot be sent now.
    mutating func sendAll(at now: Duration, _ send: (Element) -> Int32?) {
        while unconfirmed.count < limit, let entry = waiting.first {
            guard let number = send(entry.element) else { return }
            waiting.removeFirst()
            unconfirmed.append(Delivery(number: number, sent: now, entry: entry))
        }
    }

    /// Removes an element that was delivered, and returns it; nil if there is no such one.
    mutating func confirm(_ number: Int32) -> Element? {
        guard let index = unconfirmed.firstIndex(where: { $0.number == number }) else { return nil }
        fruitlessConnectionCount = 0
        return unconfirmed.remove(at: index).entry.element
    }

    /// Looks at the element that has waited longest for its confirmation.
    ///
    /// - Returns: how it is handled; nil if it is not overdue.
    mutating func checkOverdue(at now: Duration) -> Overdue? {
        guard let oldest = unconfirmed.first, now - oldest.sent >= timeout else { return nil }
        guard oldest.entry.overdueCount + 1 < Self.overdueLimit else {
            return .removed(unconfirmed.removeFirst().entry.element)
        }
        unconfirmed[0].entry.overdueCount += 1
        return .reconnect
    }

    /// Makes the elements that were not confirmed wait again, before the others.
    mutating func connectionLost() {
        if !unconfirmed.isEmpty { fruitlessConnectionCount += 1 }
        waiting.insert(contentsOf: unconfirmed.map(\.entry), at: 0)
        unconfirmed = []
    }

    /// Removes and returns the element that is sent first on the next connection; nil if there is none.
    mutating func removeFirst() -> Element? {
        fruitlessConnectionCount = 0
        return waiting.popFirst()?.element
    }
}
