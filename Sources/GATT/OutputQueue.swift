/// A first-in, first-out queue of what an engine puts out for its owner.
///
/// The first element is stored in place: one output at a time, as with most packets, allocates nothing.
struct OutputQueue<Element> {
    private var first: Element?
    /// The elements after the first. Those before `head` are taken.
    private var others: [Element?] = []
    private var head = 0

    var isEmpty: Bool { first == nil }

    /// The element that was appended last and is not taken yet.
    var last: Element? { others.last ?? first }

    mutating func append(_ element: Element) {
        if first == nil {
            first = element
        } else {
            others.append(element)
        }
    }

    /// Removes and returns the oldest element.
    mutating func take() -> Element? {
        guard let element = first.take() else { return nil }
        if !others.isEmpty { first = takeOther() }
        return element
    }

    private mutating func takeOther() -> Element? {
        let element = others[head].take()
        head += 1
        if head == others.count {
            others = []
            head = 0
        }
        return element
    }
}
