import BLE
import BLEGATT
import BLEHCITransport
import BluetoothTypes
import Dispatch
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// Tasks run on the threads of the concurrency runtime, and the host on a Dispatch queue. So a cancellation can arrive
/// before its call begins, while the call is on its way to the loop, or after the call has begun.
@Suite("Suspended calls on several threads", .timeLimit(.minutes(10)))
struct CallThreadTests {
    private let host = BluetoothHost(
        loop: DispatchEventLoop(label: "calls"),
        configuration: BluetoothHost.Configuration(),
        random: SeededGenerator(seed: 1),
        openTransport: { () throws(TransportError) in throw .connectionFailed("no controller", errno: 111) }
    )

    /// Makes calls in separate tasks, which are cancelled at different moments.
    ///
    /// - Returns: how the calls ended.
    private func outcomes(
        isCancelled: Bool = true,
        on host: BluetoothHost? = nil,
        _ call: @escaping @Sendable (BluetoothHost) async throws(HostError) -> Void
    ) async -> [HostError?] {
        let host = host ?? self.host
        return await withTaskGroup(of: HostError?.self) { group in
            for number in 0..<400 {
                group.addTask {
                    let task = Task { () -> HostError? in
                        do throws(HostError) {
                            try await call(host)
                            return nil
                        } catch {
                            return error
                        }
                    }
                    for _ in 0..<number % 8 { await Task.yield() }
                    if isCancelled { task.cancel() }
                    return await task.value
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    private func expectNothingLeft() async {
        let inspection = await host.inspect()
        #expect(inspection.calls == 0 && inspection.timers == 0)
    }

    @Test func cancelledCallsThatWaitForTimeEnd() async {
        let outcomes = await outcomes { host throws(HostError) in try await host.sleep(for: .seconds(86_400)) }
        #expect(outcomes.count == 400 && outcomes.allSatisfy { $0 == .cancelled })
        await expectNothingLeft()
    }

    @Test func cancelledCallsOnTheirWayToTheLoopEnd() async {
        let outcomes = await outcomes { host throws(HostError) in
            try await host.wait(for: .time) { host, call in
                host.calls.setTimer(host.schedule(.sleep(call), after: .seconds(86_400)), of: call)
            }
        }
        #expect(outcomes.count == 400 && outcomes.allSatisfy { $0 == .cancelled })
        await expectNothingLeft()
    }

    @Test func callsThatEndWhileTheyAreCancelledEndOnce() async {
        let outcomes = await outcomes { host throws(HostError) in
            try await host.wait { host, call in
                host.loop.execute { host.assumeIsolated { $0.end(call, .success) } }
            }
        }
        #expect(outcomes.count == 400 && outcomes.allSatisfy { $0 == nil || $0 == .cancelled })
        await expectNothingLeft()
    }

    /// Reads of a value that the server does not answer. One is in flight, the others wait behind it.
    @Test func cancelledProceduresEnd() async throws {
        let value = CharacteristicDefinition(uuid: "FFF1", properties: [.read], permissions: .read, value: .handled)
        let server = try await Adapter.open(.virtual(name: "cancelled procedures"))
        let client = try await Adapter.open(.virtual(name: "cancelled procedures"))
        let service = try await server.host.publish([ServiceDefinition(uuid: "FFF0", characteristics: [value])]) {
            _,
            _ in
        }
        let handle = try #require(service.first?.characteristics.first).valueHandle
        let advertising = try await server.peripheral.startAdvertising(AdvertisementConfiguration())
        let peer = try await client.central.connect(to: server.information.identityAddress)
        let link = try #require(await client.host.linkIdentifiers().first)
        let before = await client.host.inspect()
        let outcomes = await outcomes(on: client.host) { host throws(HostError) in
            _ = try await host.perform(ReadLongValue(handle: handle), on: link)
        }
        #expect(outcomes.count == 400 && outcomes.allSatisfy { $0 == .cancelled })
        let after = await client.host.inspect()
        #expect(after.calls == before.calls && after.waiters == before.waiters)
        #expect(await client.host.contradiction() == nil)
        withExtendedLifetime((advertising, peer)) {}
        await client.close()
        await server.close()
    }

    /// A submitted write, a procedure and another submitted write, while the loop is busy.
    @Test func procedureBetweenSubmittedWritesIsSentBetweenThem() async throws {
        let server = try await Adapter.open(.virtual(name: "procedure between writes"))
        let client = try await Adapter.open(.virtual(name: "procedure between writes"))
        let value = CharacteristicDefinition(
            uuid: "FFF1",
            properties: [.write, .writeWithoutResponse],
            permissions: .write,
            value: .handled
        )
        let received = Recorder<[UInt8]>()
        let serving = server.host
        let definition = ServiceDefinition(uuid: "FFF0", characteristics: [value])
        let service = try await serving.publish([definition]) { client, request in
            guard case .write(let write, let isCommand) = request.kind else { return }
            received.append(write.value)
            if !isCommand { serving.submitAnswer(request.identifier, on: client, with: .success([])) }
        }
        let handle = try #require(service.first?.characteristics.first).valueHandle
        let advertising = try await server.peripheral.startAdvertising(AdvertisementConfiguration())
        let peer = try await client.central.connect(to: server.information.identityAddress)
        let host = client.host
        let link = try #require(await host.linkIdentifiers().first)
        let areCallsMade = DispatchSemaphore(value: 0)
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            host.loop.execute {
                host.submissions.openFastPath(to: link, maximumLength: 20)
                continuation.resume()
                areCallsMade.wait()
            }
        }
        let isFirstSubmitted = try? host.writeAtOnce([1], to: handle, on: link)
        host.begin { $0.begin(WriteValue(handle: handle, value: [2]), on: link) { _ in } }
        let isLastSubmitted = try? host.writeAtOnce([3], to: handle, on: link)
        areCallsMade.signal()
        #expect(isFirstSubmitted == true && isLastSubmitted == true)
        while received.all.count < 3 { await Task.yield() }
        #expect(received.all == [[1], [2], [3]])
        withExtendedLifetime((advertising, peer)) {}
        await client.close()
        await server.close()
    }

    /// A queue whose loop was released, and the identifier that the loop had.
    private static func abandonedQueue() -> (queue: LoopQueue, loop: ObjectIdentifier) {
        let loop = DispatchEventLoop(label: "abandoned")
        return (loop.queue, ObjectIdentifier(loop))
    }

    /// A later loop gets the memory of the released one, usually at once.
    @Test func queueOfReleasedLoopIsNotThatOfALaterLoop() {
        for _ in 0..<10_000 {
            let abandoned = Self.abandonedQueue()
            let later = DispatchEventLoop(label: "later")
            #expect(abandoned.queue.queue.sync { later.isIsolatingCurrentContext() } == false)
            #expect(later.queue.queue.sync { later.isIsolatingCurrentContext() } == true)
            if ObjectIdentifier(later) == abandoned.loop { return }
        }
        Issue.record("no loop had the memory of a released one")
    }

    @Test func closingTheHostEndsTheCallsOfAllThreads() async {
        async let closing: Void = host.close()
        let outcomes = await outcomes(isCancelled: false) { host throws(HostError) in
            try await host.sleep(for: .seconds(86_400))
        }
        await closing
        #expect(outcomes.count == 400 && outcomes.allSatisfy { $0 == .closed })
        await expectNothingLeft()
    }
}
