import BluetoothTypes
import HCITransport
import Testing

import struct VirtualController.SeededGenerator

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
        _ call: @escaping @Sendable (BluetoothHost) async throws(HostError) -> Void
    ) async -> [HostError?] {
        await withTaskGroup(of: HostError?.self) { [host] group in
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
