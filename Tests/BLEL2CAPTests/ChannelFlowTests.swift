import BLEByteCoding
import BLEL2CAP
import BluetoothTypes
import Testing

private let spsm = SPSM(rawValue: 0x80)

/// An end with one open channel, 0x40 here and 0x60 at the peer, with `sendCredits` from the peer.
private func openEnd(
    _ configuration: CreditBasedChannel.Configuration = .init(mtu: 100, mps: 23, receiveByteCapacity: 0),
    peerMTU: UInt8 = 100,
    sendCredits: UInt16 = 2
) throws -> ChannelEndpoint {
    var end = ChannelEndpoint()
    try end.services.register(.init(configuration: configuration), at: spsm)
    let credits = [UInt8(truncatingIfNeeded: sendCredits), UInt8(sendCredits >> 8)]
    _ = end.answers(to: [0x14, 1, 10, 0, 0x80, 0, 0x60, 0, peerMTU, 0, 23, 0] + credits)
    _ = end.events()
    return end
}

private let disconnection: [UInt8] = [0x06, 1, 4, 0, 0x60, 0, 0x40, 0]

@Suite("SDUs and credits on a channel")
struct ChannelFlowTests {
    @Test("An SDU is split into K-frames, the first with its length, as credits allow")
    func sduIsSplitIntoFramesAsCreditsAllow() throws {
        var end = try openEnd()
        let unit = Array(UInt8(0)..<50)
        try end.channels.send(unit, on: channel(0x40))
        #expect(
            end.frames() == [
                .init(channel: 0x60, payload: [50, 0] + unit[..<21]),
                .init(channel: 0x60, payload: Array(unit[21..<44])),
            ]
        )
        #expect(end.channels[channel(0x40)]?.sendCredits == 0)
        _ = end.receive(command: [0x16, 9, 4, 0, 0x60, 0, 5, 0])
        #expect(end.frames() == [.init(channel: 0x60, payload: Array(unit[44...]))])
        #expect(end.channels[channel(0x40)]?.sendCredits == 4)
        #expect(end.channels[channel(0x40)]?.unsentCount == 0)
    }

    @Test("K-frames are at most 4,096 bytes long, even if the peer's MPS is longer")
    func framesAreAtMost4096BytesLong() throws {
        var end = ChannelEndpoint()
        try end.services.register(.init(), at: spsm)
        // An MTU of 65,000, an MPS of 65,533, and 20 credits.
        _ = end.answers(to: [0x14, 1, 10, 0, 0x80, 0, 0x60, 0, 0xE8, 0xFD, 0xFD, 0xFF, 20, 0])
        let unit = (0..<65_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        try end.channels.send(unit, on: channel(0x40))
        #expect(end.channels[channel(0x40)]?.unsentByteCount == 65_000)
        let first: [UInt8] = [0xE8, 0xFD] + unit[..<4094]
        #expect(end.nextFrame()?.payload == first)
        #expect(end.channels[channel(0x40)]?.unsentByteCount == 65_000 - 4094)
        let payloads = end.frames().map(\.payload)
        #expect(payloads.map(\.count) == Array(repeating: 4096, count: 14) + [65_002 - 15 * 4096])
        #expect(Array(payloads.joined()) == Array(unit[4094...]))
        #expect(end.channels[channel(0x40)]?.unsentByteCount == 0)
    }

    @Test("Credits that cannot be sent yet are not granted, and come together later")
    func creditsThatCannotBeSentAreNotGranted() throws {
        var end = try openEnd(.init(mtu: 23, mps: 23, receiveByteCapacity: 400))
        let granted = try #require(end.channels[channel(0x40)]).receiveCredits
        var buffer = PacketBuffer()
        for _ in 0..<granted {
            #expect(end.receive([0, 0], on: 0x40) == .taken)
            _ = end.channels.read(from: channel(0x40))
            let hasCommand = end.channels.nextCommand(
                at: end.now,
                identifiers: &end.identifiers,
                grantsCredits: false,
                into: &buffer
            )
            #expect(!hasCommand)
        }
        #expect(end.commands() == [[0x16, 1, 4, 0, 0x40, 0, UInt8(granted), 0]])
    }

    @Test("An empty SDU is a K-frame with its length only, and arrives as one")
    func emptySDUIsAFrameWithItsLengthOnly() throws {
        var end = try openEnd()
        try end.channels.send([], on: channel(0x40))
        #expect(end.frames() == [.init(channel: 0x60, payload: [0, 0])])
        #expect(end.receive([0, 0], on: 0x40) == .taken)
        #expect(end.events() == [.received(channel(0x40))])
        #expect(end.channels.read(from: channel(0x40)) == [])
    }

    @Test("An SDU longer than the peer's MTU, or for a channel that is not open, is refused")
    func sduThatIsTooLongOrForAClosedChannelIsRefused() throws {
        var end = try openEnd(peerMTU: 30)
        #expect(throws: CreditBasedChannel.SendError.exceedsMTU(30)) {
            try end.channels.send(Array(repeating: 0, count: 31), on: channel(0x40))
        }
        #expect(throws: CreditBasedChannel.SendError.notOpen) { try end.channels.send([1], on: channel(0x41)) }
        end.channels.disconnect(channel(0x40))
        #expect(throws: CreditBasedChannel.SendError.notOpen) { try end.channels.send([1], on: channel(0x40)) }
        #expect(end.frames().isEmpty)
    }

    @Test("A writer that exceeds the capacity gets an error, and an event when there is room")
    func writerBeyondTheCapacityGetsAnErrorAndLaterAnEvent() throws {
        var end = try openEnd(.init(mtu: 100, mps: 23, sendByteCapacity: 150), sendCredits: 0)
        let unit: [UInt8] = Array(repeating: 7, count: 20)
        for _ in 0..<2 { try end.channels.send(unit, on: channel(0x40)) }
        #expect(throws: CreditBasedChannel.SendError.noRoom) {
            try end.channels.send(Array(repeating: 7, count: 60), on: channel(0x40))
        }
        _ = end.receive(command: [0x16, 9, 4, 0, 0x60, 0, 1, 0])
        #expect(end.frames().count == 1 && end.events() == [.hasRoom(channel(0x40))])
        _ = end.receive(command: [0x16, 9, 4, 0, 0x60, 0, 1, 0])
        #expect(end.frames().count == 1 && end.events().isEmpty)
    }

    @Test("SDUs are read in order, and only the first in an empty queue causes an event")
    func sdusAreReadInOrderAndOnlyTheFirstCausesAnEvent() throws {
        var end = try openEnd(.init(mtu: 100, mps: 23))
        #expect(end.receive([3, 0, 1, 2], on: 0x40) == .taken)
        #expect(end.events().isEmpty)
        #expect(end.receive([3], on: 0x40) == .taken)
        #expect(end.receive([1, 0, 4], on: 0x40) == .taken)
        #expect(end.events() == [.received(channel(0x40))])
        #expect(end.channels[channel(0x40)]?.unreadCount == 2)
        #expect(end.channels.read(from: channel(0x40)) == [1, 2, 3])
        #expect(end.channels.read(from: channel(0x40)) == [4])
        #expect(end.channels.read(from: channel(0x40)) == nil)
        #expect(end.receive([1, 0, 5], on: 0x40) == .taken)
        #expect(end.events() == [.received(channel(0x40))])
    }

    @Test("A reader that stops limits the peer to the capacity; reading returns credits")
    func stoppedReaderLimitsThePeerAndReadingReturnsCredits() throws {
        let capacity = 2000
        var end = try openEnd(.init(mtu: 100, mps: 52, receiveByteCapacity: capacity))
        let unit: [UInt8] = [50, 0] + Array(repeating: 1, count: 50)
        var credits = try #require(end.channels[channel(0x40)]?.receiveCredits)
        #expect(credits == capacity / (52 + 32))
        var received = 0
        while credits > 0 {
            #expect(end.receive(unit, on: 0x40) == .taken)
            received += 50
            credits -= 1
            for command in end.commands() {
                #expect(command.prefix(6) == [0x16, command[1], 4, 0, 0x40, 0])
                credits += Int(command[6])
            }
        }
        #expect(received <= capacity && received > capacity / 2)
        #expect(end.commands().isEmpty)
        while end.channels.read(from: channel(0x40)) != nil {}
        #expect(end.commands().map { $0[6] } == [UInt8(capacity / (52 + 32))])
    }

    @Test("Small K-frames return credits during an SDU, so that any segmentation works")
    func smallFramesReturnCreditsDuringAnSDU() throws {
        var end = try openEnd()
        var credits = try #require(end.channels[channel(0x40)]?.receiveCredits)
        let segments: [[UInt8]] = [[100, 0]] + (0..<100).map { [$0] }
        for segment in segments {
            try #require(credits > 0)
            #expect(end.receive(segment, on: 0x40) == .taken)
            credits -= 1
            for command in end.commands() { credits += Int(command[6]) }
        }
        #expect(end.channels.read(from: channel(0x40)) == Array(0..<100))
    }

    @Test(
        "An invalid K-frame ends the channel",
        arguments: [
            ([[]], .missingSDULength),
            ([[5]], .missingSDULength),
            ([[101, 0, 1]], .sduExceedsMTU(length: 101)),
            ([[2, 0, 1, 2, 3]], .segmentsExceedSDU(length: 2)),
            ([[2, 0, 1], [2, 3]], .segmentsExceedSDU(length: 2)),
            ([[100, 0] + Array(repeating: 0, count: 22)], .frameExceedsMPS(length: 24)),
            ([[100, 0], Array(repeating: 0, count: 24)], .frameExceedsMPS(length: 24)),
            (Array(repeating: [0, 0], count: 5), .noCredit),
        ] as [([[UInt8]], CreditBasedChannel.Violation)]
    )
    func invalidFrameEndsTheChannel(frames: [[UInt8]], violation: CreditBasedChannel.Violation) throws {
        var end = try openEnd()
        #expect(end.channels[channel(0x40)]?.receiveCredits == 4)
        for frame in frames.dropLast() { #expect(end.receive(frame, on: 0x40) == .taken) }
        let unread = Array(repeating: [UInt8](), count: end.channels[channel(0x40)]?.unreadCount ?? 0)
        _ = end.events()
        let last = try #require(frames.last)
        #expect(end.receive(last, on: 0x40) == .violation(violation))
        #expect(end.events() == [.closed(channel(0x40), .violation(violation), unread: unread)])
        #expect(end.commands() == [disconnection])
        #expect(end.receive([0, 0], on: 0x40) == .dropped)
        #expect(end.receive(command: [0x16, 9, 4, 0, 0x60, 0, 1, 0]) == .handled)
        #expect(end.receive(command: [0x07, 1, 4, 0, 0x60, 0, 0x40, 0]) == .handled)
        #expect(end.receive([0, 0], on: 0x40) == .unknownChannel)
        #expect(end.commands().isEmpty && end.events().isEmpty && end.channels.deadline == nil)
    }

    @Test("More than 65,535 credits end the channel; exactly that number does not")
    func moreThan65535CreditsEndTheChannel() throws {
        var end = try openEnd(sendCredits: 2)
        #expect(end.answers(to: [0x16, 9, 4, 0, 0x60, 0, 0xFD, 0xFF]).isEmpty)
        #expect(end.channels[channel(0x40)]?.sendCredits == 65535)
        #expect(end.answers(to: [0x16, 9, 4, 0, 0x60, 0, 0, 0]).isEmpty)
        #expect(end.answers(to: [0x16, 9, 4, 0, 0x60, 0, 1, 0]) == [disconnection])
        #expect(
            end.events() == [.closed(channel(0x40), .violation(.creditOverflow(credits: 65535, more: 1)), unread: [])]
        )
    }

    @Test func channelsWithDataSendOneFrameEachInTurn() throws {
        var end = try openEnd()
        for source: UInt8 in [0x61, 0x62] {
            _ = end.answers(to: [0x14, 1, 10, 0, 0x80, 0, source, 0, 100, 0, 23, 0, 2, 0])
        }
        for identifier in UInt16(0x40)...0x42 {
            try end.channels.send(Array(repeating: 0, count: 40), on: channel(identifier))
        }
        #expect(end.frames().map(\.channel) == [0x60, 0x61, 0x62, 0x60, 0x61, 0x62])
    }
}
