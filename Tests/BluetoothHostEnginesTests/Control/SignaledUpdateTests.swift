import BLEHCI
import BLEL2CAP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Requests of a peripheral for connection parameters")
struct SignaledUpdateTests {
    private typealias Fixture = LinkControlFixture
    private let calls = LinkControlFixture.calls

    private func finish(_ call: Int, _ error: HostError? = nil) -> ControlEffect { .finish(calls[call], error) }

    @Test(arguments: [ConnectionParameterUpdateResponse.rejected, nil])
    func refusedRequestOfAPeripheralEndsTheCall(response: ConnectionParameterUpdateResponse?) {
        var link = Fixture(.peripheral)
        #expect(link.request(Fixture.request(50), 0) == [.requestBySignaling(Fixture.peerRequest(40))])
        _ = link.request(Fixture.request(100), 1)
        let refusal = HostError.notSupported("the central refuses these connection parameters")
        #expect(
            link.control.signalingFinished(response, link.context)
                == [finish(0, refusal), .requestBySignaling(Fixture.peerRequest(80))]
        )
    }

    @Test func unansweredRequestOfAPeripheralTimesOut() {
        var link = Fixture(.peripheral)
        _ = link.request(Fixture.request(50), 0)
        _ = link.request(Fixture.request(100), 1)
        #expect(
            link.control.signalingTimedOut(link.context)
                == [finish(0, .timedOut), .requestBySignaling(Fixture.peerRequest(80))]
        )
    }

    @Test func acceptedRequestOfAPeripheralWaitsForTheEvent() {
        var link = Fixture(.peripheral)
        _ = link.request(Fixture.request(50), 0)
        #expect(link.control.signalingFinished(.accepted, link.context) == [])
        #expect(link.updated(40) == [finish(0)])
    }

    @Test("The time for an update that a peripheral has requested begins when the central accepts it")
    func timeForAnAcceptedRequestBeginsWithTheAnswer() {
        var link = Fixture(.peripheral)
        _ = link.request(Fixture.request(50), 0)
        _ = link.request(Fixture.request(100), 1)
        #expect(link.advance(by: .seconds(29)) == [])
        #expect(link.control.signalingFinished(.accepted, link.context) == [])
        #expect(link.control.deadline == link.context.now + .seconds(40))
        #expect(link.advance(by: .seconds(39)) == [])
        #expect(link.updated(40) == [finish(0), .requestBySignaling(Fixture.peerRequest(80))])
        #expect(link.control.signalingFinished(.accepted, link.context) == [])
        #expect(link.advance(by: .seconds(40)) == [finish(1, .timedOut)])
    }

    @Test("A request that changes nothing ends with its acceptance, because no event may follow")
    func acceptedRequestThatChangesNothingEndsAtOnce() {
        var link = Fixture(.peripheral)
        _ = link.updated(24)
        _ = link.request(Fixture.request(30), 0)
        _ = link.request(Fixture.request(50), 1)
        #expect(link.control.signalingFinished(.accepted, link.context) == [finish(0)])
        // The event of this update, if there is one, is not for the second call.
        #expect(link.control.deadline == link.context.now + .milliseconds(2300))
        #expect(link.advance(by: .milliseconds(2299)) == [])
        #expect(link.advance(by: .milliseconds(1)) == [.requestBySignaling(Fixture.peerRequest(40))])
        #expect(link.control.signalingFinished(.accepted, link.context) == [])
        #expect(link.updated(40) == [finish(1)])
    }

    @Test func requestWaitsForTheAnswerToAnEarlierOne() {
        var link = Fixture(.peripheral)
        _ = link.request(Fixture.request(50), 0)
        _ = link.request(Fixture.request(100), 1)
        #expect(link.updated(24) == [finish(0), .requestBySignaling(Fixture.peerRequest(80))])
        #expect(link.control.signalingRefused(.requestPending, link.context) == [])
        #expect(link.control.procedures[.connectionUpdate].isPostponed && link.control.deadline == nil)
        // The event of the accepted request is not for the second call.
        #expect(link.control.signalingFinished(.accepted, link.context) == [])
        #expect(link.updated(40) == [.requestBySignaling(Fixture.peerRequest(80))])
        #expect(link.updated(80) == [finish(1)])
    }

    @Test func requestThatCannotBeSentEndsTheCall() {
        var link = Fixture(.peripheral)
        _ = link.request(Fixture.request(50), 0)
        #expect(
            link.control.signalingRefused(.invalidParameters, link.context)
                == [finish(0, .invalidArgument("\(SignalingChannel.RequestError.invalidParameters)"))]
        )
        #expect(link.control.signalingRefused(.invalidParameters, link.context) == [])
    }

    @Test(arguments: [(6, true), (5, false)] as [(UInt16, Bool)])
    func validParametersOfTheLinkLayerAreAccepted(interval: UInt16, isAccepted: Bool) {
        let event = LERemoteConnectionParameterRequest(
            connectionHandle: Fixture.handle,
            intervalMin: interval,
            intervalMax: interval,
            maxLatency: 0,
            timeout: 400
        )
        #expect(Fixture().control.accepts(event) == isAccepted)
    }
}
