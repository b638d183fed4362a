/// Entries that are found by their tokens in constant time, without hashing.
///
/// The place of a removed entry is used again under another generation. So a token finds its own entry or none, and the
/// memory is bounded by the greatest number of entries at one time. The generations of a place repeat after 2^32
/// entries.
struct SlotTable<Element> {
    fileprivate struct Slot {
        var generation: UInt32 = 0
        /// Nil if the place is free.
        var element: Element?
        /// The next free place if this one is free.
        var nextFree: Int?
    }

    private var slots: [Slot] = []
    private var firstFree: Int?
    /// The number of entries.
    private(set) var count = 0

    /// Adds an entry.
    ///
    /// - Complexity: amortized O(1).
    mutating func insert(_ element: Element) -> SlotToken {
        count += 1
        guard let index = firstFree else {
            slots.append(Slot(element: element))
            return SlotToken(index: UInt32(slots.count - 1), generation: 0)
        }
        firstFree = slots[index].nextFree
        slots[index].element = element
        return SlotToken(index: UInt32(index), generation: slots[index].generation)
    }

    /// The entry of a token; nil if it was removed.
    subscript(token: SlotToken) -> Element? {
        index(of: token).flatMap { slots[$0].element }
    }

    /// Changes the entry of a token. Does nothing if it was removed.
    mutating func update(_ token: SlotToken, _ change: (inout Element) -> Void) {
        guard let index = index(of: token), var element = slots[index].element.take() else { return }
        change(&element)
        slots[index].element = element
    }

    /// Replaces the entry of a token.
    ///
    /// - Returns: the entry that was replaced; nil if it was removed before.
    mutating func replace(_ token: SlotToken, with element: Element) -> Element? {
        guard let index = index(of: token) else { return nil }
        let replaced = slots[index].element.take()
        slots[index].element = element
        return replaced
    }

    /// Removes the entry of a token.
    ///
    /// - Returns: nil if it was removed before.
    @discardableResult
    mutating func remove(_ token: SlotToken) -> Element? {
        guard let index = index(of: token), let element = slots[index].element else { return nil }
        slots[index] = Slot(generation: token.generation &+ 1, element: nil, nextFree: firstFree)
        firstFree = index
        count -= 1
        return element
    }

    /// The place of a token's entry; nil if another entry is or was there since.
    private func index(of token: SlotToken) -> Int? {
        let index = Int(token.index)
        return index < slots.count && slots[index].generation == token.generation ? index : nil
    }

    /// The first entry that meets a condition, in the order of the places; nil if there is none.
    func firstElement(where isWanted: (Element) -> Bool) -> Element? {
        for slot in slots {
            if let element = slot.element, isWanted(element) { return element }
        }
        return nil
    }

    /// The tokens of the entries that meet a condition, in the order of their places.
    func tokens(where isWanted: (Element) -> Bool) -> [SlotToken] {
        slots.indices.compactMap { index in
            guard let element = slots[index].element, isWanted(element) else { return nil }
            return SlotToken(index: UInt32(index), generation: slots[index].generation)
        }
    }
}

extension SlotTable: Sendable where Element: Sendable {}
extension SlotTable.Slot: Sendable where Element: Sendable {}
