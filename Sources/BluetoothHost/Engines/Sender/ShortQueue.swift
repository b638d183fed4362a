import DequeModule

/// A queue that usually holds at most one element. The first element is stored in the queue itself, so that it needs no
/// allocation and no reference counting.
struct ShortQueue<Element> {
    /// Nil only if the queue is empty.
    private var first: Element?
    private var rest = Deque<Element>()

    var isEmpty: Bool { first == nil }

    var count: Int { first == nil ? 0 : 1 + rest.count }

    mutating func append(_ element: consuming Element) {
        if first == nil { first = consume element } else { rest.append(consume element) }
    }

    mutating func prepend(_ element: consuming Element) {
        if let second = first.take() { rest.prepend(second) }
        first = consume element
    }

    mutating func popFirst() -> Element? {
        let element = first.take()
        if !rest.isEmpty { first = rest.popFirst() }
        return element
    }

    mutating func removeAll() {
        first = nil
        rest.removeAll()
    }

    /// The sum of a number for each element.
    func sum(of number: (Element) -> Int) -> Int {
        rest.reduce(first.map(number) ?? 0) { $0 + number($1) }
    }
}

extension ShortQueue where Element: Equatable {
    /// Removes all elements that are equal to `element`. The others keep their order.
    mutating func removeAll(_ element: Element) {
        rest.removeAll { $0 == element }
        if first == element { first = rest.popFirst() }
    }
}
