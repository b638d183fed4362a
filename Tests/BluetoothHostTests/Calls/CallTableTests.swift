import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Suspended calls")
struct CallTableTests {
    private let table = CallTable(ReaderQueue(loop: SimulatedEventLoop()))

    private func error(of outcome: CallOutcome) -> HostError? {
        if case .failure(let error) = outcome { error } else { nil }
    }

    @Test func firstEndOfACallCounts() async {
        let call = table.reserve(.other)
        let outcome = await CallContinuation.wait { continuation in
            #expect(table.begin(call, continuation))
            #expect(table.isWaiting(call))
            table.end(call, .failure(.timedOut))
            table.end(call, .success)
            #expect(table.cancel(call) == nil)
        }
        #expect(error(of: outcome) == .timedOut)
        #expect(table.count == 0)
    }

    @Test func callThatIsCancelledBeforeItBeginsDoesNotBegin() async {
        let call = table.reserve(.time)
        #expect(table.cancel(call) == nil)
        let outcome = await CallContinuation.wait { continuation in
            #expect(!table.begin(call, continuation))
        }
        #expect(error(of: outcome) == .cancelled)
        #expect(table.count == 0)
    }

    @Test func cancellationEndsACallThatWaits() async {
        var timers = TimerQueue()
        let call = table.reserve(.time)
        let timer = timers.schedule(.sleep(call), at: Instant(nanoseconds: 1))
        let outcome = await CallContinuation.wait { continuation in
            #expect(table.begin(call, continuation))
            table.setTimer(timer, of: call)
            let cancelled = table.cancel(call)
            #expect(cancelled?.timer == timer)
            if case .time? = cancelled?.subject {} else { Issue.record("\(String(describing: cancelled))") }
            #expect(table.cancel(call) == nil && table.end(call, .success) == nil)
            #expect(!table.isWaiting(call))
        }
        #expect(error(of: outcome) == .cancelled)
        #expect(table.count == 0)
    }

    @Test func callThatCannotBeCancelledBeginsOnTheLoop() async {
        let outcome = await CallContinuation.wait { continuation in
            let call = table.begin(continuation)
            #expect(table.isWaiting(call) && table.count == 1)
            table.end(call, .ended(elevationFailure: .security(.timedOut)))
            table.end(call, .failure(.closed))
        }
        #expect(outcome.elevationFailure == .security(.timedOut))
        #expect(table.count == 0)
    }

    @Test func lateCancellationLeavesTheNextCallAlone() async {
        let first = table.reserve(.other)
        table.discard(first)
        let second = table.reserve(.other)
        #expect(second.index == first.index)
        let outcome = await CallContinuation.wait { continuation in
            #expect(table.begin(second, continuation))
            #expect(table.cancel(first) == nil && !table.isWaiting(first))
            table.end(first, .failure(.closed))
            table.end(second, .success)
        }
        #expect(error(of: outcome) == nil)
    }

    @Test func endedCallGivesItsTimerBack() async {
        var timers = TimerQueue()
        let call = table.reserve(.time)
        let timer = timers.schedule(.sleep(call), at: Instant(nanoseconds: 1))
        _ = await CallContinuation.wait { continuation in
            _ = table.begin(call, continuation)
            table.setTimer(timer, of: call)
            #expect(table.timerCount == 1 && table.sleeps == [call])
            #expect(table.end(call, .success) == timer)
        }
        #expect(table.timerCount == 0)
    }

    @Test func cancelledSleepLeavesNoTimer() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        let before = try fixture.run { await host.inspect() }
        let outcome = Recorder<HostError?>()
        let task = Task(executorPreference: fixture.loop.taskExecutor) {
            do throws(HostError) {
                try await host.sleep(for: .seconds(3600))
                outcome.append(nil)
            } catch {
                outcome.append(error)
            }
        }
        fixture.loop.run(for: .milliseconds(1))
        #expect(try fixture.run { await host.inspect() }.sleeps == 1)
        task.cancel()
        fixture.loop.run(for: .milliseconds(1))
        #expect(outcome.all == [.cancelled])
        let after = try fixture.run { await host.inspect() }
        #expect(after.sleeps == 0 && after.calls == before.calls && after.timers == before.timers)
    }
}
