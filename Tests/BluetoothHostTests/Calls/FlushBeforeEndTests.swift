import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Values that a server sends before it ends a link")
struct FlushBeforeEndTests {
    /// A link whose controller has one buffer, and whose client is subscribed.
    private func subscribed() throws -> (CallFixture, AttributeHandle) {
        let calls = try CallFixture(buffers: 1)
        let handle = try calls.publishSubscribed()
        calls.fixture.controller.forgetCommands()
        calls.fixture.controller.override = { command in
            command.opcode == Disconnect.opcode ? ScriptedController.status(command.opcode) : nil
        }
        return (calls, handle)
    }

    private func isDisconnecting(_ calls: CallFixture) -> Bool {
        calls.fixture.controller.opcodes.contains(Disconnect.opcode)
    }

    /// Sends ten values, and ends the link after them.
    private func sendAndEnd(_ calls: CallFixture, _ handle: AttributeHandle, isIndication: Bool = false) throws {
        let (host, link) = (calls.host, calls.link)
        try calls.fixture.run {
            await host.begin(isIndication: isIndication, handle, link)
            await host.disconnectAfterFlush(link, isServer: true)
        }
        calls.fixture.loop.run(for: .milliseconds(1))
    }

    @Test func linkEndsAsSoonAsTheValuesAreSent() throws {
        let (calls, handle) = try subscribed()
        try sendAndEnd(calls, handle)
        #expect(!isDisconnecting(calls))
        #expect(calls.drain().map(\.last) == Array(0..<10))
        #expect(isDisconnecting(calls))
    }

    @Test func reportOfMorePacketsThanTheControllerHadDoesNotEndTheLinkEarly() throws {
        let (calls, handle) = try subscribed()
        try sendAndEnd(calls, handle)
        #expect(calls.takeSent().count == 1)
        calls.complete(10)
        #expect(!isDisconnecting(calls))
        #expect(calls.drain().map(\.last) == Array(1..<10))
        #expect(isDisconnecting(calls))
    }

    @Test func clientThatTakesNothingDelaysTheEndByTheLimitOnly() throws {
        let (calls, handle) = try subscribed()
        try sendAndEnd(calls, handle)
        let limit = LinkControl.flushLimit
        calls.fixture.loop.run(for: limit - .milliseconds(10))
        #expect(!isDisconnecting(calls))
        // A second call does not begin another wait.
        let (host, link) = (calls.host, calls.link)
        try calls.fixture.run { await host.disconnectAfterFlush(link, isServer: true) }
        calls.fixture.loop.run(for: .milliseconds(20))
        #expect(isDisconnecting(calls))
        #expect(calls.takeSent().count == 1)
        #expect(try calls.fixture.run { await host.contradiction() } == nil)
    }

    @Test(arguments: [true, false]) func indicationsThatAwaitConfirmationsDelayTheEnd(isConfirming: Bool) throws {
        let (calls, handle) = try subscribed()
        try sendAndEnd(calls, handle, isIndication: true)
        var values: [UInt8?] = []
        for _ in 0..<10 {
            values += calls.takeSent().map(\.last)
            calls.complete(1)
            guard isConfirming else { break }
            if values.count < 10 { #expect(!isDisconnecting(calls)) }
            calls.receive([0x1E])
        }
        #expect(values == (isConfirming ? Array(0..<10) : [0]))
        #expect(isDisconnecting(calls) == isConfirming)
        calls.fixture.loop.run(for: LinkControl.flushLimit)
        #expect(isDisconnecting(calls))
    }

    /// The controller has sent a value, but its report of that was lost. Other values follow without end.
    @Test func lostReportOfAPacketDoesNotDelayACallWhileOtherPacketsAreSent() throws {
        let calls = try CallFixture()
        let handle = try calls.publishSubscribed()
        let (host, link) = (calls.host, calls.link)
        let notify: @Sendable (UInt8) async -> Void = { number in
            await host.beginSending([number], of: handle, to: [link]) { _ in }
        }
        try calls.fixture.run {
            await notify(1)
            await notify(2)
        }
        let (_, outcome) = calls.startTask { await host.flush(link) }
        calls.fixture.loop.run(for: .milliseconds(1))
        #expect(calls.takeSent().count == 2)
        try calls.fixture.run { await notify(3) }
        calls.complete(1)
        #expect(outcome.all.isEmpty, "one of the two packets before the call is unsent")
        calls.complete(1)
        #expect(outcome.all == [nil])
        #expect(try calls.fixture.run { await host.contradiction() } == nil)
    }

    @Test func limitHasNoEffectOnALinkThatHasEnded() throws {
        let (calls, handle) = try subscribed()
        try sendAndEnd(calls, handle)
        calls.fixture.controller.emit {
            DisconnectionComplete(connectionHandle: CallFixture.handle, reason: .remoteUserTerminatedConnection)
                .encodePacket(into: &$0)
        }
        calls.fixture.loop.run(for: .seconds(10))
        #expect(!isDisconnecting(calls))
        let host = calls.host
        let inspection = try calls.fixture.run { await host.inspect() }
        #expect(inspection.links == 0 && inspection.calls == 0 && inspection.timers == 0)
    }
}

extension BluetoothHost {
    /// Begins to send ten values.
    fileprivate func begin(isIndication: Bool, _ handle: AttributeHandle, _ link: LinkIdentifier) {
        for number: UInt8 in 0..<10 {
            if isIndication {
                beginIndicating([number], of: handle, to: link) { _ in }
            } else {
                beginSending([number], of: handle, to: [link]) { _ in }
            }
        }
    }
}
