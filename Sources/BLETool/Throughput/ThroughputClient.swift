import BLE
import BLEByteCoding
import BLEProfiles
import BluetoothTypes
import Synchronization

/// Measures a ``ThroughputServer``.
struct ThroughputClient: Sendable {
    private let peer: RemotePeripheral
    private let duration: Duration
    /// Length of written values in bytes; nil for 20 with a response, and for as much as fits a packet without.
    private let length: Int?
    private let source: RemoteCharacteristic
    private let sink: RemoteCharacteristic
    private let stream: RemoteCharacteristic
    private let reported: RemoteCharacteristic

    /// Discovers the service of the peer.
    init(of peer: RemotePeripheral, lasting duration: Duration, length: Int?) async throws {
        let service = try await peer.discoverAll().first { $0.uuid == ThroughputService.uuid }
        let found = [
            ThroughputService.source, ThroughputService.sink, ThroughputService.stream, ThroughputService.report,
        ].compactMap { uuid in service?.characteristics.first { $0.uuid == uuid } }
        guard found.count == 4 else { throw ToolError.noThroughputService("\(peer.address)") }
        (source, sink, stream, reported) = (found[0], found[1], found[2], found[3])
        self.peer = peer
        self.duration = duration
        self.length = length
    }

    func measure(_ operation: ThroughputOperation) async throws -> ThroughputResult {
        let before = try await report()
        let usage = ProcessUsage.current
        let start = ContinuousClock.now
        var outcome = try await perform(operation)
        var after = try await report()
        if operation == .writeWithoutResponse {
            // The report is requested after the writes, so it is read once all of them have been sent.
            outcome.duration = ContinuousClock.now - start
            // The server may still be counting.
            for _ in 0..<10 where after.writes(since: before) < outcome.count { after = try await report() }
            outcome.count = min(outcome.count, after.writes(since: before))
        }
        let usageAfter = ProcessUsage.current
        return ThroughputResult(
            operation: operation,
            count: outcome.count,
            octets: outcome.octets,
            duration: outcome.duration,
            median: operation.hasResponse ? outcome.latencies?.quantile(0.5) : nil,
            percentile99: operation.hasResponse ? outcome.latencies?.quantile(0.99) : nil,
            usage: usageAfter - usage,
            peerUsage: after.usage - before.usage
        )
    }

    private struct Outcome {
        var count: Int
        var octets: Int
        var duration: Duration
        var latencies: Latencies?
    }

    private func perform(_ operation: ThroughputOperation) async throws -> Outcome {
        switch operation {
        case .read: return try await read()
        case .write: return try await write(kind: .withResponse, length ?? 20)
        case .writeWithoutResponse:
            let greatest = ThroughputService.greatestLength(mtu: await peer.mtu)
            return try await write(kind: .withoutResponse, length ?? greatest)
        case .notify: return try await listen()
        }
    }

    private func report() async throws -> ThroughputReport {
        let value = try await peer.read(reported)
        return unsafe try ThroughputReport(decoding: value.span.bytes)
    }

    private func read() async throws -> Outcome {
        let handle = source.valueHandle
        let octets = try await peer.read(handle).count
        return try await repeating(octets) { _ = try await peer.read(handle) }
    }

    private func write(kind: WriteKind, _ length: Int) async throws -> Outcome {
        let (handle, value) = (sink.valueHandle, ThroughputService.octets(length))
        return try await repeating(length) { try await peer.write(value, to: handle, kind: kind) }
    }

    private func repeating(_ octets: Int, _ operation: () async throws -> Void) async throws -> Outcome {
        var latencies = Latencies()
        let start = ContinuousClock.now
        var last = start
        while last - start < duration {
            try Task.checkCancellation()
            try await operation()
            let now = ContinuousClock.now
            latencies.add(now - last)
            last = now
        }
        return Outcome(count: latencies.count, octets: octets, duration: last - start, latencies: latencies)
    }

    private func listen() async throws -> Outcome {
        let subscription = try await peer.subscribe(to: stream)
        let start = ContinuousClock.now
        let arrivals = Arrivals()
        _ = try await within(duration) {
            for try await delivery in subscription {
                arrivals.add(delivery.value)
            }
            try Task.checkCancellation()
            throw ToolError.deliveriesEnded
        }
        let (end, count, octets) = (ContinuousClock.now, arrivals.count, arrivals.octets)
        await uncancelled { await subscription.cancel() }
        return Outcome(count: count, octets: octets, duration: end - start)
    }
}

/// Counts notifications.
private final class Arrivals: Sendable {
    private let counted = Atomic(0)
    private let length = Atomic(0)

    var count: Int { counted.load(ordering: .relaxed) }
    /// Length of the last value, in bytes.
    var octets: Int { length.load(ordering: .relaxed) }

    func add(_ value: [UInt8]) {
        counted.add(1, ordering: .relaxed)
        length.store(value.count, ordering: .relaxed)
    }
}
