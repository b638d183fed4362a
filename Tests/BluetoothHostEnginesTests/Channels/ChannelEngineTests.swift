import BLEByteCoding
import BLEL2CAP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Credit-based channels and signaling of one link")
struct ChannelEngineTests {
    private let observers = ChannelSide.observers
    private let call = ChannelSide.call
    private let peerChannel = ChannelIdentifier(rawValue: 0x41)

    /// A side whose first channel is open. The peer's channel is 0x41, and it has given 3 credits.
    private func opened(isEnhanced: Bool = false) throws -> (ChannelSide, HostChannelIdentifier) {
        var side = ChannelSide()
        let name = try isEnhanced ? side.connectEnhanced() : side.connect()
        _ = side.commands()
        _ = side.signal(isEnhanced ? PeerCommand.acceptEnhanced(1, as: 0x41) : PeerCommand.accept(1, as: 0x41))
        try #require(side.effects() == [.opened(observers[0], name, ChannelSide.psm)])
        return (side, name)
    }

    // MARK: Opening

    @Test func requestIsSentWhenItIsReleased() throws {
        var side = ChannelSide()
        let name = try side.engine.connect(to: ChannelSide.psm, configuration: .init())
        #expect(name == ChannelSide.name(0x40, 1))
        #expect(side.engine.observe(name, observers[0]) == true)
        #expect(side.commands() == [] && side.engine.isHeld(name.channel) && side.engine.openings == [name.channel])
        side.engine.release(name.channel)
        #expect(side.commands() == [[0x14, 1, 10, 0, 0x25, 0, 0x40, 0, 0x00, 0x08, 247, 0, 117, 0]])
        #expect(side.signal(PeerCommand.accept(1, as: 0x41)) == .forChannels)
        #expect(side.effects() == [.opened(observers[0], name, ChannelSide.psm)])
        #expect(side.engine.openings == [] && !side.engine.awaitsAnswer)
        let information = side.engine.information(on: name)
        #expect(information?.peerMTU == 200 && information?.peerMPS == 50)
    }

    @Test func refusedChannelFails() throws {
        var side = ChannelSide()
        for observer in 0..<2 { _ = try side.connect(observer) }
        #expect(side.commands().count == 2)
        #expect(side.signal(PeerCommand.refuse(1, 2)) == .forChannels)
        #expect(side.signal(PeerCommand.reject(2)) == .forChannels)
        #expect(
            side.effects() == [
                .failed(observers[0], .channel(.refused(.spsmNotSupported))),
                .failed(observers[1], .channel(.notUnderstood)),
            ]
        )
        #expect(side.engine.count == 0 && side.engine.deadline == nil)
    }

    @Test func unansweredRequestFailsAfterThirtySeconds() throws {
        var side = ChannelSide()
        _ = try side.connect()
        _ = side.commands()
        #expect(side.engine.deadline == side.now + .seconds(30) && side.engine.awaitsAnswer)
        let hasTimedOut1 = side.advance(by: .milliseconds(29_999))
        #expect(!hasTimedOut1)
        #expect(side.effects() == [])
        let hasTimedOut2 = side.advance(by: .milliseconds(1))
        #expect(!hasTimedOut2)
        #expect(side.effects() == [.failed(observers[0], .timedOut)])
    }

    @Test func pendingConnectionGetsMoreTimeOnce() throws {
        var side = ChannelSide()
        _ = try side.connectEnhanced()
        _ = side.commands()
        for _ in 0..<8 {
            _ = side.advance(by: .seconds(10))
            _ = side.signal(PeerCommand.acceptEnhanced(1, as: 0, result: 0x0D))
            if side.now < Instant(nanoseconds: 1_070_000_000_000) { #expect(side.effects() == []) }
        }
        #expect(side.effects() == [.failed(observers[0], .timedOut)])
    }

    @Test func invalidRequestsThrow() throws {
        var side = ChannelSide()
        #expect(throws: HostError.invalidPSM(SPSM(rawValue: 0))) {
            try side.engine.connect(to: SPSM(rawValue: 0), configuration: .init())
        }
        #expect(throws: HostError.invalidChannelLengths) {
            try side.engine.connect(to: ChannelSide.psm, configuration: .init(mtu: 22))
        }
        #expect(throws: HostError.invalidArgument("one request is for 1 to 5 channels, not 6")) {
            try side.engine.connect(to: ChannelSide.psm, count: 6, configuration: .init())
        }
        for _ in 0..<16 { _ = try side.engine.connect(to: ChannelSide.psm, configuration: .init()) }
        #expect(throws: HostError.channel(.tooManyChannels)) {
            try side.engine.connect(to: ChannelSide.psm, configuration: .init())
        }
    }

    @Test func openingIsEndedOnceByTheHost() throws {
        var side = ChannelSide()
        let name = try side.connect()
        _ = side.commands()
        #expect(side.engine.endOpening(of: name.channel, .timedOut) == true)
        #expect(side.engine.endOpening(of: name.channel, .timedOut) == false)
        #expect(side.effects() == [.failed(observers[0], .timedOut)])
        // The peer opens the channel nevertheless.
        _ = side.signal(PeerCommand.accept(1, as: 0x41))
        #expect(side.effects() == [])
        #expect(side.commands() == [[0x06, 2, 4, 0, 0x41, 0, 0x40, 0]])
    }

    @Test func closedOpeningIsCancelled() throws {
        var side = ChannelSide()
        let name = try side.engine.connect(to: ChannelSide.psm, configuration: .init())
        _ = side.engine.observe(name, observers[0])
        side.engine.disconnect(name)
        #expect(!side.engine.isHeld(name.channel))
        #expect(side.effects() == [.failed(observers[0], .cancelled)])
        side.engine.release(name.channel)
        #expect(side.commands() == [] && side.engine.count == 0)
    }

    @Test func channelOfThePeerIsAccepted() throws {
        var side = ChannelSide()
        try side.services.register(.init(), at: ChannelSide.psm)
        #expect(side.signal(PeerCommand.request(7, from: 0x41)) == .forChannels)
        let name = ChannelSide.name(0x40, 1)
        #expect(side.effects() == [.accepted(name, ChannelSide.psm)])
        #expect(side.engine.observe(name, observers[0]) == true)
        #expect(side.commands() == [[0x15, 7, 10, 0, 0x40, 0, 0x00, 0x08, 247, 0, 117, 0, 0, 0]])
        #expect(side.receive([2, 0, 1, 2], on: 0x40) == .taken)
        #expect(side.effects() == [.readable(observers[0])])
    }

    @Test func channelToAnUnknownServiceIsRefused() throws {
        var side = ChannelSide()
        #expect(side.signal(PeerCommand.request(7, from: 0x41)) == .forChannels)
        #expect(side.effects() == [])
        #expect(side.commands() == [[0x15, 7, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0]])
    }

    @Test func rejectedChannelHasNoFurtherEffects() throws {
        var (side, name) = try opened()
        _ = side.receive([1, 0, 1], on: 0x40)
        side.engine.reject(name)
        #expect(side.effects() == [])
        #expect(side.commands() == [[0x06, 2, 4, 0, 0x41, 0, 0x40, 0]])
        side.engine.reject(name)
        #expect(side.commands() == [] && side.engine.observe(name, observers[1]) == false)
    }

    // MARK: Using

    @Test func sentBytesAreCutIntoUnitsOfThePeer() throws {
        var (side, name) = try opened()
        let bytes = (0..<100).map { UInt8($0) }
        let payloads: [[UInt8]] = [[100, 0] + bytes[..<48], Array(bytes[48..<98]), Array(bytes[98...])]
        #expect(side.engine.send(bytes[...], on: name) == 100)
        #expect(side.frames() == payloads.map { ChannelSide.SentFrame(channel: peerChannel, payload: $0) })
        #expect(side.engine.send([1], on: ChannelSide.name(0x40, 2)) == nil)
    }

    @Test func fullQueueReportsRoomLater() throws {
        var (side, name) = try opened()
        let bytes = [UInt8](repeating: 7, count: 100_000)
        let count = side.engine.send(bytes[...], on: name) ?? 0
        #expect(count < bytes.count && count > 0)
        #expect(side.effects() == [])
        #expect(side.frames().count == 3, "the peer gave three credits")
        var effects: [ChannelEffect] = []
        while effects.isEmpty {
            let outcome = side.signal([0x16, 9, 4, 0, 0x41, 0, 3, 0])
            try #require(outcome == .forChannels)
            let frames = side.frames()
            try #require(frames.count == 3)
            effects = side.effects()
        }
        #expect(effects == [.hasRoom(observers[0])])
        #expect(side.engine.send(bytes[...], on: name) != 0)
    }

    @Test func readingIsReportedOnceUntilEverythingIsRead() throws {
        var (side, name) = try opened()
        _ = side.receive([1, 0, 1], on: 0x40)
        _ = side.receive([1, 0, 2], on: 0x40)
        #expect(side.effects() == [.readable(observers[0])])
        #expect(side.engine.read(from: name, limit: 1) == [[1]])
        #expect(side.engine.read(from: name, limit: .max) == [[2]])
        #expect(side.engine.read(from: name, limit: .max) == [])
        _ = side.receive([1, 0, 3], on: 0x40)
        #expect(side.effects() == [.readable(observers[0])])
        #expect(side.engine.read(from: ChannelSide.name(0x40, 2), limit: .max) == [])
    }

    @Test(
        arguments: [
            (PeerCommand.reconfigured(2), nil),
            (PeerCommand.reconfigured(2, result: 4), .channel(.reconfigurationRefused(.unacceptableParameters))),
            (PeerCommand.reject(2), .channel(.notUnderstood)),
        ] as [([UInt8], HostError?)]
    )
    func reconfigurationEndsWithTheAnswer(answer: [UInt8], error: HostError?) throws {
        var (side, name) = try opened(isEnhanced: true)
        try side.engine.reconfigure(name, mtu: 3000, mps: 247, for: call)
        #expect(side.commands().map { $0[0] } == [0x19])
        #expect(throws: HostError.notReady) {
            try side.engine.reconfigure(name, mtu: 3000, mps: 247, for: ChannelSide.otherCall)
        }
        _ = side.signal(answer)
        #expect(side.effects() == [.finish(call, error)])
    }

    @Test func unansweredReconfigurationTimesOut() throws {
        var (side, name) = try opened(isEnhanced: true)
        try side.engine.reconfigure(name, mtu: 3000, mps: 247, for: call)
        _ = side.commands()
        _ = side.advance(by: .seconds(30))
        #expect(side.effects() == [.finish(call, .timedOut)])
    }

    @Test func heldReconfigurationAwaitsNoAnswer() throws {
        var side = ChannelSide()
        let name = try side.engine.connect(to: ChannelSide.psm, count: 1, configuration: .init(mps: 64))[0]
        side.engine.release(name.channel)
        _ = side.commands()
        _ = side.signal(PeerCommand.acceptEnhanced(1, as: 0x41))
        try side.engine.reconfigure(name, mtu: 3000, mps: 4096, for: call)
        #expect(side.commands() == [] && side.engine.deadline == side.now + .seconds(30))
        #expect(side.engine.holdsReconfiguration && !side.engine.awaitsAnswer)
    }

    @Test func cancelledReconfigurationHasNoOutcome() throws {
        var (side, name) = try opened(isEnhanced: true)
        try side.engine.reconfigure(name, mtu: 3000, mps: 247, for: call)
        _ = side.commands()
        side.engine.cancel(call)
        _ = side.signal(PeerCommand.reconfigured(2))
        #expect(side.effects() == [])
    }

    @Test func reconfigurationOfAnUnsuitableChannelThrows() throws {
        var (side, name) = try opened()
        #expect(throws: HostError.notSupported("only enhanced channels are reconfigured")) {
            try side.engine.reconfigure(name, mtu: 3000, mps: 247, for: call)
        }
        #expect(throws: HostError.channel(.ended(.byUs))) {
            try side.engine.reconfigure(ChannelSide.name(0x40, 2), mtu: 3000, mps: 247, for: call)
        }
        #expect(throws: HostError.self) { try side.engine.reconfigure(name, mtu: 3000, mps: 65_533, for: call) }
    }

    @Test func peerReconfiguresItsEnd() throws {
        var (side, name) = try opened(isEnhanced: true)
        #expect(side.signal([0x19, 8, 6, 0, 0x2C, 1, 64, 0, 0x41, 0]) == .forChannels)
        #expect(side.effects() == [.peerReconfigured(observers[0])])
        #expect(side.engine.information(on: name)?.peerMTU == 300)
    }

    // MARK: Ending

    @Test func endOfAChannelEndsItsCallFirst() throws {
        var (side, name) = try opened(isEnhanced: true)
        _ = side.receive([1, 0, 1], on: 0x40)
        try side.engine.reconfigure(name, mtu: 3000, mps: 247, for: call)
        _ = side.commands()
        _ = side.signal(PeerCommand.disconnect(9, 0x40, from: 0x41))
        #expect(
            side.effects() == [
                .readable(observers[0]), .finish(call, .channel(.ended(.byPeer))),
                .ended(observers[0], .byPeer, unread: [[1]]),
            ]
        )
        #expect(side.commands() == [[0x07, 9, 4, 0, 0x40, 0, 0x41, 0]])
        #expect(side.engine.information(on: name) == nil && side.engine.send([1], on: name) == nil)
    }

    @Test func channelThatFinishesSendsTheRestFirst() throws {
        var (side, name) = try opened()
        _ = side.engine.send([1, 2], on: name)
        side.engine.finish(name)
        #expect(side.effects() == [] && side.commands() == [])
        #expect(side.frames() == [ChannelSide.SentFrame(channel: peerChannel, payload: [2, 0, 1, 2])])
        #expect(side.effects() == [.ended(observers[0], .byUs, unread: [])])
        #expect(side.commands() == [[0x06, 2, 4, 0, 0x41, 0, 0x40, 0]])
    }

    @Test func violationEndsTheChannel() throws {
        var (side, _) = try opened()
        let violation = CreditBasedChannel.Violation.sduExceedsMTU(length: 0xFFFF)
        #expect(side.receive([0xFF, 0xFF, 0], on: 0x40) == .violation(violation))
        #expect(side.effects() == [.ended(observers[0], .violation(violation), unread: [])])
        #expect(side.receive([1, 0, 1], on: 0x40) == .dropped)
        #expect(side.receive([1, 0, 1], on: 0x50) == .unknownChannel)
        #expect(side.effects() == [])
    }

    @Test func unverifiedPeerLosesItsChannelsAndKeepsHeldRequests() throws {
        var (side, _) = try opened()
        _ = try side.connect(1)
        _ = side.commands()
        let held = try side.engine.connect(to: ChannelSide.psm, configuration: .init())
        _ = side.engine.observe(held, observers[2])
        side.engine.peerIsUnverified()
        #expect(
            side.effects() == [
                .failed(observers[1], .channel(.ended(.unverifiedPeer))),
                .ended(observers[0], .unverifiedPeer, unread: []),
            ]
        )
        #expect(side.engine.openings == [held.channel])
    }

    @Test func endOfTheLinkEndsEverything() throws {
        var (side, name) = try opened(isEnhanced: true)
        let opening = try side.connect(1)
        try side.engine.reconfigure(name, mtu: 3000, mps: 247, for: call)
        _ = side.commands()
        let reason = DisconnectionReason.controller(.connectionTimeout)
        side.engine.linkEnded(reason)
        #expect(
            side.effects() == [
                .finish(call, .channel(.ended(.disconnected(reason)))),
                .ended(observers[0], .disconnected(reason), unread: []), .failed(observers[1], .disconnected(reason)),
            ]
        )
        let error = HostError.disconnected(reason)
        #expect(throws: error) { try side.engine.connect(to: ChannelSide.psm, configuration: .init()) }
        #expect(throws: error) { try side.engine.connect(to: ChannelSide.psm, count: 1, configuration: .init()) }
        #expect(throws: HostError.channel(.ended(.byUs))) {
            try side.engine.reconfigure(name, mtu: 3000, mps: 247, for: call)
        }
        try side.services.register(.init(), at: ChannelSide.psm)
        #expect(side.signal(PeerCommand.request(7, from: 0x42)) == .none)
        #expect(side.receive([1, 0, 1], on: 0x40) == .unknownChannel)
        #expect(side.engine.send([1], on: name) == nil && side.engine.read(from: name, limit: 1) == [])
        #expect(side.engine.endOpening(of: opening.channel, .timedOut) == false)
        side.engine.disconnect(name)
        side.engine.finish(name)
        side.engine.reject(name)
        side.engine.release(opening.channel)
        side.engine.peerIsUnverified()
        side.engine.linkEnded(.adapterClosed)
        #expect(throws: SignalingChannel.RequestError.requestPending) { try side.requestParameters() }
        let hasTimedOut3 = side.advance(by: .seconds(100))
        #expect(!hasTimedOut3)
        #expect(side.effects() == [] && side.commands() == [] && side.frames() == [])
        #expect(side.engine.count == 0 && side.engine.deadline == nil && !side.engine.isOpening)
    }

    // MARK: Signaling

    @Test func parametersOfAPeripheralAreAccepted() {
        var side = ChannelSide()
        let (outcome, answer) = side.answer([0x12, 5, 8, 0, 24, 0, 40, 0, 0, 0, 0x90, 1])
        let request = ConnectionParameterUpdateRequest(intervalMin: 24, intervalMax: 40, latency: 0, timeout: 400)
        #expect(outcome == .parameterUpdateRequested(request))
        #expect(answer == [0x13, 5, 2, 0, 0, 0])
        #expect(side.answer([0x12, 5, 8, 0, 24, 0, 5, 0, 0, 0, 0x90, 1]) == (.send, [0x13, 5, 2, 0, 1, 0]))
        // With a subrate factor of 4, the supervision timeout must exceed 400 ms.
        side.parameters.subrateFactor = 4
        #expect(side.answer([0x12, 6, 8, 0, 24, 0, 40, 0, 0, 0, 40, 0]) == (.send, [0x13, 6, 2, 0, 1, 0]))
        #expect(side.answer([0x12, 7, 8, 0, 24, 0, 40, 0, 0, 0, 41, 0]).1 == [0x13, 7, 2, 0, 0, 0])
    }

    @Test func requestForParametersIsAnswered() throws {
        var side = ChannelSide(.peripheral)
        #expect(try side.requestParameters() == [0x12, 1, 8, 0, 24, 0, 40, 0, 0, 0, 0x90, 1])
        #expect(side.engine.isParameterRequestPending && !side.engine.awaitsAnswer)
        #expect(throws: SignalingChannel.RequestError.requestPending) { try side.requestParameters() }
        #expect(side.signal([0x13, 1, 2, 0, 0, 0]) == .parameterUpdateFinished(.accepted))
        _ = try side.requestParameters()
        #expect(side.signal(PeerCommand.reject(2)) == .parameterUpdateFinished(nil))
        _ = try side.requestParameters()
        #expect(side.engine.deadline == side.now + .seconds(30))
        let hasTimedOut4 = side.advance(by: .seconds(30))
        #expect(hasTimedOut4)
        #expect(!side.engine.isParameterRequestPending)
        let hasTimedOut5 = side.advance(by: .seconds(30))
        #expect(!hasTimedOut5)
    }

    @Test func malformedCommandsAreCounted() throws {
        var side = ChannelSide()
        #expect(side.answer([0x77, 3, 0, 0]) == (.send, [0x01, 3, 2, 0, 0, 0]))
        guard case .malformed = side.signal([0x77]) else { throw Unexpected() }
        guard case (.rejected, [0x01, 3, 2, 0, 0, 0]) = side.answer([0x12, 3, 1, 0, 0]) else { throw Unexpected() }
        guard case .malformedForChannels = side.signal([0x14, 3, 1, 0, 0]) else { throw Unexpected() }
        #expect(side.commands() == [[0x01, 3, 2, 0, 0, 0]])
    }

    @Test func commandsBeyondTheLimitAreDropped() {
        var side = ChannelSide()
        for number in 1...64 { #expect(side.signal(PeerCommand.request(UInt8(number), from: 0x41)) == .forChannels) }
        #expect(side.signal(PeerCommand.request(65, from: 0x41)) == .overloaded)
        #expect(side.commands().count == 64)
        #expect(side.signal(PeerCommand.request(66, from: 0x41)) == .forChannels)
    }

    private struct Unexpected: Error {}
}
