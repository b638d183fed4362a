import BLEHCI
import BluetoothHost
import BluetoothTypes
import Testing

@Suite("Requests of a peripheral for connection parameters")
struct ParameterRequestTests {
    /// A call on a peripheral's link that requests an interval of 50 ms.
    private func requesting() throws -> (HostFixture, Recorder<Result<Void, any Error>>) {
        let fixture = HostFixture { $0.requestsMTU = false }
        try fixture.bringUp()
        fixture.connect(role: .peripheral)
        let host = fixture.host
        let link = try fixture.link()
        let interval = Duration.milliseconds(50)
        let update = fixture.start {
            try await host.updateParameters(.init(interval: interval...interval), of: link)
        }
        return (fixture, update)
    }

    @Test("A central that does not answer within 30 s has not refused the request")
    func unansweredRequestTimesOut() throws {
        let (fixture, update) = try requesting()
        fixture.loop.run(for: .seconds(29))
        #expect(update.all.isEmpty)
        fixture.loop.run(for: .seconds(2))
        #expect(throws: HostError.timedOut) { try update.all.first?.get() }
        #expect(update.all.count == 1)
    }

    @Test("An update may take 40 s from the answer of the central, however late the answer is")
    func updateAfterALateAnswerIsNotTimedOut() throws {
        let (fixture, update) = try requesting()
        let request = try #require(fixture.controller.data.last { $0[7] == 5 })
        // Otherwise the link would have stalled.
        fixture.controller.emit {
            NumberOfCompletedPackets.encodePacket(
                .init(connectionHandle: 0x0040, numCompletedPackets: UInt16(fixture.controller.data.count)),
                into: &$0
            )
        }
        fixture.loop.run(for: .seconds(29))
        fixture.controller.emit(HostFixture.acl([0x13, request[10], 2, 0, 0, 0], channel: 5))
        fixture.loop.run(for: .seconds(35))
        #expect(update.all.isEmpty)
        fixture.completeParameterUpdate(interval: 40)
        #expect(throws: Never.self) { try update.all.first?.get() }
        #expect(update.all.count == 1)
    }

    @Test("A central that does not know the request refuses it")
    func rejectedCommandIsARefusal() throws {
        let (fixture, update) = try requesting()
        let request = try #require(fixture.controller.data.last { $0[7] == 5 })
        fixture.controller.emit(HostFixture.acl([0x01, request[10], 2, 0, 0, 0], channel: 5))
        fixture.loop.run(for: .milliseconds(1))
        let refusal = HostError.notSupported("the central refuses these connection parameters")
        #expect(throws: refusal) { try update.all.first?.get() }
        #expect(update.all.count == 1)
    }
}
