/// A bounded table that removes the least recently used entry when a new one needs its place.
///
/// All operations are O(1), except for ``values``. The entries form a doubly linked list in the order of their last
/// use.
struct RecencyTable<Key: Hashable, Value> {
    private struct Node {
        let key: Key
        var value: Value
        /// The entry that was used more recently.
        var newer: Int?
        /// The entry that was used less recently.
        var older: Int?
    }

    /// The greatest number of entries.
    let limit: Int
    /// The number of entries that were removed for new ones.
    private(set) var evictedCount: UInt64 = 0
    private var nodes: [Node?] = []
    private var freeIndices: [Int] = []
    private var indices: [Key: Int] = [:]
    private var newest: Int?
    private var oldest: Int?

    /// - Precondition: `limit` is positive.
    init(limit: Int) {
        precondition(limit > 0)
        self.limit = limit
    }

    var count: Int { indices.count }

    /// Changes the value for a key, which is the most recently used one then. Returns nil if there is none.
    mutating func use<Result>(_ key: Key, _ body: (inout Value) -> Result) -> Result? {
        guard let index = indices[key] else { return nil }
        if newest != index {
            unlink(index)
            link(index)
        }
        return body(&nodes[index]!.value)
    }

    /// Adds a value for a key that has none.
    mutating func insert(_ value: Value, for key: Key) {
        precondition(indices[key] == nil)
        if count == limit, let oldest, let node = nodes[oldest] {
            _ = remove(node.key)
            evictedCount += 1
        }
        let node = Node(key: key, value: value)
        let index: Int
        if let free = freeIndices.popLast() {
            index = free
            nodes[index] = node
        } else {
            index = nodes.count
            nodes.append(node)
        }
        indices[key] = index
        link(index)
    }

    /// Removes and returns the value for a key; nil if there is none.
    mutating func remove(_ key: Key) -> Value? {
        guard let index = indices.removeValue(forKey: key) else { return nil }
        unlink(index)
        defer {
            nodes[index] = nil
            freeIndices.append(index)
        }
        return nodes[index]?.value
    }

    /// The values, the most recently used one first.
    var values: [Value] {
        var values: [Value] = []
        values.reserveCapacity(count)
        var next = newest
        while let index = next, let node = nodes[index] {
            values.append(node.value)
            next = node.older
        }
        return values
    }

    /// Makes an unlinked entry the newest.
    private mutating func link(_ index: Int) {
        nodes[index]!.older = newest
        nodes[index]!.newer = nil
        if let newest { nodes[newest]!.newer = index }
        newest = index
        if oldest == nil { oldest = index }
    }

    private mutating func unlink(_ index: Int) {
        let (newer, older) = (nodes[index]!.newer, nodes[index]!.older)
        if let newer { nodes[newer]!.older = older } else { newest = older }
        if let older { nodes[older]!.newer = newer } else { oldest = newer }
    }
}
