import DequeModule

/// Elements that are sent in their order, and of which a limited number is not confirmed.
struct DeliveryWindow<Element> {
    private let limit: Int
    private var waiting: Deque<Element> = []
    private var unconfirmed: [(delivery: Int32, element: Element)] = []
    /// The number of connections that were lost with unconfirmed elements since an element was confirmed.
    private(set) var fruitlessConnectionCount = 0

    /// - Parameter limit: the greatest number of elements that are sent and not confirmed.
    init(limit: Int) {
        self.limit = limit
    }

    /// The number of elements that are not confirmed.
    var count: Int { waiting.count + unconfirmed.count }

    /// Adds an element after the others.
    mutating func append(_ element: Element) { waiting.append(element) }

    /// Sends elements until too many are not confirmed.
    ///
    /// - Parameter send: sends an element; returns the number of its delivery, nil if it cannot be sent now.
    mutating func sendAll(_ send: (Element) -> Int32?) {
        while unconfirmed.count < limit, let element = waiting.first {
            guard let delivery = send(element) else { return }
            waiting.removeFirst()
            unconfirmed.append((delivery, element))
        }
    }

    /// Removes an element that was delivered, and returns it; nil if there is no such one.
    mutating func confirm(_ delivery: Int32) -> Element? {
        guard let index = unconfirmed.firstIndex(where: { $0.delivery == delivery }) else { return nil }
        fruitlessConnectionCount = 0
        return unconfirmed.remove(at: index).element
    }

    /// Makes the elements that were not confirmed wait again, before the others.
    mutating func connectionLost() {
        if !unconfirmed.isEmpty { fruitlessConnectionCount += 1 }
        waiting.insert(contentsOf: unconfirmed.map(\.element), at: 0)
        unconfirmed = []
    }

    /// Removes and returns the element that is sent first on the next connection; nil if there is none.
    mutating func removeFirst() -> Element? {
        fruitlessConnectionCount = 0
        return waiting.popFirst()
    }
}
