import BLEProfiles

/// An operation that is measured by repeating it.
enum ThroughputOperation: String, CaseIterable, Sendable {
    case read
    case write
    case writeWithoutResponse = "write-without-response"
    case notify

    /// Whether the peer responds. If so, each operation waits for its response; otherwise the link sets the pace.
    var hasResponse: Bool { self == .read || self == .write }
}

/// The number of operations in a time, and their cost in both processes.
struct ThroughputResult: Equatable, Sendable {
    var operation: ThroughputOperation
    /// Number of operations; for operations without a response, the number of values that arrived.
    var count: Int
    /// Length of each value, in bytes.
    var octets: Int
    var duration: Duration
    /// In microseconds, for operations with a response.
    var median: Double?
    var percentile99: Double?
    var usage: ProcessUsage
    var peerUsage: ProcessUsage

    private var perSecond: Double { Double(count) / (duration / .seconds(1)) }

    private func each(_ amount: UInt64) -> Double { Double(amount) / Double(max(count, 1)) }

    var json: JSON {
        [
            "operation": .string(operation.rawValue),
            "count": .integer(count),
            "bytes": .integer(octets),
            "seconds": .decimal(duration / .seconds(1)),
            "perSecond": .decimal(perSecond),
            "p50": median.map { .decimal($0) } ?? .null,
            "p99": percentile99.map { .decimal($0) } ?? .null,
            "cpu": .decimal(each(usage.processorMicroseconds)),
            "switches": .decimal(each(usage.contextSwitches)),
            "resident": .integer(Int(clamping: usage.residentKibibytes)),
            "peerCPU": .decimal(each(peerUsage.processorMicroseconds)),
            "peerSwitches": .decimal(each(peerUsage.contextSwitches)),
            "peerResident": .integer(Int(clamping: peerUsage.residentKibibytes)),
        ]
    }

    static let columns = [
        "OPERATION", "BYTES", "PER SECOND", "KB/S", "P50 US", "P99 US", "CPU US HERE", "THERE",
    ]

    var row: [String] {
        [
            operation.rawValue, "\(octets)", "\(Int(perSecond.rounded()))",
            "\(Int((perSecond * Double(octets) / 1000).rounded()))",
            median.map { "\($0)" } ?? "", percentile99.map { "\($0)" } ?? "",
            oneDecimal(each(usage.processorMicroseconds)), oneDecimal(each(peerUsage.processorMicroseconds)),
        ]
    }

    private func oneDecimal(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
}

extension ProcessUsage {
    /// Returns the resources used between two times, and the memory in use at the later time.
    static func - (later: ProcessUsage, earlier: ProcessUsage) -> ProcessUsage {
        ProcessUsage(
            processorMicroseconds: later.processorMicroseconds &- earlier.processorMicroseconds,
            contextSwitches: later.contextSwitches &- earlier.contextSwitches,
            residentKibibytes: later.residentKibibytes
        )
    }
}
