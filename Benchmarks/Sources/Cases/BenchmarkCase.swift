import CCounters
import Synchronization

/// A measured operation, under its name in the stored baseline.
public struct BenchmarkCase: Sendable {
    /// Performs `operations` operations. The measured part lies between the meter's start and stop.
    public typealias Body = @Sendable (_ operations: Int, _ meter: Meter) throws -> Void

    /// The limits of a case, per operation.
    public struct Budget: Sendable {
        /// Maximum number of allocations.
        public var allocations: Double?
        /// Maximum ratio of instructions to those of the C baseline.
        public var ratio: Double?
        /// Minimum number of operations per second.
        public var rate: Double?

        public init(allocations: Double? = nil, ratio: Double? = nil, rate: Double? = nil) {
            self.allocations = allocations
            self.ratio = ratio
            self.rate = rate
        }
    }

    public let name: String
    /// Number of operations of a timed run; a run that counts instructions performs fewer.
    public let operations: Int
    /// Number of operations of a run that counts instructions.
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

/// A result that a case has not produced.
struct MissingResult: Error, CustomStringConvertible {
    let result: String

    init(_ result: String) { self.result = result }

    var description: String { "missing: \(result)" }
}

/// The cost of one run of a case, between start and stop.
public struct Reading: Sendable {
    public var nanoseconds: UInt64 = 0
    public var allocations: UInt64 = 0
    public var bytes: UInt64 = 0
    /// Other figures of a case, by name: bytes of memory and the like.
    public var figures: [(name: String, value: Double)] = []
}

/// Reads the clock and the counters at the start and the end of the measured part.
public final class Meter: Sendable {
    private let name: String
    private let onStart: @Sendable () -> Void
    private let onStop: @Sendable () -> Void
    /// When the measured part began. Atomic, because a lock would add its cost to the measured part.
    private let begun = Atomic<UInt64>(0)
    private let result = Mutex(Reading())

    /// - Parameters:
    ///   - name: the name of the run in callgrind's file.
    ///   - onStart: called immediately before the measured part.
    ///   - onStop: called immediately after the measured part.
    public init(
        name: String,
        onStart: @escaping @Sendable () -> Void = {},
        onStop: @escaping @Sendable () -> Void = {}
    ) {
        self.name = name
        self.onStart = onStart
        self.onStop = onStop
    }

    public var reading: Reading { result.withLock { $0 } }

    public func start() {
        onStart()
        allocation_counting_begin()
        instruction_counting_begin()
        begun.store(monotonic_nanoseconds(), ordering: .relaxed)
    }

    public func stop() {
        let end = monotonic_nanoseconds()
        instruction_counting_end(name)
        let counts = allocation_counting_end()
        onStop()
        result.withLock { reading in
            reading.nanoseconds = end - begun.load(ordering: .relaxed)
            reading.allocations = counts.allocations
            reading.bytes = counts.bytes
        }
    }

    /// Adds a value that the case itself has measured.
    public func tell(_ name: String, _ value: Double) {
        result.withLock { $0.figures.append((name, value)) }
    }
}

extension BenchmarkCase {
    /// All cases, in the order of the table.
    public static var all: [BenchmarkCase] {
        attributeProtocol + framing + advertisingReports + securityManager + identifiers + scanning + attributes
            + enhancedBearers + scale + channels + periodicAdvertising + coreBluetooth + runtime
    }
}
