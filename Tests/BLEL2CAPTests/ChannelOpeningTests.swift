import BLEL2CAP
import BluetoothTypes
import Testing

private let spsm = SPSM(rawValue: 0x80)
/// Two K-frames of 23 bytes in addition to the longest SDU: the minimum capacity, which is two credits during an
/// incomplete SDU.
private let small = CreditBasedChannel.Configuration(mtu: 23, mps: 23, receiveByteCapacity: 0)
private let leRequest: [UInt8] = [0x14, 1, 10, 0, 0x80, 0, 0x40, 0, 23, 0, 23, 0, 3, 0]
private let leResponse: [UInt8] = [0x15, 1, 10, 0, 0x40, 0, 23, 0, 23, 0, 3, 0, 0, 0]

private func server(
    _ configuration: CreditBasedChannel.Configuration = small,
    security: SPSMRegistry.SecurityRequirements = .init(),
    limit: Int = 16
) throws -> ChannelEndpoint {
    var endpoint = ChannelEndpoint(limit: limit)
    try endpoint.services.register(.init(configuration: configuration, security: security), at: spsm)
    return endpoint
}

@Suite("Opening credit-based channels")
struct ChannelOpeningTests {
    @Test("A channel is requested, accepted, and open at both ends")
    func acceptedChannelIsOpenAtBothEnds() throws {
        var client = ChannelEndpoint()
        var server = try server()
        let identifier = try client.channels.connect(to: spsm, configuration: small)
        #expect(client.commands() == [leRequest])
        #expect(client.channels[identifier]?.isOpen == false)
        #expect(server.answers(to: leRequest) == [leResponse])
        #expect(server.events() == [.accepted(channel(0x40))])
        #expect(client.receive(command: leResponse) == .handled)
        #expect(client.events() == [.opened(channel(0x40))])
        let opened = try #require(client.channels[identifier])
        #expect(opened.isOpen && opened.remote == channel(0x40) && opened.spsm == spsm && opened.variant == .le)
        #expect(opened.peerMTU == 23 && opened.peerMPS == 23)
        #expect(opened.sendCredits == 3 && opened.receiveCredits == 3)
        #expect(client.channels.deadline == nil)
    }

    @Test func serviceAcceptsOnlyItsVariantAndItsNumberOfChannels() throws {
        var server = ChannelEndpoint()
        try server.services.register(.init(configuration: small, variant: .enhanced, channelLimit: 2), at: spsm)
        #expect(server.answers(to: leRequest) == [[0x15, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0]])
        let request: [UInt8] = [0x17, 2, 14, 0, 0x80, 0, 64, 0, 64, 0, 3, 0, 0x50, 0, 0x51, 0, 0x52, 0]
        let answer = try #require(server.answers(to: request).first)
        #expect(answer[10...] == [0x04, 0, 0x40, 0, 0x41, 0, 0, 0], "the third has no resources")
    }

    @Test(
        "Channels of which the last is the first in the list are refused by a service that requires it",
        arguments: [
            ([0x52, 0x50, 0x51], true), ([0x51, 0x50, 0x52], false), ([0x50, 0x51, 0x54], false),
            ([0x52, 0x51, 0x50], false), ([0x51, 0x52, 0x50], false),
        ] as [([UInt8], Bool)]
    )
    func channelsOfPeersThatMixThemUpAreRefused(_ sources: [UInt8], _ isMixed: Bool) throws {
        let list: [UInt8] = sources.flatMap { source -> [UInt8] in [source, 0] }
        let request: [UInt8] = [0x17, 2, 14, 0, 0x80, 0, 64, 0, 64, 0, 3, 0] + list
        for refusesMixedSources in [false, true] {
            var server = ChannelEndpoint()
            let service = SPSMRegistry.Service(configuration: small, refusesMixedSources: refusesMixedSources)
            try server.services.register(service, at: spsm)
            let answer = try #require(server.answers(to: request).first)
            let isRefused = refusesMixedSources && isMixed
            let expected: [UInt8] = isRefused ? [0x0C, 0, 0, 0, 0, 0, 0, 0] : [0, 0, 0x40, 0, 0x41, 0, 0x42, 0]
            #expect(Array(answer[10...]) == expected)
            #expect(server.events().isEmpty == isRefused)
        }
    }

    @Test("Identifiers that begin again at the lowest are requested in ascending order")
    func requestedChannelsAscend() throws {
        var client = ChannelEndpoint(limit: 64)
        for _ in 0..<63 {
            let identifier = try client.channels.connect(to: spsm, configuration: small, isHeld: true)
            client.channels.disconnect(identifier)
        }
        let list = try client.channels.connect(to: spsm, count: 3)
        #expect(list.map(\.rawValue) == [0x40, 0x41, 0x7F])
    }

    @Test func requestsOfThisDeviceCountForTheLimitUnlessItYields() throws {
        for yieldsToPeer in [false, true] {
            var endpoint = ChannelEndpoint(yieldsToPeer: yieldsToPeer)
            try endpoint.services.register(.init(configuration: small, channelLimit: 1), at: spsm)
            _ = try endpoint.channels.connect(to: spsm, count: 1)
            let request: [UInt8] = [0x17, 2, 10, 0, 0x80, 0, 64, 0, 64, 0, 3, 0, 0x50, 0]
            let answer = try #require(endpoint.answers(to: request).last)
            #expect(answer[10...] == (yieldsToPeer ? [0, 0, 0x41, 0] : [0x04, 0, 0, 0]))
        }
    }

    @Test func heldRequestIsSentWhenItIsReleased() throws {
        var client = ChannelEndpoint(limit: 4)
        let first = try client.channels.connect(to: spsm, configuration: small, isHeld: true)
        let list = try client.channels.connect(to: spsm, count: 2, isHeld: true)
        let last = try client.channels.connect(to: spsm, configuration: small)
        #expect(throws: CreditBasedChannels.ConnectionError.tooManyChannels) { try client.channels.connect(to: spsm) }
        #expect(client.commands().map(\.first) == [0x14], "the last")
        // An answer to the peer does not wait.
        #expect(client.answers(to: [0x06, 8, 4, 0, 0x70, 0, 0x41, 0]).map(\.first) == [0x01])
        #expect(client.channels.isHeld(first) && client.channels.isHeld(list[1]) && !client.channels.isHeld(last))
        client.channels.release(list[1])
        client.channels.release(list[1])
        #expect(client.commands().map(\.first) == [0x17])
        client.channels.release(first)
        #expect(client.commands().map { $0[6] } == [UInt8(first.rawValue)])
        #expect(!client.channels.isHeld(first) && client.channels.deadline != nil)
    }

    @Test func heldRequestOfWhichNoChannelIsWantedIsNeverSent() throws {
        var client = ChannelEndpoint(limit: 2)
        let list = try client.channels.connect(to: spsm, count: 2, isHeld: true)
        client.channels.disconnect(list[0])
        #expect(client.channels.isHeld(list[0]) && client.channels.count == 2)
        client.channels.disconnect(list[1])
        #expect(!client.channels.isHeld(list[0]) && client.channels.count == 0)
        #expect(client.events() == [.failed(list[0], .canceled), .failed(list[1], .canceled)])
        client.channels.release(list[0])
        #expect(client.commands().isEmpty)
        let ended = try client.channels.connect(to: spsm, isHeld: true)
        client.channels.linkEnded()
        #expect(client.events() == [.failed(ended, .linkEnded)])
        client.channels.release(ended)
        #expect(client.commands().isEmpty && client.channels.count == 0)
    }

    @Test(
        "A request that cannot be granted is refused with its reason",
        arguments: [
            ([0x14, 7, 10, 0, 0x81, 0, 0x40, 0, 23, 0, 23, 0, 3, 0], 0x02),
            ([0x14, 7, 10, 0, 0x80, 0, 0x3F, 0, 23, 0, 23, 0, 3, 0], 0x09),
            ([0x14, 7, 10, 0, 0x80, 0, 0x80, 0, 23, 0, 23, 0, 3, 0], 0x09),
            ([0x14, 7, 10, 0, 0x80, 0, 0x41, 0, 23, 0, 23, 0, 3, 0], 0x0A),
            ([0x14, 7, 10, 0, 0x80, 0, 0x42, 0, 22, 0, 23, 0, 3, 0], 0x0B),
            ([0x14, 7, 10, 0, 0x80, 0, 0x42, 0, 23, 0, 22, 0, 3, 0], 0x0B),
            ([0x14, 7, 10, 0, 0x80, 0, 0x42, 0, 23, 0, 0xFE, 0xFF, 3, 0], 0x0B),
            ([0x14, 7, 10, 0, 0x80, 0, 0x43, 0, 23, 0, 23, 0, 3, 0], 0x04),
        ] as [([UInt8], UInt8)]
    )
    func requestThatCannotBeGrantedIsRefusedWithItsReason(request: [UInt8], result: UInt8) throws {
        var server = try server(limit: 2)
        for source: UInt8 in [0x41, 0x42] where !(result == 0x0B && source == 0x42) {
            _ = server.answers(to: [0x14, 1, 10, 0, 0x80, 0, source, 0, 23, 0, 23, 0, 3, 0])
        }
        _ = server.events()
        #expect(server.answers(to: request) == [[0x15, 7, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, result, 0]])
        #expect(server.events().isEmpty)
    }

    @Test("A request on a link that is not secure enough is refused without a channel")
    func requestOnALinkThatIsNotSecureEnoughIsRefused() throws {
        var server = try server(security: .init(needsEncryption: true, minimumKeySize: 16))
        #expect(server.answers(to: leRequest).first?[12] == 0x05)
        server.security.hasKey = true
        #expect(server.answers(to: leRequest).first?[12] == 0x08)
        server.security.isEncrypted = true
        server.security.keySize = 15
        #expect(server.answers(to: leRequest).first?[12] == 0x07)
        server.security.keySize = 16
        #expect(server.answers(to: leRequest) == [leResponse])
    }

    @Test("A refusal, a reject and a timeout end an attempt, and free its identifier")
    func refusalRejectAndTimeoutEndAnAttempt() throws {
        let cases: [(answer: [UInt8], failure: CreditBasedChannels.ConnectionFailure)] = [
            ([0x15, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0], .refused(.spsmNotSupported)),
            ([0x01, 1, 2, 0, 0, 0], .rejected(.commandNotUnderstood)),
            ([0x15, 1, 10, 0, 0x3F, 0, 23, 0, 23, 0, 3, 0, 0, 0], .invalidResponse),
        ]
        for (answer, failure) in cases {
            var client = ChannelEndpoint()
            _ = try client.channels.connect(to: spsm, configuration: small)
            _ = client.commands()
            #expect(client.receive(command: answer) == .handled)
            #expect(client.events() == [.failed(channel(0x40), failure)])
            #expect(client.channels.count == 0 && client.commands().isEmpty)
        }
        var client = ChannelEndpoint()
        client.now = Instant(nanoseconds: 0) + .seconds(5)
        _ = try client.channels.connect(to: spsm, configuration: small)
        _ = client.commands()
        #expect(client.channels.deadline == Instant(nanoseconds: 0) + .seconds(35))
        client.channels.advance(to: Instant(nanoseconds: 0) + .seconds(34))
        #expect(client.events().isEmpty)
        client.channels.advance(to: Instant(nanoseconds: 0) + .seconds(35))
        #expect(client.events() == [.failed(channel(0x40), .timedOut)])
        #expect(client.receive(command: leResponse) == .handled)
        #expect(client.events().isEmpty && client.channels.count == 0)
    }

    @Test("A channel with values out of range is ended", arguments: [(22, 23), (23, 22), (23, 0xFFFE)])
    func channelWithValuesOutOfRangeIsEnded(mtu: UInt16, mps: UInt16) throws {
        var client = ChannelEndpoint()
        _ = try client.channels.connect(to: spsm, configuration: small)
        _ = client.commands()
        let values = [UInt8(mtu), 0, UInt8(truncatingIfNeeded: mps), UInt8(mps >> 8)]
        #expect(
            client.answers(to: [0x15, 1, 10, 0, 0x51, 0] + values + [3, 0, 0, 0])
                == [[0x06, 2, 4, 0, 0x51, 0, 0x40, 0]]
        )
        #expect(client.events() == [.failed(channel(0x40), .invalidResponse)])
        #expect(client.receive(command: [0x07, 2, 4, 0, 0x51, 0, 0x40, 0]) == .handled)
        #expect(client.channels.count == 0)
    }

    @Test("An endpoint that the peer assigns twice ends both channels")
    func endpointThatIsAssignedTwiceEndsBothChannels() throws {
        var client = ChannelEndpoint()
        _ = try client.channels.connect(to: spsm, configuration: small)
        _ = try client.channels.connect(to: spsm, configuration: small)
        _ = client.commands()
        _ = client.receive(command: leResponse)
        _ = client.events()
        #expect(client.answers(to: [0x15, 2] + leResponse.dropFirst(2)) == [[0x06, 3, 4, 0, 0x40, 0, 0x40, 0]])
        #expect(
            client.events() == [
                .closed(channel(0x40), .violation(.destinationAlreadyAllocated), unread: []),
                .failed(channel(0x41), .destinationAlreadyAllocated),
            ]
        )
    }

    @Test("A channel cancelled before it is open is ended once the peer has opened it")
    func channelCancelledBeforeItIsOpenIsEndedOnceItOpens() throws {
        var client = ChannelEndpoint()
        let identifier = try client.channels.connect(to: spsm, configuration: small)
        _ = client.commands()
        client.channels.disconnect(identifier)
        client.channels.disconnect(identifier)
        #expect(client.events() == [.failed(identifier, .canceled)])
        #expect(client.commands().isEmpty)
        #expect(client.answers(to: leResponse) == [[0x06, 2, 4, 0, 0x40, 0, 0x40, 0]])
        #expect(client.events().isEmpty)
        _ = client.receive(command: [0x07, 2, 4, 0, 0x40, 0, 0x40, 0])
        #expect(client.channels.count == 0)
    }

    @Test("Impossible requests are refused")
    func impossibleRequestIsRefused() throws {
        var client = ChannelEndpoint(limit: 4)
        #expect(throws: CreditBasedChannels.ConnectionError.invalidSPSM(SPSM(rawValue: 0x100))) {
            try client.channels.connect(to: SPSM(rawValue: 0x100))
        }
        #expect(throws: CreditBasedChannels.ConnectionError.invalidConfiguration) {
            try client.channels.connect(to: spsm, configuration: .init(mtu: 22))
        }
        for count in [-1, 0, 6] {
            #expect(throws: CreditBasedChannels.ConnectionError.invalidCount(count)) {
                try client.channels.connect(to: spsm, count: count)
            }
        }
        #expect(throws: CreditBasedChannels.ConnectionError.tooManyChannels) {
            try client.channels.connect(to: spsm, count: 5)
        }
        #expect(client.commands().isEmpty && client.channels.count == 0)
    }

    @Test("All 64 identifiers are used in turn, and no more channels are opened")
    func all64IdentifiersAreUsedInTurnAndNoMoreChannelsOpened() throws {
        var client = ChannelEndpoint(limit: 1000)
        for value in UInt16(0x40)...0x7F {
            #expect(try client.channels.connect(to: spsm).rawValue == value)
        }
        #expect(throws: CreditBasedChannels.ConnectionError.tooManyChannels) { try client.channels.connect(to: spsm) }
        _ = client.commands()
        _ = client.receive(command: [0x01, 3, 2, 0, 0, 0])
        #expect(try client.channels.connect(to: spsm).rawValue == 0x42)
    }
}

@Suite("Opening channels by the enhanced variant")
struct EnhancedOpeningTests {
    private static let configuration = CreditBasedChannel.Configuration(mtu: 64, mps: 64, receiveByteCapacity: 0)
    private static let request: [UInt8] = [
        0x17, 1, 18, 0, 0x80, 0, 64, 0, 64, 0, 3, 0, 0x40, 0, 0x41, 0, 0x42, 0, 0x43, 0, 0x44, 0,
    ]

    @Test("Five channels are opened at the same time")
    func fiveChannelsAreOpenedAtTheSameTime() throws {
        var client = ChannelEndpoint()
        var server = try server(Self.configuration)
        let identifiers = try client.channels.connect(to: spsm, count: 5, configuration: Self.configuration)
        #expect(identifiers == list(0x40, 0x41, 0x42, 0x43, 0x44))
        #expect(client.commands() == [Self.request])
        let response: [UInt8] = [
            0x18, 1, 18, 0, 64, 0, 64, 0, 3, 0, 0, 0, 0x40, 0, 0x41, 0, 0x42, 0, 0x43, 0, 0x44, 0,
        ]
        #expect(server.answers(to: Self.request) == [response])
        #expect(server.events() == identifiers.map { .accepted($0) })
        _ = client.receive(command: response)
        #expect(client.events() == identifiers.map { .opened($0) })
        #expect(client.channels[channel(0x44)]?.sendCredits == 3)
    }

    @Test("A service with shorter lengths than the variant allows uses the minimum")
    func shortLengthsAreRaised() throws {
        var server = try server(small)
        let answers = server.answers(to: [0x17, 1, 10, 0, 0x80, 0, 64, 0, 64, 0, 3, 0, 0x40, 0])
        #expect(answers == [[0x18, 1, 10, 0, 64, 0, 64, 0, 3, 0, 0, 0, 0x40, 0]])
        #expect(server.channels[channel(0x40)]?.mtu == 64)
    }

    @Test("Channels that cannot be opened are refused, and the others are open")
    func channelsThatCannotBeOpenedAreRefusedAndTheOthersOpen() throws {
        var server = try server(Self.configuration, limit: 3)
        var command = Self.request
        command[14] = 0x40  // A second time.
        #expect(
            server.answers(to: command) == [
                [0x18, 1, 18, 0, 64, 0, 64, 0, 3, 0, 0x0A, 0, 0x40, 0, 0, 0, 0x41, 0, 0x42, 0, 0, 0]
            ]
        )
        #expect(server.channels.count == 3)

        var client = ChannelEndpoint()
        _ = try client.channels.connect(to: spsm, count: 3, configuration: Self.configuration)
        _ = client.commands()
        _ = client.receive(
            command: [0x18, 1, 14, 0, 64, 0, 64, 0, 3, 0, 4, 0, 0x50, 0, 0, 0, 0x52, 0]
        )
        #expect(
            client.events() == [
                .opened(channel(0x40)),
                .failed(channel(0x41), .refused(.noResourcesAvailable)),
                .opened(channel(0x42)),
            ]
        )
    }

    @Test(
        "A request that is invalid as a whole opens no channel",
        arguments: [
            ([0x17, 5, 10, 0, 0x81, 0, 64, 0, 64, 0, 3, 0, 0x40, 0], [2, 0, 0, 0]),
            ([0x17, 5, 10, 0, 0x80, 0, 63, 0, 64, 0, 3, 0, 0x40, 0], [0x0B, 0, 0, 0]),
            ([0x17, 5, 10, 0, 0x80, 0, 64, 0, 63, 0, 3, 0, 0x40, 0], [0x0B, 0, 0, 0]),
            ([0x17, 5, 10, 0, 0x80, 0, 64, 0, 64, 0, 0, 0, 0x40, 0], [0x0B, 0, 0, 0]),
            ([0x17, 5, 8, 0, 0x80, 0, 64, 0, 64, 0, 3, 0], [0x0C, 0]),
        ] as [([UInt8], [UInt8])]
    )
    func requestThatIsInvalidAsAWholeOpensNoChannel(request: [UInt8], tail: [UInt8]) throws {
        var server = try server(Self.configuration)
        let length = UInt8(6 + tail.count)
        #expect(server.answers(to: request) == [[0x18, 5, length, 0, 0, 0, 0, 0, 0, 0] + tail])
        #expect(server.channels.count == 0)
    }

    @Test("A refusal of all refuses each, whatever channels it names; a missing one was not opened")
    func refusalOfAllRefusesEachAndAMissingChannelIsNotOpened() throws {
        let cases: [(response: [UInt8], failure: CreditBasedChannels.ConnectionFailure)] = [
            ([0x18, 1, 12, 0, 64, 0, 64, 0, 3, 0, 5, 0, 0x50, 0, 0x51, 0], .refused(.insufficientAuthentication)),
            ([0x18, 1, 8, 0, 0, 0, 0, 0, 0, 0, 2, 0], .refused(.spsmNotSupported)),
            ([0x18, 1, 8, 0, 64, 0, 64, 0, 3, 0, 0, 0], .invalidResponse),
            ([0x18, 1, 12, 0, 64, 0, 64, 0, 3, 0, 0, 0, 0, 0, 0, 0], .invalidResponse),
        ]
        for (response, failure) in cases {
            var client = ChannelEndpoint()
            _ = try client.channels.connect(to: spsm, count: 2, configuration: Self.configuration)
            _ = client.commands()
            #expect(client.answers(to: response).isEmpty)
            #expect(client.events() == [.failed(channel(0x40), failure), .failed(channel(0x41), failure)])
        }
    }

    @Test("A pending answer gives the peer more time")
    func pendingAnswerGivesThePeerMoreTime() throws {
        var client = ChannelEndpoint()
        _ = try client.channels.connect(to: spsm, count: 1, configuration: Self.configuration)
        _ = client.commands()
        client.now = Instant(nanoseconds: 0) + .seconds(20)
        _ = client.receive(command: [0x18, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0x0E, 0, 0, 0])
        #expect(client.events().isEmpty)
        #expect(client.channels.deadline == Instant(nanoseconds: 0) + .seconds(80))
        _ = client.receive(command: [0x18, 1, 10, 0, 64, 0, 64, 0, 1, 0, 0, 0, 0x50, 0])
        #expect(client.events() == [.opened(channel(0x40))])
    }

    @Test("A peer that answers again and again that the connection is pending gets more time once")
    func repeatedPendingAnswersGiveMoreTimeOnce() throws {
        var client = ChannelEndpoint()
        _ = try client.channels.connect(to: spsm, count: 1, configuration: Self.configuration)
        _ = client.commands()
        for seconds in [20, 50, 79] {
            client.now = Instant(nanoseconds: 0) + .seconds(seconds)
            _ = client.receive(command: [0x18, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0x0E, 0, 0, 0])
            #expect(client.channels.deadline == Instant(nanoseconds: 0) + .seconds(80))
        }
        client.channels.advance(to: Instant(nanoseconds: 0) + .seconds(80))
        #expect(client.events() == [.failed(channel(0x40), .timedOut)])
    }
}
