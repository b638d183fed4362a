import BLEGATT
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Ends of suspended calls")
struct CallEndTests {
    private static let peer = DeviceAddress(0xC0FF_EE00_0002, isRandom: true)

    @Test func closingTheHostEndsAllCalls() throws {
        let calls = try CallFixture(buffers: 1)
        let (host, link) = (calls.host, calls.link)
        let handle = try calls.publishSubscribed()
        // At the end the link's queue is full, and the last write waits.
        while !calls.fixture.start({ try await host.writeWithoutResponse([0], to: 3, on: link) }).all.isEmpty {}
        let waiting = try calls.fixture.run { await host.inspect() }.calls
        try #require(waiting == 1)
        let ended = HostError.disconnected(.adapterClosed)
        let subscription = ValueSubscription(
            to: 9,
            on: link,
            configuration: 10,
            wanted: .notification,
            deliver: { _ in },
            ended: { _ in }
        )
        let started: [(outcome: Recorder<HostError?>, expected: HostError?)] = [
            (calls.startTask { try await host.sleep(for: .seconds(3600)) }.1, .closed),
            (calls.startTask { try await host.writeWithoutResponse([1], to: 3, on: link) }.1, ended),
            (calls.startTask { try await host.notify([1], of: handle) }.1, nil),
            (calls.startTask { try await host.indicate([1], of: handle, to: link) }.1, ended),
            (calls.startTask { _ = try await host.perform(ReadValue(handle: 5), on: link) }.1, ended),
            (calls.startTask { try await host.subscribe(subscription) }.1, ended),
            (calls.startTask { await host.flush(link) }.1, nil),
            (calls.startTask { _ = try await host.disconnection(of: link) }.1, nil),
            (calls.startTask { try await host.updateParameters(ConnectionParameters(), of: link) }.1, ended),
            (calls.startTask { _ = try await host.secure(link) }.1, ended),
            (
                calls.startTask {
                    _ = try await host.connect(
                        toAnyOf: [CallEndTests.peer],
                        parameters: ConnectionParameters(),
                        timeout: nil
                    )
                }.1, .closed
            ),
        ]
        #expect(started.map(\.outcome.all) == started.map { _ in [] })
        #expect(try calls.fixture.run { await host.inspect() }.calls == waiting + started.count)
        try calls.fixture.run { await host.close() }
        calls.fixture.loop.run(for: .milliseconds(1))
        #expect(started.map(\.outcome.all) == started.map { [$0.expected] })
        #expect(try calls.fixture.run { await host.inspect() }.isEmpty)
    }

    @Test func closingARecoveringHostEndsTheStartOfAnAdvertisement() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        fixture.opener.failuresLeft.store(100, ordering: .sequentiallyConsistent)
        fixture.controller.vanish()
        fixture.loop.run(for: .milliseconds(1))
        let outcome = fixture.start { try await host.startAdvertising(AdvertisementConfiguration()) }
        #expect(outcome.all.isEmpty)
        try fixture.run { await host.close() }
        fixture.loop.run(for: .milliseconds(1))
        #expect(throws: HostError.closed) { try outcome.all.first?.get() }
        #expect(try fixture.run { await host.inspect() }.isEmpty)
    }

    private enum Call: CaseIterable {
        case connect
        case secure
        case read
    }

    @Test(arguments: Call.allCases) private func cancelledCallLeavesNothing(call: Call) throws {
        let calls = try CallFixture(role: .central)
        let (host, link) = (calls.host, calls.link)
        calls.fixture.controller.override = { $0.opcode == LEEnableEncryption.opcode ? .silence : nil }
        let before = try calls.fixture.run { await host.inspect() }
        let (task, outcome) = calls.startTask {
            switch call {
            case .connect:
                _ = try await host.connect(
                    toAnyOf: [CallEndTests.peer],
                    parameters: ConnectionParameters(),
                    timeout: .seconds(60)
                )
            case .secure: _ = try await host.secure(link)
            case .read: _ = try await host.perform(ReadValue(handle: 5), on: link)
            }
        }
        #expect(outcome.all.isEmpty)
        #expect(try calls.fixture.run { await host.inspect() }.calls == before.calls + 1)
        task.cancel()
        calls.fixture.loop.run(for: .milliseconds(1))
        #expect(outcome.all == [.cancelled])
        let after = try calls.fixture.run { await host.inspect() }
        #expect(after.calls == before.calls && after.waiters == before.waiters)
        #expect(after.connectionAttempts == before.connectionAttempts)
        #expect(try calls.fixture.run { await host.contradiction() } == nil)
    }

    @Test func callOfACancelledTaskDoesNotBegin() throws {
        let calls = try CallFixture(role: .central)
        let (host, link) = (calls.host, calls.link)
        calls.fixture.controller.forgetCommands()
        let before = try calls.fixture.run { await host.inspect() }
        let outcomes = Call.allCases.map { call in
            calls.startTask {
                withUnsafeCurrentTask { $0?.cancel() }
                switch call {
                case .connect:
                    _ = try await host.connect(
                        toAnyOf: [CallEndTests.peer],
                        parameters: ConnectionParameters(),
                        timeout: nil
                    )
                case .secure: _ = try await host.secure(link)
                case .read: _ = try await host.perform(ReadValue(handle: 5), on: link)
                }
            }.1
        }
        #expect(outcomes.map(\.all) == [[.cancelled], [.cancelled], [.cancelled]])
        #expect(try calls.fixture.run { await host.inspect() } == before)
        #expect(calls.drain().isEmpty && calls.fixture.controller.opcodes.isEmpty)
    }

    @Test func endThatIsForgottenDoesNotReportAClosedHost() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        fixture.connect()
        let link = try fixture.link()
        for _ in 0..<300 {
            fixture.disconnected(reason: .connectionTimeout)
            fixture.connect()
        }
        let unspecified = DisconnectionReason.controller(.unspecifiedError)
        let observed = Recorder<DisconnectionReason>()
        try fixture.run { await host.observeEnd(of: link) { observed.append($0) } }
        #expect(observed.all == [unspecified])
        #expect(try fixture.run { try await host.disconnection(of: link) } == unspecified)
        #expect(throws: HostError.disconnected(unspecified)) {
            try fixture.run { try await host.information(on: link) }
        }
        #expect(throws: HostError.disconnected(unspecified)) {
            try fixture.run { try await host.writeWithoutResponse([1], to: 3, on: link) }
        }
        try fixture.run { await host.close() }
        #expect(try fixture.run { try await host.disconnection(of: link) } == .adapterClosed)
    }

    /// Cancelling a task ends only calls that wait.
    @Test func attemptThatACancelledTaskBeginsContinues() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        let outcome = Recorder<Result<LinkIdentifier, HostError>>()
        let begun = fixture.start {
            withUnsafeCurrentTask { $0?.cancel() }
            return await host.beginConnecting(to: CallEndTests.peer) { outcome.append($0) }
        }
        #expect(begun.all.count == 1 && outcome.all.isEmpty)
        fixture.connect(role: .central, peer: CallEndTests.peer)
        let link = try fixture.link()
        #expect(outcome.all == [.success(link)])
    }
}
