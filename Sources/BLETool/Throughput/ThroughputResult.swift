import Profiles

/// What is done again and again.
enum ThroughputOperation: String, CaseIterable, Sendable {
    case read
    case write
    case writeWithoutResponse = "write-without-response"
    case notify

    /// What has a response takes turns with it; what has none goes as fast as the link takes it.
    var hasResponse: Bool { self == .read || self == .write }
}

/// How often an operation was done in a time, and what it cost both processes.
struct ThroughputResult: Equatable, Sendable {
    var operation: ThroughputOperation
    /// How often it was done; without a response, how much of it arrived.
    var count: Int
    /// Of each value.
    var octets: Int
    var duration: Duration
    /// In microseconds, for what has a response.
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
            "octets": .integer(octets),
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
        "OPERATION", "OCTETS", "PER SECOND", "KB/S", "P50 US", "P99 US", "CPU US HERE", "THERE",
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
    /// What was used from one time to a later one, and what is in memory at the later.
    static func - (later: ProcessUsage, earlier: ProcessUsage) -> ProcessUsage {
        ProcessUsage(
            processorMicroseconds: later.processorMicroseconds &- earlier.processorMicroseconds,
            contextSwitches: later.contextSwitches &- earlier.contextSwitches,
            residentKibibytes: later.residentKibibytes
        )
    }
}
