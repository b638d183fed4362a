import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The host's classification of channels")
struct ChannelClassificationTests {
    private typealias Effect = ChannelClassification.Effect
    private let start = Instant(nanoseconds: 1_000_000_000_000)
    private let calls = LinkControlFixture.calls
    private let low = ChannelMap(rawValue: 0xFF)
    private let high = ChannelMap(rawValue: 0xFF00)

    @Test func commandsAreASecondApartAndTheNewestIsSent() {
        var channels = ChannelClassification()
        #expect(channels.classify(low, for: calls[0], at: start) == [.send(low)])
        #expect(channels.classify(high, for: calls[1], at: start) == [])
        #expect(channels.answered(nil, at: start) == [.finish(calls[0], nil), .wake(start + .seconds(1))])
        #expect(channels.classify(.all, for: calls[2], at: start) == [])
        #expect(channels.advance(to: start + .milliseconds(999)) == [])
        #expect(channels.advance(to: start + .seconds(1)) == [.send(.all)])
        let answer = channels.answered(nil, at: start + .seconds(3))
        #expect(answer == [.finish(calls[1], nil), .finish(calls[2], nil)])
        #expect(channels.accepted == .all && channels.count == 0)
        #expect(channels.classify(low, for: calls[3], at: start + .seconds(3)) == [.send(low)])
    }

    @Test func refusalEndsItsCalls() {
        var channels = ChannelClassification()
        let failure = CommandFailure.status(.commandDisallowed, LESetHostChannelClassification.opcode)
        _ = channels.classify(low, for: calls[0], at: start)
        #expect(channels.answered(failure, at: start) == [.finish(calls[0], .command(failure))])
        #expect(channels.accepted == nil)
        #expect(channels.classify(high, for: calls[1], at: start) == [.wake(start + .seconds(1))])
    }

    @Test(arguments: [0, 1, 1 << 36] as [UInt64]) func fewerThanTwoChannelsAreInvalid(map: UInt64) {
        var channels = ChannelClassification()
        let effects = channels.classify(ChannelMap(rawValue: map), for: calls[0], at: start)
        guard case .finish(calls[0], .invalidArgument?)? = effects.first else {
            Issue.record("\(effects)")
            return
        }
    }

    @Test func acceptedClassificationIsSentAgainAfterAReset() {
        var channels = ChannelClassification()
        #expect(channels.controllerIsReady(at: start) == [])
        _ = channels.classify(low, for: calls[0], at: start)
        _ = channels.answered(nil, at: start)
        _ = channels.classify(high, for: calls[1], at: start)
        #expect(channels.endAll(.notReady) == [.finish(calls[1], .notReady)])
        #expect(channels.controllerIsReady(at: start) == [.send(low)])
        #expect(channels.answered(nil, at: start) == [])
    }

    @Test func callsThatWaitAreBounded() {
        var channels = ChannelClassification()
        for _ in 0..<ChannelClassification.limit { _ = channels.classify(low, for: calls[0], at: start) }
        let effects = channels.classify(low, for: calls[1], at: start)
        let text = "1024 classifications of channels wait, the maximum; await earlier ones"
        #expect(effects == [.finish(calls[1], .limitReached(text))])
        #expect(channels.count == ChannelClassification.limit)
    }
}
