import BLEByteCoding
import CBaseline
import CCounters

/// The same work as a case in C: processes the samples, and returns a sum that proves it.
typealias Baseline = @Sendable @convention(c) (_ samples: CBaseline.samples, _ operations: Int) -> UInt64

/// Sixteen different packets of one length, so that no compiler can move the work out of the loop.
struct Samples: Sendable {
    static let count = 16

    let bytes: [UInt8]
    let length: Int

    /// - Parameter make: returns each packet for its number; all have the same length.
    init(_ make: (UInt8) -> [UInt8]) {
        let packets = (0..<UInt8(Samples.count)).map(make)
        let length = packets[0].count
        precondition(packets.allSatisfy { $0.count == length }, "samples have one length")
        self.length = length
        bytes = Array(packets.joined())
    }

    /// Runs `body` on one packet after the other.
    @inline(__always)
    func forEach(_ operations: Int, _ body: (RawSpan) -> UInt64) {
        let span = bytes.rawSpan
        var sum: UInt64 = 0
        for index in 0..<operations {
            let start = (index & (Samples.count - 1)) &* length
            sum &+= body(span.extracting(unchecked: start..<start &+ length))
        }
        keep(sum)
    }

    /// Runs the same loop on the baseline.
    func run(_ baseline: Baseline, _ operations: Int) {
        bytes.withUnsafeBufferPointer { buffer in
            let samples = CBaseline.samples(bytes: buffer.baseAddress, length: length, count: Samples.count)
            keep(baseline(samples, operations))
        }
    }
}

extension BenchmarkCase {
    /// A codec and its baseline, on the same packets.
    ///
    /// - Parameter loop: performs the given number of operations on the samples.
    static func codec(
        _ name: String,
        _ samples: Samples,
        budget: Budget = .codec,
        baseline: @escaping Baseline,
        loop: @escaping @Sendable (Samples, Int) -> Void
    ) -> BenchmarkCase {
        BenchmarkCase(
            name,
            operations: 1_000_000,
            countedOperations: 4000,
            budget: budget,
            baseline: { operations, meter in
                samples.run(baseline, operations)
                meter.start()
                samples.run(baseline, operations)
                meter.stop()
            },
            body: { operations, meter in
                loop(samples, operations)
                meter.start()
                loop(samples, operations)
                meter.stop()
            }
        )
    }
}

extension BenchmarkCase.Budget {
    static let codec = BenchmarkCase.Budget(allocations: 0, ratio: 3)
    static let report = BenchmarkCase.Budget(allocations: 0, ratio: 4)
    /// For operations that are rare, or a small part of another operation.
    static let withoutAllocation = BenchmarkCase.Budget(allocations: 0)
}

/// Returns a sum of the first byte and the length, which proves that the borrowed bytes were found.
@inline(__always)
func trace(_ bytes: RawSpan) -> UInt64 {
    UInt64(bytes.byteCount) &+ UInt64(bytes[checked: 0] ?? 0)
}
