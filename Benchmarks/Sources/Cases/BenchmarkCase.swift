import CCounters

/// One thing that is measured, under a name that the stored baseline knows it by.
public struct BenchmarkCase: Sendable {
    /// Does so many operations; what is to be measured of it lies between the meter's start and stop.
    public typealias Body = @Sendable (_ operations: Int, _ meter: Meter) throws -> Void

    /// What a budget says of a case, per operation.
    public struct Budget: Sendable {
        /// At most so many allocations.
        public var allocations: Double?
        /// At most so many times the instructions of the C baseline.
        public var ratio: Double?
        /// At least so many operations in a second.
        public var rate: Double?

        public init(allocations: Double? = nil, ratio: Double? = nil, rate: Double? = nil) {
            self.allocations = allocations
            self.ratio = ratio
            self.rate = rate
        }
    }

    public let name: String
    /// How many operations a timed run does; a run that counts instructions does a part of them.
    public let operations: Int
    /// How many operations a run does in which instructions are counted.
    public let countedOperations: Int
    public let budget: Budget
    /// The same work in C.
    public let baseline: Body?
    public let body: Body

    public init(
        _ name: String,
        operations: Int,
        countedOperations: Int? = nil,
        budget: Budget = Budget(),
        baseline: Body? = nil,
        body: @escaping Body
    ) {
        self.name = name
        self.operations = operations
        self.countedOperations = countedOperations ?? max(operations / 50, 1)
        self.budget = budget
        self.baseline = baseline
        self.body = body
    }
}

/// What one run of a case has cost between start and stop.
public struct Reading: Sendable {
    public var nanoseconds: UInt64 = 0
    public var allocations: UInt64 = 0
    public var bytes: UInt64 = 0
    /// What a case measures besides, by name: bytes of memory and the like.
    public var figures: [(name: String, value: Double)] = []
}

/// Reads clock and counters at the ends of what is measured.
public final class Meter: @unchecked Sendable {
    private let name: String
    private var begun: UInt64 = 0
    public private(set) var reading = Reading()

    /// - Parameter name: what callgrind's file calls the run.
    public init(name: String) {
        self.name = name
    }

    public func start() {
        allocation_counting_begin()
        instruction_counting_begin()
        begun = monotonic_nanoseconds()
    }

    public func stop() {
        let end = monotonic_nanoseconds()
        instruction_counting_end(name)
        let counts = allocation_counting_end()
        reading.nanoseconds = end - begun
        reading.allocations = counts.allocations
        reading.bytes = counts.bytes
    }

    /// Adds a figure of the case's own.
    public func tell(_ name: String, _ value: Double) {
        reading.figures.append((name, value))
    }
}

extension BenchmarkCase {
    /// All of them, in the order of the table.
    public static var all: [BenchmarkCase] {
        attributeProtocol + framing + advertisingReports + securityManager + identifiers + scanning + attributes
            + scale + channels
    }
}
