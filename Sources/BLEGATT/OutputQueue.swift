/// A first-in, first-out queue of an engine's outputs for its owner.
///
/// The first element is stored in place: one output at a time, the usual case for packets, allocates nothing.
///
/// The queue is an object, and its first element is only loaded and stored. So the runtime need not check that accesses
/// to it do not overlap. It does so for a structure that an object changes in place.
final class OutputQueue<Element> {
    private var first: Element?
    /// Whether there are elements after the first.
    private var hasOthers = false
    /// The elements after the first. Those before `head` are taken.
    private var others: [Element?] = []
    private var head = 0

    @inline(__always)
    var isEmpty: Bool { first == nil }

    /// The element that was appended last and is still in the queue.
    var last: Element? { others.last ?? first }

    @inline(__always)
    func append(_ element: Element) {
        if first == nil {
            first = element
        } else {
            others.append(element)
            hasOthers = true
        }
    }

    /// Removes and returns the oldest element.
    @inline(__always)
    func take() -> Element? {
        guard let element = first else { return nil }
        first = hasOthers ? takeOther() : nil
        return element
    }

    @inline(never)
    private func takeOther() -> Element? {
        let element = others[head].take()
        head += 1
        if head == others.count {
            others = []
            head = 0
            hasOthers = false
        }
        return element
    }
}
