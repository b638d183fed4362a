/// A queue of SDUs that wait to be sent or read, and their cost in memory.
struct SDUQueue {
    /// The cost of an SDU besides its bytes, so that empty SDUs are not free.
    static let overhead = 32

    private var units = Queue<[UInt8]>()
    /// The cost in bytes, including the overhead of each SDU.
    private(set) var cost = 0

    var count: Int { units.count }

    var isEmpty: Bool { units.isEmpty }

    var first: [UInt8]? { units.first }

    mutating func append(_ unit: consuming [UInt8]) {
        cost += unit.count + SDUQueue.overhead
        units.append(unit)
    }

    mutating func popFirst() -> [UInt8]? {
        guard let unit = units.popFirst() else { return nil }
        cost -= unit.count + SDUQueue.overhead
        return unit
    }

    mutating func removeAll() -> [[UInt8]] {
        cost = 0
        return units.removeAll()
    }
}
