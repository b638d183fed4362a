import BLEByteCoding
import BLEHCI
import BluetoothHost
import BluetoothTypes
import Testing

@Suite("A controller that refuses event masks")
struct RefusedEventMaskTests {
    /// A host on a controller that refuses masks with one of some events.
    private func makeFixture(refusing refused: LEEventMask) throws -> HostFixture {
        let fixture = HostFixture(profile: .init(hasStreams: true, receivesTransfers: true)) {
            $0.hostFeatures.insert(.connectedIsochronousStreamHostSupport)
        }
        try fixture.bringUp()
        fixture.controller.override = { command in
            guard let mask = command.decode(LESetEventMask.self)?.leEventMask, !mask.isDisjoint(with: refused) else {
                return nil
            }
            return ScriptedController.complete(LESetEventMask.self, .failure(.invalidHCICommandParameters))
        }
        return fixture
    }

    /// Starts to accept requests for streams.
    ///
    /// - Returns: the event masks that the host has sent for this.
    private func observeRequests(_ fixture: HostFixture) throws -> [LEEventMask] {
        fixture.controller.forgetCommands()
        let host = fixture.host
        try fixture.run { _ = try await host.observeStreamRequests { _ in } }
        fixture.loop.run(for: .milliseconds(1))
        return fixture.controller.commands.compactMap { $0.decode(LESetEventMask.self)?.leEventMask }
    }

    @Test("The events of a reception that was refused are not in the next mask")
    func eventsOfARefusedReceptionAreNotInTheNextMask() throws {
        let refused = LEEventMask.periodicAdvertisingSyncTransferReceived
        let fixture = try makeFixture(refusing: refused)
        let host = fixture.host
        let ends = Recorder<HostError>()
        try fixture.run {
            _ = await host.startReception(PeriodicSyncTransferParameters(), on: nil) { event in
                if case .ended(let error) = event { ends.append(error) }
                return nil
            }
        }
        fixture.loop.run(for: .milliseconds(5))
        #expect(ends.all.count == 1)
        let masks = try observeRequests(fixture)
        #expect(masks.count == 1)
        let mask = try #require(masks.first)
        #expect(mask.contains(.cisRequest))
        #expect(mask.isDisjoint(with: [refused, .periodicAdvertisingReport]))
    }

    @Test("Refused events are requested again when they are needed again")
    func refusedEventsAreRequestedAgain() throws {
        let fixture = try makeFixture(refusing: .cisRequest)
        #expect(try observeRequests(fixture).map { $0.contains(.cisRequest) } == [true])
        fixture.controller.override = { _ in nil }
        #expect(try observeRequests(fixture).map { $0.contains(.cisRequest) } == [true])
        #expect(try observeRequests(fixture).isEmpty, "the controller reports them")
    }
}
