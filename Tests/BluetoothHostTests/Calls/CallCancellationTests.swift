import BLEGATT
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Cancelling calls that wait")
struct CallCancellationTests {
    /// A link whose controller returns no buffer and whose queue is full.
    private func stalled() throws -> (CallFixture, AttributeHandle) {
        let calls = try CallFixture(buffers: 1)
        let handle = try calls.publishSubscribed()
        let (host, link) = (calls.host, calls.link)
        while !calls.fixture.start({ try await host.writeWithoutResponse([0], to: 3, on: link) }).all.isEmpty {}
        return (calls, handle)
    }

    private enum Call: CaseIterable {
        case write
        case notify
        case notifyAll
        case indicate
        case indicateAll
        case flush
        case disconnect
    }

    @Test(arguments: Call.allCases) private func cancelledCallEndsAtOnce(call: Call) throws {
        let (calls, handle) = try stalled()
        let (host, link) = (calls.host, calls.link)
        let (task, outcome) = calls.startTask {
            switch call {
            case .write: try await host.writeWithoutResponse([1], to: 3, on: link)
            case .notify: try await host.notify([1], of: handle, to: [link])
            case .notifyAll: try await host.notify([1], of: handle)
            case .indicate: try await host.indicate([1], of: handle, to: link)
            case .indicateAll: try await host.indicate([1], of: handle, to: nil)
            case .flush: await host.flush(link)
            case .disconnect: await host.disconnect(link)
            }
        }
        #expect(outcome.all.isEmpty)
        let before = calls.fixture.loop.now
        task.cancel()
        calls.fixture.loop.run(for: .milliseconds(1))
        switch call {
        case .flush, .disconnect: #expect(outcome.all == [nil])
        case .write, .notify, .notifyAll, .indicate, .indicateAll: #expect(outcome.all == [.cancelled])
        }
        #expect(calls.fixture.loop.now - before < .milliseconds(2))
        // A cancelled value is not sent.
        switch call {
        case .write, .notify, .notifyAll: #expect(!calls.drain().contains { $0.last == 1 })
        case .indicate, .indicateAll, .flush, .disconnect: break
        }
    }

    @Test func signedWriteThatIsCancelledWhileItsCountersAreSavedIsNotSent() throws {
        let bonded = try BondedHost { $0.ownSigningKey = SigningKey(value: 8, isAuthenticated: true) }
        bonded.fixture.connect(role: .central, peer: bondedPeer)
        let (host, link) = (bonded.host, try bonded.link())
        bonded.fixture.controller.forgetData()
        bonded.store.withhold()
        let (task, outcome) = bonded.fixture.startTask { try await host.writeSigned([7], to: 0x0021, on: link) }
        #expect(outcome.all.isEmpty)
        task.cancel()
        bonded.fixture.loop.run(for: .milliseconds(1))
        #expect(outcome.all == [.cancelled])
        bonded.store.settle(true)
        bonded.fixture.loop.run(for: .milliseconds(1))
        #expect(bonded.sent == [])
        #expect(try bonded.run { $0.inspect() }.calls == 0)
    }

    @Test func callThatIsCancelledBeforeItBeginsIsNotSent() throws {
        let calls = try CallFixture()
        let (host, link) = (calls.host, calls.link)
        let handle = try calls.publishSubscribed()
        let (_, outcome) = calls.startTask {
            withUnsafeCurrentTask { $0?.cancel() }
            try await host.indicate([1], of: handle, to: link)
        }
        #expect(outcome.all == [.cancelled])
        #expect(calls.drain().isEmpty)
    }
}
