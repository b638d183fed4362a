import BLEByteCoding
import Dispatch
import Testing

@testable import BLEHCITransport

@Suite("AdvertisingReportPacing")
struct AdvertisingReportPacingTests {
    private static let millisecond: UInt64 = 1_000_000
    private static let second: UInt64 = 1_000_000_000

    private let report = Sample.advertisingReport

    /// A pacing whose quiet time has passed, and the time then.
    private func quietPacing() throws -> (AdvertisingReportPacing, UInt64) {
        var pacing = try #require(AdvertisingReportPacing(delay: .milliseconds(20)))
        #expect(pacing.decide(at: 5) == 0)
        return (pacing, 5 + Self.second)
    }

    @Test(arguments: [.zero, .nanoseconds(999_999), .seconds(-1)] as [Duration])
    func delayBelowAMillisecondIsNone(delay: Duration) {
        #expect(AdvertisingReportPacing(delay: delay) == nil)
    }

    @Test(arguments: [0x02, 0x0B, 0x0D, 0x0F] as [UInt8])
    func reportsWaitAfterAQuietSecond(subevent: UInt8) throws {
        let (quiet, now) = try quietPacing()
        var pacing = quiet
        let report: [UInt8] = [0x04, 0x3E, 0x01, subevent]
        pacing.received(report.rawSpan)
        #expect(pacing.decide(at: now - 1) == 0)
        pacing.received(report.rawSpan)
        #expect(pacing.decide(at: now + Self.millisecond) == 20 * Self.millisecond)
        #expect(pacing.mayWait)
    }

    @Test func nothingWaitsWithoutAReport() throws {
        let (quiet, now) = try quietPacing()
        var pacing = quiet
        #expect(pacing.decide(at: now) == 0)
    }

    @Test(
        "The delay falls as the rate of reports grows",
        arguments: [(3, 20_000), (64, 20_000), (65, 19_692), (128, 10_000), (1280, 1_000), (1281, 0)] as [(Int, UInt64)]
    )
    func fastReportsWaitForAShorterTime(reportsIn20Milliseconds count: Int, microseconds: UInt64) throws {
        let (quiet, now) = try quietPacing()
        var pacing = quiet
        pacing.received(report.rawSpan)
        #expect(pacing.decide(at: now) == 20 * Self.millisecond)
        for _ in 0..<count { pacing.received(report.rawSpan) }
        #expect(pacing.decide(at: now + 20 * Self.millisecond) / 1000 == microseconds)
    }

    @Test(
        arguments: [
            Sample.commandComplete, Sample.acl, Sample.emptyEvent, [0x04, 0x3E, 0x01, 0x01], [0x04, 0x3E], [],
        ] as [[UInt8]]
    )
    func anotherReceivedPacketEndsTheWaitingForASecond(packet: [UInt8]) throws {
        let (quiet, now) = try quietPacing()
        var pacing = quiet
        pacing.received(packet.rawSpan)
        #expect(!pacing.mayWait)
        for offset in [0, Self.second - 1] {
            pacing.received(report.rawSpan)
            #expect(pacing.decide(at: now + offset) == 0)
        }
        pacing.received(report.rawSpan)
        #expect(pacing.decide(at: now + Self.second + Self.millisecond) == 20 * Self.millisecond)
    }

    @Test func sentPacketEndsTheWaiting() throws {
        let (quiet, now) = try quietPacing()
        var pacing = quiet
        pacing.received(report.rawSpan)
        #expect(pacing.decide(at: now) > 0)
        pacing.sent()
        #expect(!pacing.mayWait)
        pacing.received(report.rawSpan)
        #expect(pacing.decide(at: now) == 0)
    }

    @Test(arguments: [(.seconds(9), 50), (.milliseconds(20), 20), (.zero, 0)] as [(Duration, UInt64)])
    func optionLimitsTheDelay(requested: Duration, milliseconds: UInt64) throws {
        var options = TransportOptions()
        options.advertisingReportDelay = requested
        guard var pacing = options.pacing else { return #expect(milliseconds == 0) }
        #expect(pacing.decide(at: 0) == 0)
        pacing.received(report.rawSpan)
        #expect(pacing.decide(at: Self.second) == milliseconds * Self.millisecond)
    }
}

@Suite("A loop's queue that waits for reports", .timeLimit(.minutes(10)))
struct GatheringLoopQueueTests {
    /// A loop whose transport waits an hour for more reports.
    private let loop = LoopQueue(DispatchQueue(label: "loop"), linger: .seconds(3600), holdLimit: .seconds(3600))

    private func connect(_ family: LoopQueueTests.Family) async throws -> (Probe, Peer) {
        var options = TransportOptions()
        options.pacing = AdvertisingReportPacing(delay: .seconds(3600), quietTime: .zero, gatheredCount: .max)
        let listener = family.listener
        async let peer = listener.accept()
        let transport = try await listener.specification.open(on: loop, options: options)
        return (Probe(transport, on: loop.queue), await peer)
    }

    private func perform(_ action: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            loop.async {
                action()
                continuation.resume()
            }
        }
    }

    /// Makes the loop hold its queue and wait for more reports.
    private func startWaiting(_ probe: Probe, _ peer: Peer) async {
        for packet in [Sample.commandComplete, Sample.commandComplete, Sample.advertisingReport] {
            peer.write(packet)
            #expect(await probe.next() == .packet(packet))
        }
    }

    @Test(arguments: LoopQueueTests.Family.allCases)
    func reportsAreReadTogetherWhenTheHostSends(family: LoopQueueTests.Family) async throws {
        let (probe, peer) = try await connect(family)
        await startWaiting(probe, peer)
        let reports = (0..<100).map { number in [UInt8](Sample.advertisingReport.dropLast() + [UInt8(number)]) }
        for report in reports { peer.write(report) }
        // Submitted work runs, and reads nothing.
        for _ in 0..<100 { await perform {} }
        #expect(probe.packetCount.load(ordering: .relaxed) == 3)
        await perform { probe.transport.send(Sample.reset) }
        #expect(await peer.read(count: Sample.reset.count) == Sample.reset)
        #expect(await probe.next(100) == reports.map { .packet($0) })
        await perform { probe.transport.close() }
    }

    @Test func alarmEndsTheWaiting() async throws {
        let (probe, peer) = try await connect(.unix)
        await startWaiting(probe, peer)
        let alarm = LoopConfined(Holder(), to: loop.queue)
        await withCheckedContinuation { continuation in
            loop.async {
                alarm.value.alarm = LoopAlarm(on: loop) { continuation.resume() }
                alarm.value.alarm?.set(monotonicNanoseconds() + 20_000_000)
            }
        }
        await perform { probe.transport.close() }
    }

    @Test func closeEndsTheWaiting() async throws {
        let (probe, peer) = try await connect(.unix)
        await startWaiting(probe, peer)
        await perform { probe.transport.close() }
        await withCheckedContinuation { continuation in loop.queue.async { continuation.resume() } }
    }
}

private final class Holder {
    var alarm: LoopAlarm?
}
