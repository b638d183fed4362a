import BLEL2CAP
import BluetoothTypes
import Testing

private let spsm = SPSM(rawValue: 0x80)

/// An end with open channels of the enhanced variant, from 0x40 here and from 0x60 at the peer, and one of the other
/// variant after them.
private func openEnd(enhanced count: UInt8) throws -> ChannelEndpoint {
    var end = ChannelEndpoint()
    try end.services.register(.init(configuration: .init(mtu: 100, mps: 100)), at: spsm)
    let sources: [UInt8] = (0..<count).flatMap { [UInt8(0x60) + $0, 0] as [UInt8] }
    _ = end.answers(to: [0x17, 1, 8 + 2 * count, 0, 0x80, 0, 100, 0, 100, 0, 9, 0] + sources)
    _ = end.answers(to: [0x14, 1, 10, 0, 0x80, 0, 0x60 + count, 0, 100, 0, 100, 0, 9, 0])
    _ = end.events()
    return end
}

@Suite("Reconfiguring channels")
struct ChannelReconfigurationTests {
    @Test(
        "The peer's lengths grow, and a single channel's MPS may shrink; all else is refused",
        arguments: [
            ([200, 0, 200, 0, 0x60, 0, 0x61, 0], 0),
            ([100, 0, 100, 0, 0x60, 0, 0x61, 0], 0),
            ([100, 0, 64, 0, 0x60, 0], 0),
            ([99, 0, 100, 0, 0x60, 0], 1),
            ([100, 0, 99, 0, 0x60, 0, 0x61, 0], 2),
            ([200, 0, 200, 0, 0x60, 0, 0x6F, 0], 3),
            ([200, 0, 200, 0, 0x62, 0], 3),
            ([200, 0, 200, 0], 3),
            ([63, 0, 100, 0, 0x60, 0], 4),
            ([100, 0, 63, 0, 0x60, 0], 4),
            ([100, 0, 0xFE, 0xFF, 0x60, 0], 4),
        ] as [([UInt8], UInt8)]
    )
    func peerMayGrowItsLengthsOrShrinkTheMPSOfOneChannel(data: [UInt8], result: UInt8) throws {
        var end = try openEnd(enhanced: 2)
        #expect(end.answers(to: [0x19, 5, UInt8(data.count), 0] + data) == [[0x1A, 5, 2, 0, result, 0]])
        let changed = try #require(end.channels[channel(0x40)])
        #expect(changed.peerMTU == (result == 0 ? Int(data[0]) : 100))
        #expect(changed.peerMPS == (result == 0 ? Int(data[2]) : 100))
        #expect(end.events().count == (result == 0 ? (data.count - 4) / 2 : 0))
    }

    @Test("After the peer's MPS has shrunk, K-frames are no longer than it")
    func framesAreNoLongerThanAnMPSThatHasShrunk() throws {
        var end = try openEnd(enhanced: 1)
        try end.channels.send(Array(repeating: 1, count: 100), on: channel(0x40))
        #expect(end.nextFrame()?.payload.count == 100)
        try end.channels.send(Array(repeating: 1, count: 100), on: channel(0x40))
        _ = end.receive(command: [0x19, 5, 6, 0, 100, 0, 64, 0, 0x60, 0])
        #expect(end.frames().map(\.payload.count) == [2, 64, 38])
    }

    @Test("Our new lengths apply once the peer has agreed, and not if it refuses")
    func ownLengthsApplyOnceThePeerHasAgreed() throws {
        let answers: [([UInt8], CreditBasedChannels.ReconfigurationOutcome, Int)] = [
            ([0x1A, 1, 2, 0, 0, 0], .answered(.successful), 150),
            ([0x1A, 1, 2, 0, 3, 0], .answered(.invalidDestinationCIDs), 100),
            ([0x01, 1, 2, 0, 0, 0], .rejected(.commandNotUnderstood), 100),
        ]
        for (answer, outcome, mtu) in answers {
            var end = try openEnd(enhanced: 2)
            try end.channels.reconfigure(list(0x40, 0x41), mtu: 150, mps: 100)
            #expect(end.commands() == [[0x19, 1, 8, 0, 150, 0, 100, 0, 0x40, 0, 0x41, 0]])
            #expect(end.channels[channel(0x40)]?.mtu == 100)
            #expect(throws: CreditBasedChannels.ReconfigurationError.pending) {
                try end.channels.reconfigure(list(0x41), mtu: 160, mps: 100)
            }
            _ = end.receive(command: answer)
            #expect(end.events() == [.reconfigurationFinished(list(0x40, 0x41), outcome)])
            #expect(end.channels[channel(0x40)]?.mtu == mtu && end.channels[channel(0x41)]?.mtu == mtu)
            try end.channels.reconfigure(list(0x41), mtu: 160, mps: 100)
            end.channels.advance(to: end.now + .seconds(60))
            #expect(end.events().isEmpty, "a request that is not sent does not wait")
            _ = end.commands()
            end.channels.advance(to: end.now + .seconds(60))
            #expect(end.events() == [.reconfigurationFinished(list(0x41), .timedOut)])
        }
    }

    @Test("Forbidden changes are not requested")
    func forbiddenChangeIsNotRequested() throws {
        let cases: [(ChannelIdentifierList, UInt16, UInt16, CreditBasedChannels.ReconfigurationError)] = [
            (list(), 200, 200, .invalidChannels),
            (list(0x40, 0x40), 200, 200, .invalidChannels),
            (list(0x40, 0x4F), 200, 200, .notOpen(channel(0x4F))),
            (list(0x42), 200, 200, .notEnhanced(channel(0x42))),
            (list(0x40), 99, 200, .reductionOfMTUNotAllowed),
            (list(0x40, 0x41), 200, 99, .reductionOfMPSNotAllowed),
            (list(0x40), 200, 63, .invalidParameters),
            (list(0x40), 200, 65534, .invalidParameters),
        ]
        for (channels, mtu, mps, error) in cases {
            var end = try openEnd(enhanced: 2)
            #expect(throws: error) { try end.channels.reconfigure(channels, mtu: mtu, mps: mps) }
            #expect(end.commands().isEmpty)
        }
    }
}

@Suite("A longer MPS and the credits of the peer")
struct LongerMPSTests {
    private static let capacity = 3840
    /// A credit costs 2,000 bytes with this MPS, and 33 of them fit sixteen times the capacity that it needs, 4,132
    /// bytes.
    private static let longer: UInt16 = 1968

    /// An end with open channels, from 0x40 here and from 0x60 at the peer, and an MPS of 64. The peer has 40 credits
    /// for each.
    private func openEnd(channels count: UInt8 = 1) throws -> ChannelEndpoint {
        var end = ChannelEndpoint()
        let configuration = CreditBasedChannel.Configuration(mtu: 100, mps: 64, receiveByteCapacity: Self.capacity)
        try end.services.register(.init(configuration: configuration), at: spsm)
        let sources: [UInt8] = (0..<count).flatMap { [UInt8(0x60) + $0, 0] as [UInt8] }
        _ = end.answers(to: [0x17, 1, 8 + 2 * count, 0, 0x80, 0, 100, 0, 100, 0, 9, 0] + sources)
        _ = end.events()
        #expect(end.channels[channel(0x40)]?.receiveCredits == 40)
        return end
    }

    /// Makes the peer send an empty SDU, and the app read it.
    private func exchangeEmptySDU(_ end: inout ChannelEndpoint, on identifier: UInt16 = 0x40) {
        #expect(end.receive([0, 0], on: identifier) == .taken)
        #expect(end.channels.read(from: channel(identifier)) == [])
        _ = end.events()
    }

    @Test func longerMPSIsRequestedOnceTheCreditsFitTheLimit() throws {
        var end = try openEnd()
        try end.channels.reconfigure(list(0x40), mtu: 100, mps: Self.longer)
        for credits in (34...40).reversed() {
            #expect(end.channels[channel(0x40)]?.receiveCredits == credits)
            #expect(end.commands().isEmpty, "\(credits) credits")
            exchangeEmptySDU(&end)
        }
        #expect(end.commands() == [[0x19, 1, 6, 0, 100, 0, 0xB0, 0x07, 0x40, 0]])
        #expect(end.receive(command: [0x1A, 1, 2, 0, 0, 0]) == .handled)
        #expect(end.events() == [.reconfigurationFinished(list(0x40), .answered(.successful))])
        #expect(end.channels[channel(0x40)]?.mps == Int(Self.longer))
    }

    @Test("The greatest capacities are no limit, and cause no overflow")
    func longerMPSIsRequestedAtOnceWithTheGreatestCapacity() throws {
        var end = ChannelEndpoint()
        let configuration = CreditBasedChannel.Configuration(
            mtu: 100,
            mps: 64,
            receiveByteCapacity: .max,
            sendByteCapacity: .max
        )
        try end.services.register(.init(configuration: configuration), at: spsm)
        _ = end.answers(to: [0x17, 1, 10, 0, 0x80, 0, 100, 0, 100, 0, 9, 0, 0x60, 0])
        #expect(end.channels[channel(0x40)]?.receiveCredits == 65_535)
        for _ in 0..<2 { try end.channels.send([1], on: channel(0x40)) }
        #expect(end.frames().count == 2)
        try end.channels.reconfigure(list(0x40), mtu: 100, mps: Self.longer)
        #expect(end.commands() == [[0x19, 1, 6, 0, 100, 0, 0xB0, 0x07, 0x40, 0]])
    }

    @Test("SDUs that the app has not read leave less room for credits")
    func unreadSDUsDelayTheRequest() throws {
        var end = try openEnd()
        try end.channels.reconfigure(list(0x40), mtu: 100, mps: Self.longer)
        for _ in 0..<7 { #expect(end.receive([0, 0], on: 0x40) == .taken) }
        #expect(end.commands().isEmpty)
        while end.channels.read(from: channel(0x40)) != nil {}
        #expect(end.commands().map(\.first) == [0x19])
    }

    @Test("Until the peer has answered, credits are granted for the longer MPS; after a refusal, for the present one")
    func creditsAreGrantedForTheLongerMPSUntilThePeerRefuses() throws {
        var end = try openEnd()
        try end.channels.reconfigure(list(0x40), mtu: 100, mps: Self.longer)
        for _ in 0..<7 { exchangeEmptySDU(&end) }
        #expect(end.commands().map(\.first) == [0x19])
        var granted: [[UInt8]] = []
        while granted.isEmpty {
            try #require(end.channels[channel(0x40)]?.receiveCredits != 0)
            exchangeEmptySDU(&end)
            granted = end.commands()
        }
        #expect(granted.map(\.first) == [0x16])
        #expect(end.channels[channel(0x40)]?.receiveCredits == 2)
        _ = end.receive(command: [0x1A, 1, 2, 0, 4, 0])
        #expect(end.channels[channel(0x40)]?.mps == 64)
        exchangeEmptySDU(&end)
        #expect(end.commands().map(\.first) == [0x16])
        #expect(end.channels[channel(0x40)]?.receiveCredits == 40)
    }

    @Test func requestThatIsHeldTooLongTimesOut() throws {
        var end = try openEnd()
        try end.channels.reconfigure(list(0x40), mtu: 100, mps: Self.longer)
        #expect(end.channels.deadline == nil)
        #expect(end.commands().isEmpty)
        #expect(end.channels.deadline == end.now + .seconds(30))
        end.now = end.now + .seconds(29)
        end.channels.advance(to: end.now)
        #expect(end.events().isEmpty)
        end.now = end.now + .seconds(1)
        end.channels.advance(to: end.now)
        #expect(end.events() == [.reconfigurationFinished(list(0x40), .timedOut)])
        #expect(end.channels.deadline == nil)
        for _ in 0..<4 { exchangeEmptySDU(&end) }
        #expect(end.commands().isEmpty)
        try end.channels.reconfigure(list(0x40), mtu: 100, mps: 64)
    }

    @Test func heldRequestOfAnEndedChannelIsDropped() throws {
        var end = try openEnd()
        try end.channels.reconfigure(list(0x40), mtu: 100, mps: Self.longer)
        #expect(end.commands().isEmpty)
        end.channels.disconnect(channel(0x40))
        #expect(end.commands() == [[0x06, 1, 4, 0, 0x60, 0, 0x40, 0]])
        #expect(end.events() == [.closed(channel(0x40), .byUs, unread: [])])
    }

    @Test("A channel that has ended is left out of a held request for several channels")
    func endedChannelIsLeftOutOfAHeldRequest() throws {
        var end = try openEnd(channels: 2)
        try end.channels.reconfigure(list(0x40, 0x41), mtu: 100, mps: Self.longer)
        #expect(end.commands().isEmpty && end.channels.holdsReconfiguration)
        end.channels.disconnect(channel(0x40))
        #expect(end.commands() == [[0x06, 1, 4, 0, 0x60, 0, 0x40, 0]])
        for _ in 0..<7 { exchangeEmptySDU(&end, on: 0x41) }
        #expect(end.commands() == [[0x19, 2, 6, 0, 100, 0, 0xB0, 0x07, 0x41, 0]])
        #expect(!end.channels.holdsReconfiguration && end.channels.hasUnansweredRequest)
        #expect(end.receive(command: [0x1A, 2, 2, 0, 0, 0]) == .handled)
        #expect(end.events() == [.reconfigurationFinished(list(0x41), .answered(.successful))])
        #expect(end.channels[channel(0x41)]?.mps == Int(Self.longer))
    }
}

@Suite("Ending channels")
struct ChannelEndingTests {
    @Test("We end a channel; its identifier stays in use until the peer answers or a timeout")
    func identifierOfAnEndedChannelIsInUseUntilAnAnswerOrATimeout() throws {
        var end = try openEnd(enhanced: 1)
        _ = end.receive([1, 0, 9], on: 0x40)
        try end.channels.send([1], on: channel(0x40))
        _ = end.events()
        end.channels.disconnect(channel(0x40))
        end.channels.disconnect(channel(0x40))
        #expect(end.events() == [.closed(channel(0x40), .byUs, unread: [[9]])])
        #expect(end.commands() == [[0x06, 1, 4, 0, 0x60, 0, 0x40, 0]])
        #expect(end.frames().isEmpty)
        for stray: [UInt8] in [
            [0x07, 2, 4, 0, 0x60, 0, 0x40, 0], [0x07, 1, 4, 0, 0x61, 0, 0x40, 0],
            [0x15, 1, 10, 0] + Array(repeating: 0, count: 10),
        ] {
            #expect(end.receive(command: stray) == .handled)
            #expect(end.channels.count == 2)
        }
        var answered = end
        #expect(answered.receive(command: [0x07, 1, 4, 0, 0x60, 0, 0x40, 0]) == .handled)
        #expect(answered.channels.count == 1 && answered.channels.deadline == nil)
        end.channels.advance(to: end.now + SignalingChannel.responseTimeout)
        #expect(end.channels.count == 1 && end.channels.deadline == nil && end.events().isEmpty)
    }

    @Test("A channel that finishes ends after its last K-frame, and accepts no more data")
    func finishingChannelEndsAfterItsLastFrame() throws {
        var end = try openEnd(enhanced: 1)
        try end.channels.send(Array(repeating: 1, count: 100), on: channel(0x40))
        end.channels.finish(channel(0x40))
        #expect(throws: CreditBasedChannel.SendError.notOpen) { try end.channels.send([2], on: channel(0x40)) }
        #expect(end.nextFrame()?.payload.count == 100)
        #expect(end.commands().isEmpty && end.events().isEmpty)
        #expect(end.receive([1, 0, 9], on: 0x40) == .taken)
        #expect(end.nextFrame()?.payload.count == 2)
        #expect(end.commands() == [[0x06, 1, 4, 0, 0x60, 0, 0x40, 0]])
        #expect(end.events() == [.received(channel(0x40)), .closed(channel(0x40), .byUs, unread: [[9]])])
        end.channels.finish(channel(0x41))
        #expect(end.events() == [.closed(channel(0x41), .byUs, unread: [])])
    }

    @Test func channelEndedByThePeerIsAnsweredAndReportsUnreadData() throws {
        var end = try openEnd(enhanced: 1)
        _ = end.receive([1, 0, 9], on: 0x40)
        _ = end.events()
        #expect(end.answers(to: [0x06, 8, 4, 0, 0x40, 0, 0x60, 0]) == [[0x07, 8, 4, 0, 0x40, 0, 0x60, 0]])
        #expect(end.events() == [.closed(channel(0x40), .byPeer, unread: [[9]])])
        #expect(end.receive([1, 0, 9], on: 0x40) == .unknownChannel)
    }

    @Test("Both sides end a channel at the same time", arguments: [true, false])
    func bothSidesMayEndAChannelAtTheSameTime(isOurRequestSent: Bool) throws {
        var end = try openEnd(enhanced: 1)
        end.channels.disconnect(channel(0x40))
        _ = end.events()
        if isOurRequestSent { #expect(end.commands() == [[0x06, 1, 4, 0, 0x60, 0, 0x40, 0]]) }
        #expect(end.answers(to: [0x06, 8, 4, 0, 0x40, 0, 0x60, 0]) == [[0x07, 8, 4, 0, 0x40, 0, 0x60, 0]])
        #expect(end.channels.count == 1 && end.channels.deadline == nil)
        #expect(end.receive(command: [0x07, 1, 4, 0, 0x60, 0, 0x40, 0]) == .handled)
        #expect(end.receive(command: [0x01, 1, 6, 0, 2, 0, 0x60, 0, 0x40, 0]) == .notForChannels)
        #expect(end.events().isEmpty && end.commands().isEmpty)
    }

    @Test("A command for an unknown channel is rejected with both its ends, as we see them")
    func disconnectionOfAnUnknownChannelIsRejectedWithBothEnds() throws {
        var end = try openEnd(enhanced: 1)
        #expect(
            end.answers(to: [0x06, 8, 4, 0, 0x50, 0, 0x60, 0]) == [[0x01, 8, 6, 0, 2, 0, 0x50, 0, 0x60, 0]]
        )
        // Credits are an indication: they have no answer (Vol 3, Part A, 4.24).
        #expect(end.answers(to: [0x16, 8, 4, 0, 0x6F, 0, 1, 0]).isEmpty)
        // Our end, but not the peer's: the command is silently ignored.
        #expect(end.answers(to: [0x06, 8, 4, 0, 0x40, 0, 0x61, 0]).isEmpty)
        #expect(end.channels.count == 2)
    }

    @Test("When the link ends, all channels do, and nothing is sent")
    func endOfTheLinkEndsAllChannelsAndSendsNothing() throws {
        var end = try openEnd(enhanced: 1)
        _ = try end.channels.connect(to: spsm)
        _ = end.receive([1, 0, 9], on: 0x40)
        _ = end.events()
        end.channels.linkEnded()
        #expect(
            end.events() == [
                .closed(channel(0x40), .linkEnded, unread: [[9]]),
                .closed(channel(0x41), .linkEnded, unread: []),
                .failed(channel(0x42), .linkEnded),
            ]
        )
        #expect(end.commands().isEmpty && end.channels.count == 0)
    }

    @Test("Other commands are left to the signaling channel")
    func otherCommandsAreLeftToSignaling() throws {
        var end = try openEnd(enhanced: 1)
        let others: [[UInt8]] = [
            [], [0x14], [0x14, 0, 0, 0], [0x12, 1, 8, 0, 24, 0, 40, 0, 0, 0, 200, 0], [0x13, 1, 2, 0, 0, 0],
            [0x01, 1, 2, 0, 0, 0], [0x7E, 1, 0, 0],
            [0x19, 5, 20, 0] + Array(repeating: 0x40, count: 20),
        ]
        for command in others { #expect(end.receive(command: command) == .notForChannels) }
        #expect(end.commands().isEmpty)
    }

    @Test(
        "A malformed request is counted and answered, so that the peer need not wait for its timer",
        arguments: [
            // Vol 3, Part A, 4.1: Command Reject, Command Not Understood.
            ([0x14, 1, 1, 0, 0], [0x01, 1, 2, 0, 0, 0]), ([0x06, 2, 3, 0, 0x40, 0, 0x60], [0x01, 2, 2, 0, 0, 0]),
            ([0x19, 3, 5, 0, 64, 0, 64, 0, 0x40], [0x01, 3, 2, 0, 0, 0]),
            // Vol 3, Part A, 4.26: All Connections Refused - Invalid Parameters. An odd length, no parameters.
            ([0x17, 4, 9, 0, 0x80, 0, 64, 0, 64, 0, 1, 0, 0x40], [0x18, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0x0C, 0]),
            ([0x17, 5, 0, 0], [0x18, 5, 8, 0, 0, 0, 0, 0, 0, 0, 0x0C, 0]),
            // An indication has no answer.
            ([0x16, 7, 3, 0, 0x60, 0, 1], []),
        ] as [([UInt8], [UInt8])]
    )
    func malformedRequestIsAnswered(command: [UInt8], answer: [UInt8]) throws {
        var end = try openEnd(enhanced: 1)
        guard case .malformed = end.receive(command: command) else {
            Issue.record("\(command) was read")
            return
        }
        #expect(end.commands() == (answer.isEmpty ? [] : [answer]))
    }

    @Test("A flood of requests is dropped while the peer takes no answers")
    func floodOfRequestsIsDroppedWhileThePeerTakesNoAnswers() throws {
        var end = try openEnd(enhanced: 1)
        var outcomes: [CreditBasedChannels.CommandOutcome] = []
        for _ in 0..<100 { outcomes.append(end.receive(command: [0x06, 8, 4, 0, 0x50, 0, 0x60, 0])) }
        #expect(outcomes.first == .handled && outcomes.last == .overloaded)
        #expect(end.commands().count == 64)
        #expect(end.receive(command: [0x06, 8, 4, 0, 0x50, 0, 0x60, 0]) == .handled)
    }
}
