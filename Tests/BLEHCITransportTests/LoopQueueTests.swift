import BLEByteCoding
import Dispatch
import Glibc
import Synchronization
import Testing

@testable import BLEHCITransport

@Suite("A loop's queue", .timeLimit(.minutes(10)))
struct LoopQueueTests {
    typealias Family = StreamTransportTests.Family

    private let loop = LoopQueue(DispatchQueue(label: "loop"), linger: .milliseconds(500))

    /// A started transport on the loop, and its other end.
    private func connect(_ family: Family, on other: LoopQueue? = nil) async throws -> (Probe, Peer) {
        let loop = other ?? loop
        let listener = family.listener
        async let peer = listener.accept()
        let transport = try await listener.specification.open(on: loop)
        return (Probe(transport, on: loop.queue), await peer)
    }

    @Test(arguments: Family.allCases)
    func heldQueueDeliversPacketsAndTheHangUp(family: Family) async throws {
        let (probe, peer) = try await connect(family)
        for _ in 0..<500 {
            peer.write(Sample.commandComplete)
            #expect(await probe.next() == .packet(Sample.commandComplete))
        }
        peer.hangUp()
        #expect(await probe.next() == .ended(.closedByPeer))
    }

    @Test func submittedWorkRunsWhileTheLoopWaitsForPackets() async throws {
        let (probe, peer) = try await connect(.unix)
        for _ in 0..<500 {
            peer.write(Sample.commandComplete)
            #expect(await probe.next() == .packet(Sample.commandComplete))
            let isOnQueue = await withCheckedContinuation { continuation in
                loop.async {
                    dispatchPrecondition(condition: .onQueue(loop.queue))
                    probe.transport.send(Sample.reset)
                    continuation.resume(returning: true)
                }
            }
            #expect(isOnQueue)
            #expect(await peer.read(count: Sample.reset.count) == Sample.reset)
        }
    }

    @Test func workOfTheDispatchQueueRunsHoweverBusyTheLoopIs() async throws {
        let (_, peer) = try await connect(.unix)
        let flag = Flag()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                while !flag.isUp.load(ordering: .relaxed) {
                    peer.write(Sample.commandComplete)
                    await Task.yield()
                }
            }
            for _ in 0..<20 {
                await withCheckedContinuation { continuation in loop.queue.async { continuation.resume() } }
            }
            flag.isUp.store(true, ordering: .relaxed)
        }
    }

    @Test(arguments: [.seconds(Int64.max), .seconds(Int64.min), .zero, .nanoseconds(1)] as [Duration])
    func anyDurationMakesALoop(duration: Duration) async throws {
        let extreme = LoopQueue(DispatchQueue(label: "extreme"), linger: duration, holdLimit: duration)
        let (probe, peer) = try await connect(.unix, on: extreme)
        for _ in 0..<3 {
            peer.write(Sample.commandComplete)
            #expect(await probe.next() == .packet(Sample.commandComplete))
        }
        extreme.async { probe.transport.close() }
    }

    /// A loop that is held for as long as its peer sends, and for an hour after that.
    private static func patientLoop() -> LoopQueue {
        LoopQueue(DispatchQueue(label: "patient"), linger: .seconds(3600), holdLimit: .seconds(3600))
    }

    @Test func alarmFiresWhileTheLoopWaitsForPackets() async throws {
        let patient = LoopQueueTests.patientLoop()
        let (probe, peer) = try await connect(.unix, on: patient)
        for _ in 0..<2 {
            peer.write(Sample.commandComplete)
            #expect(await probe.next() == .packet(Sample.commandComplete))
        }
        let held = LoopConfined(HeldAlarm(), to: patient.queue)
        for delay: UInt64 in [0, 300_000, 20_000_000] {
            await withCheckedContinuation { continuation in
                patient.async {
                    held.value.alarm = LoopAlarm(on: patient) { continuation.resume() }
                    held.value.alarm?.set(monotonicNanoseconds() + delay)
                }
            }
        }
        patient.async { probe.transport.close() }
    }

    @Test func alarmFiresHoweverManyPacketsArrive() async throws {
        let patient = LoopQueueTests.patientLoop()
        let (probe, peer) = try await connect(.unix, on: patient)
        let flag = Flag()
        let held = LoopConfined(HeldAlarm(), to: patient.queue)
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                while !flag.isUp.load(ordering: .relaxed) {
                    peer.write(Sample.commandComplete)
                    await Task.yield()
                }
            }
            #expect(await probe.next() == .packet(Sample.commandComplete))
            await withCheckedContinuation { continuation in
                patient.async {
                    held.value.alarm = LoopAlarm(on: patient) { continuation.resume() }
                    held.value.alarm?.set(monotonicNanoseconds() + 20_000_000)
                }
            }
            flag.isUp.store(true, ordering: .relaxed)
        }
        patient.async { probe.transport.close() }
    }

    @Test func holdEndsWithTheLastTransport() async throws {
        let patient = LoopQueueTests.patientLoop()
        let (probe, peer) = try await connect(.unix, on: patient)
        for _ in 0..<2 {
            peer.write(Sample.commandComplete)
            #expect(await probe.next() == .packet(Sample.commandComplete))
        }
        patient.async { probe.transport.close() }
        await withCheckedContinuation { continuation in patient.queue.async { continuation.resume() } }
    }

    @Test func alarmThatIsReleasedDoesNotFire() async {
        let fired = Flag()
        let held = LoopConfined(HeldAlarm(), to: loop.queue)
        // Timers fire in the order of their deadlines.
        await withCheckedContinuation { continuation in
            loop.async {
                let now = monotonicNanoseconds()
                LoopAlarm(on: loop) { fired.isUp.store(true, ordering: .relaxed) }.set(now + 1)
                held.value.alarm = LoopAlarm(on: loop) { continuation.resume() }
                held.value.alarm?.set(now + 20_000_000)
            }
        }
        let hasFired = fired.isUp.load(ordering: .relaxed)
        #expect(!hasFired)
    }

    @Test func alarmForTheEndOfTimeDoesNotFire() async {
        let fired = Flag()
        let held = LoopConfined((HeldAlarm(), HeldAlarm()), to: loop.queue)
        // Timers fire in the order of their deadlines.
        await withCheckedContinuation { continuation in
            loop.async {
                let now = monotonicNanoseconds()
                held.value.0.alarm = LoopAlarm(on: loop) { fired.isUp.store(true, ordering: .relaxed) }
                held.value.0.alarm?.set(now + UInt64(Int64.max))
                held.value.1.alarm = LoopAlarm(on: loop) { continuation.resume() }
                held.value.1.alarm?.set(now + 20_000_000)
            }
        }
        let hasFired = fired.isUp.load(ordering: .relaxed)
        #expect(!hasFired)
    }

    @Test func alarmThatIsLateFiresAfterThePacketsThatHaveArrived() async throws {
        let listener = Family.unix.listener
        async let accepted = listener.accept()
        let transport = try await listener.specification.open(on: loop)
        let peer = await accepted
        let held = LoopConfined(HeldAlarm(), to: loop.queue)
        let received = LoopConfined(ReceivedPackets(), to: loop.queue)
        let countAtAlarm: Int = await withCheckedContinuation { continuation in
            // Runs at the end of the first packet's turn. The loop is blocked in it until the alarm is late.
            @Sendable func block() {
                let due = monotonicNanoseconds() + 1_000_000
                held.value.alarm = LoopAlarm(on: loop) { continuation.resume(returning: received.value.count) }
                held.value.alarm?.set(due)
                peer.write(Sample.commandComplete)
                while monotonicNanoseconds() < due + 200_000_000 { sched_yield() }
            }
            loop.async {
                transport.start(
                    onPacket: { _ in
                        received.value.count += 1
                        if received.value.count == 1 { loop.async { block() } }
                    },
                    onEnd: { _ in }
                )
            }
            peer.write(Sample.commandComplete)
        }
        #expect(countAtAlarm == 2)
        loop.async { transport.close() }
    }

    @Test func workOfEachThreadKeepsItsOrder() async {
        let log = Log(threads: 4)
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<4 {
                group.addTask {
                    for number in 0..<1000 {
                        loop.async { log.entries.withLock { $0[worker].append(number) } }
                    }
                    await withCheckedContinuation { continuation in loop.async { continuation.resume() } }
                }
            }
        }
        #expect(log.entries.withLock { $0 } == [[Int]](repeating: Array(0..<1000), count: 4))
    }

    @Test func packetsSentInOneTurnAreWrittenInOrder() async throws {
        let (probe, peer) = try await connect(.unix)
        let packets = (0..<400).map { [0x02, UInt8($0 & 0xFF), 0x20, 0xFB, 0] + [UInt8](repeating: 7, count: 251) }
        loop.async {
            for packet in packets { probe.transport.send(packet) }
        }
        let expected = packets.flatMap { $0 }
        #expect(await peer.read(count: expected.count) == expected)
    }

    @Test func packetsSentBeforeCloseAreWritten() async throws {
        let (probe, peer) = try await connect(.unix)
        loop.async {
            probe.transport.send(Sample.reset)
            probe.transport.close()
        }
        #expect(await peer.read(count: Sample.reset.count) == Sample.reset)
    }
}

private final class ReceivedPackets {
    var count = 0
}

private final class HeldAlarm {
    var alarm: LoopAlarm?
}

private final class Flag: Sendable {
    let isUp = Atomic(false)
}

/// The work of each thread, in order.
private final class Log: Sendable {
    let entries: Mutex<[[Int]]>

    init(threads: Int) {
        entries = Mutex([[Int]](repeating: [], count: threads))
    }
}
