import BLEHCI
import BLEL2CAP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Link Layer procedures and the end of one link")
struct LinkControlTests {
    private typealias Fixture = LinkControlFixture
    private let calls = LinkControlFixture.calls
    private let refused = CommandFailure.status(.commandDisallowed, LEConnectionUpdate.opcode)

    private func finish(_ call: Int, _ error: HostError? = nil) -> ControlEffect { .finish(calls[call], error) }

    // MARK: Procedures

    @Test func centralSendsOneUpdateAtATime() {
        var link = Fixture()
        #expect(link.request(Fixture.request(50), 0) == [Fixture.update(40, 1)])
        #expect(link.request(Fixture.request(100), 1) == [])
        #expect(link.updated(40) == [finish(0), Fixture.update(80, 2)])
        #expect(link.control.parameters.interval == .milliseconds(50))
        #expect(
            link.updated(80, .unsupportedRemoteFeature) == [
                finish(1, .command(.status(.unsupportedRemoteFeature, LEConnectionUpdate.opcode)))
            ]
        )
        #expect(link.control.parameters.interval == .milliseconds(50))
        #expect(link.control.deadline == nil)
    }

    @Test func proceduresOfDifferentKindsRunTogether() {
        var link = Fixture()
        #expect(link.request(Fixture.request(50), 0) == [Fixture.update(40, 1)])
        #expect(link.request(Fixture.phys, 1) == [Fixture.setPHY(1)])
        #expect(link.physUpdated() == [finish(1)])
        #expect(link.control.transmitPHY == .le2M && link.control.receivePHY == .le2M)
        #expect(link.request(Fixture.phys, 2) == [Fixture.setPHY(2)])
        #expect(
            link.control.received(Fixture.physUpdated(.unsupportedFeatureOrParameterValue), link.context) == [
                finish(2, .command(.status(.unsupportedFeatureOrParameterValue, LESetPHY.opcode)))
            ]
        )
        #expect(link.updated(40) == [finish(0)])
    }

    @Test("The PHYs of a new link that are read are taken, unless a change was reported", arguments: [false, true])
    func readPHYsAreTakenUnlessAChangeWasReported(isChanged: Bool) {
        var link = Fixture()
        let command = ControlCommand.readPHY(LEReadPHY(connectionHandle: Fixture.handle))
        #expect(link.control.readPHYs() == [.command(command, .phyRead)])
        if isChanged { #expect(link.physUpdated() == []) }
        let phys = LEReadPHY.ReturnParameters(connectionHandle: Fixture.handle, txPHY: .leCoded, rxPHY: .leCoded)
        let event = LinkEvent.physChanged(transmit: .leCoded, receive: .leCoded)
        #expect(link.control.received(phys) == (isChanged ? [] : [.report(event)]))
        #expect(link.control.transmitPHY == (isChanged ? .le2M : .leCoded))
        #expect(link.control.receivePHY == (isChanged ? .le2M : .leCoded))
    }

    @Test func featuresOfThePeerAreKnownOnceTheyAreRead() {
        var link = Fixture()
        #expect(link.request(.features, 0) == [Fixture.readFeatures(1)])
        #expect(link.request(.features, 1) == [])
        #expect(
            link.control.received(Fixture.featuresRead(.unsupportedRemoteFeature), link.context) == [
                finish(0, .command(.status(.unsupportedRemoteFeature, LEReadRemoteFeatures.opcode))),
                Fixture.readFeatures(2),
            ]
        )
        #expect(link.control.peerFeatures == nil)
        #expect(link.control.received(Fixture.featuresRead(), link.context) == [finish(1)])
        #expect(link.control.peerFeatures == .periodicAdvertisingSyncTransferRecipient)
        #expect(link.control.received(Fixture.featuresRead(), link.context) == [], "the peripheral has asked")
        #expect(link.request(.features, 2) == [Fixture.readFeatures(3)])
        #expect(link.advance(by: .seconds(41)) == [finish(2, .timedOut)])
    }

    @Test func refusedCommandEndsItsProcedureAndBeginsTheNext() {
        var link = Fixture()
        _ = link.request(Fixture.request(50), 0)
        _ = link.request(Fixture.request(100), 1)
        #expect(link.failed(.connectionUpdate, 1, refused) == [finish(0, .command(refused)), Fixture.update(80, 2)])
        #expect(link.failed(.connectionUpdate, 2, refused) == [finish(1, .command(refused))])
    }

    @Test func refusedCommandOfAnEndedProcedureEndsNoOther() {
        var link = Fixture()
        _ = link.request(Fixture.request(50), 0)
        _ = link.request(Fixture.request(100), 1)
        #expect(link.updated(24) == [finish(0), Fixture.update(80, 2)], "another update ended the first procedure")
        #expect(link.failed(.connectionUpdate, 1, refused) == [])
        #expect(link.control.procedures[.connectionUpdate].isRunning)
        #expect(link.updated(80) == [finish(1)])
        #expect(link.failed(.connectionUpdate, 2, refused) == [])
    }

    @Test(arguments: [CommandFailure.aborted, .timedOut(LEConnectionUpdate.opcode)])
    func callEndsWithItsLinkIfTheControllerIsLost(failure: CommandFailure) {
        var link = Fixture()
        _ = link.request(Fixture.request(50), 0)
        link.context.isPoweredOn = false
        #expect(link.failed(.connectionUpdate, 1, failure) == [])
        #expect(link.request(Fixture.phys, 1) == [], "no procedure begins while the controller is abandoned")
        let reason = DisconnectionReason.controllerReset("test")
        #expect(link.control.linkEnded(reason) == [finish(0, .disconnected(reason)), finish(1, .disconnected(reason))])
    }

    @Test func lostEventEndsTheProcedureAfterFortySeconds() {
        var link = Fixture()
        _ = link.request(Fixture.request(50), 0)
        _ = link.request(Fixture.request(100), 1)
        #expect(link.control.deadline == Fixture.start + .seconds(40))
        #expect(link.advance(by: .seconds(39)) == [])
        #expect(link.advance(by: .seconds(1)) == [finish(0, .timedOut), Fixture.update(80, 2)])
        #expect(link.control.deadline == Fixture.start + .seconds(80))
        #expect(link.advance(by: .seconds(40)) == [finish(1, .timedOut)])
        #expect(link.control.deadline == nil)
    }

    @Test("On a link whose peripheral listens rarely, an update of parameters or PHYs may take longer than 40 s")
    func updateOfASlowLinkMayTakeLongerThanFortySeconds() {
        var link = Fixture()
        let slow = LEConnectionUpdateComplete(
            status: .success,
            connectionHandle: Fixture.handle,
            connectionInterval: 800,
            peripheralLatency: 9,
            supervisionTimeout: 3200
        )
        _ = link.control.received(slow, link.context)
        #expect(link.request(Fixture.request(50), 0) == [Fixture.update(40, 1)])
        #expect(link.request(Fixture.request(100), 1) == [])
        #expect(link.request(Fixture.phys, 2) == [Fixture.setPHY(1)])
        #expect(link.control.deadline == Fixture.start + .seconds(102))
        #expect(link.advance(by: .seconds(60)) == [])
        #expect(link.physUpdated() == [finish(2)])
        #expect(link.updated(40) == [finish(0), Fixture.update(80, 2)])
        // The link is fast now.
        #expect(link.advance(by: .seconds(40)) == [finish(1, .timedOut)])
        #expect(link.request(.features, 3) == [Fixture.readFeatures(1)])
        _ = link.control.received(slow, link.context)
        #expect(link.advance(by: .seconds(40)) == [finish(3, .timedOut)])
    }

    @Test func cancelledCallGetsNoOutcome() {
        var link = Fixture()
        _ = link.request(Fixture.request(50), 0)
        _ = link.request(Fixture.request(100), 1)
        _ = link.request(Fixture.request(150), 2)
        link.control.cancel(calls[0])
        link.control.cancel(calls[1])
        #expect(link.updated(40) == [Fixture.update(120, 2)])
        #expect(link.updated(120) == [finish(2)])
    }

    @Test func newestUnawaitedRequestIsSent() {
        var link = Fixture()
        #expect(link.control.requestUnawaited(Fixture.parameters(50), link.context) == [Fixture.update(40, 1)])
        for interval in [100, 150, 200] {
            #expect(link.control.requestUnawaited(Fixture.parameters(interval), link.context) == [])
        }
        #expect(link.updated(40) == [Fixture.update(160, 2)])
        #expect(link.updated(160) == [])
    }

    @Test func requestOfThePeripheralFollowsTheCalls() {
        var link = Fixture()
        _ = link.request(Fixture.request(50), 0)
        #expect(link.control.peerRequested(Fixture.peerRequest(96), link.context) == [])
        #expect(link.control.peerRequested(Fixture.peerRequest(104), link.context) == [])
        #expect(link.updated(40) == [finish(0), Fixture.update(104, 2)])
        #expect(link.updated(104) == [])
    }

    @Test func longestPayloadIsRequestedForANewLink() {
        let link = Fixture()
        var controller = ControllerInformation(
            identityAddress: DeviceAddress(0x0011_2233_4455, isRandom: false),
            manufacturer: CompanyIdentifier(rawValue: 0),
            commands: SupportedCommands()
        )
        #expect(link.control.linkBegan(controller) == [])
        controller.maximumTransmitOctets = 251
        controller.maximumTransmitTime = 2120
        #expect(link.control.linkBegan(controller) == [], "the controller has no such command")
        controller.commands.insert(LESetDataLength.self)
        let command = LESetDataLength(connectionHandle: Fixture.handle, txOctets: 251, txTime: 2120)
        #expect(link.control.linkBegan(controller) == [.command(.setDataLength(command), .unawaited)])
    }

    @Test func payloadLengthsAreThoseOfTheEvent() {
        var link = Fixture()
        let event = LEDataLengthChange(
            connectionHandle: Fixture.handle,
            maxTXOctets: 251,
            maxTXTime: 2120,
            maxRXOctets: 100,
            maxRXTime: 912
        )
        link.control.received(event)
        #expect(link.control.maximumTransmitOctets == 251 && link.control.maximumReceiveOctets == 100)
        #expect(link.control.commandFailed(.unawaited, refused, link.context) == [])
    }

    // MARK: End of the link

    @Test func linkIsEndedOnce() {
        var link = Fixture()
        #expect(!link.control.isEnding)
        #expect(
            link.control.disconnect(.adapterClosed, telling: .authenticationFailure, link.context) == [
                Fixture.disconnect(.authenticationFailure)
            ]
        )
        #expect(link.control.isEnding && link.control.isDisconnecting && link.control.ownReason == .adapterClosed)
        #expect(link.control.disconnect(.peerFlooding, link.context) == [])
        #expect(link.control.release(isLimited: true, link.context) == false)
        #expect(link.control.ownReason == .adapterClosed)
    }

    @Test func linkThatDoesNotEndIsReportedOnce() {
        var link = Fixture()
        _ = link.control.disconnect(nil, link.context)
        // The supervision timeout, the time for the command, and a margin.
        #expect(link.control.deadline == Fixture.start + .seconds(10))
        #expect(link.advance(by: .milliseconds(9_999)) == [])
        #expect(link.advance(by: .milliseconds(1)) == [.notEnding])
        #expect(link.advance(by: .seconds(100)) == [])
        #expect(link.control.isDisconnecting)
    }

    @Test func linkThatTheControllerDoesNotKnowHasEnded() {
        var link = Fixture()
        _ = link.control.disconnect(nil, link.context)
        let unknown = CommandFailure.status(.unknownConnectionIdentifier, Disconnect.opcode)
        #expect(link.control.commandFailed(.disconnection, refused, link.context) == [])
        #expect(link.control.commandFailed(.disconnection, .aborted, link.context) == [])
        #expect(link.control.commandFailed(.disconnection, unknown, link.context) == [.hasEnded])
    }

    @Test func releasedLinkEndsAfterItsLimit() {
        var link = Fixture()
        #expect(link.control.release(isLimited: true, link.context) == true)
        #expect(link.control.isEnding && !link.control.isDisconnecting)
        #expect(link.control.release(isLimited: true, link.context) == false)
        #expect(link.advance(by: LinkControl.flushLimit - .milliseconds(1)) == [])
        #expect(link.advance(by: .milliseconds(1)) == [Fixture.disconnect()])
        #expect(link.control.ownReason == .controller(.connectionTerminatedByLocalHost))
    }

    @Test func releasedLinkWithoutALimitWaits() {
        var link = Fixture()
        #expect(link.control.release(isLimited: false, link.context) == true)
        #expect(link.control.deadline == nil && link.advance(by: .seconds(1000)) == [])
        #expect(link.control.disconnect(nil, link.context) == [Fixture.disconnect()])
        #expect(link.control.ownReason == nil)
    }

    @Test func peerThatFloodsIsDisconnected() {
        var link = Fixture()
        for _ in 1..<LinkControl.floodingLimit { #expect(link.control.peerFloods(link.context) == []) }
        #expect(link.control.peerFloods(link.context) == [Fixture.disconnect()])
        #expect(link.control.ownReason == .peerFlooding)
        #expect(link.control.peerFloods(link.context) == [])
    }

    @Test func lastHoldIsReported() {
        var link = Fixture()
        link.control.hold()
        link.control.hold()
        #expect(link.control.holdCount == 2)
        #expect(link.control.releaseHold() == false)
        #expect(link.control.releaseHold() == true)
    }

    @Test(arguments: [true, false]) func endOfTheLinkEndsAllCallsInOrder(isDisconnecting: Bool) {
        var link = Fixture()
        _ = link.request(Fixture.phys, 0)
        _ = link.request(Fixture.request(50), 1)
        _ = link.request(Fixture.request(100), 2)
        _ = link.request(Fixture.request(150), 3)
        link.control.cancel(calls[2])
        if isDisconnecting { _ = link.control.disconnect(nil, link.context) }
        let error = HostError.disconnected(.controller(.connectionTimeout))
        #expect(
            link.control.linkEnded(.controller(.connectionTimeout)) == [
                finish(1, error), finish(3, error), finish(0, error),
            ]
        )
    }

    @Test func endedLinkRefusesRequestsAndIgnoresTheRest() {
        var link = Fixture()
        _ = link.request(Fixture.request(50), 0)
        let error = HostError.disconnected(.adapterClosed)
        _ = link.control.linkEnded(.adapterClosed)
        let before = link.control.parameters
        #expect(link.request(Fixture.request(50), 1) == [finish(1, error)])
        #expect(link.request(Fixture.phys, 2) == [finish(2, error)])
        #expect(link.control.requestUnawaited(Fixture.parameters(50), link.context) == [])
        #expect(link.control.peerRequested(Fixture.peerRequest(40), link.context) == [])
        #expect(link.failed(.connectionUpdate, 1, refused) == [])
        #expect(link.updated(80) == [])
        #expect(link.physUpdated() == [])
        #expect(link.control.signalingRefused(.invalidParameters, link.context) == [])
        #expect(link.control.signalingFinished(nil, link.context) == [])
        #expect(link.control.signalingTimedOut(link.context) == [])
        #expect(link.control.signalingFinished(.accepted, link.context) == [])
        #expect(link.control.disconnect(.peerFlooding, link.context) == [])
        #expect(link.control.release(isLimited: true, link.context) == false)
        for _ in 0..<LinkControl.floodingLimit { #expect(link.control.peerFloods(link.context) == []) }
        #expect(link.control.linkEnded(.peerFlooding) == [])
        #expect(link.advance(by: .seconds(1000)) == [])
        #expect(link.control.parameters == before && link.control.transmitPHY == .le1M)
        #expect(link.control.deadline == nil && link.control.isEnding && link.control.isDisconnecting)
    }
}
