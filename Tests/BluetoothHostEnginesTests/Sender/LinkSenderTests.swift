import BLEByteCoding
import BLEL2CAP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The sender of all links")
struct LinkSenderTests {
    private struct NoPacket: Error {}

    private func buffer(count: Int, of byte: UInt8 = 0) -> PacketBuffer {
        var buffer = PacketBuffer()
        for _ in 0..<count { buffer.append(byte) }
        return buffer
    }

    /// Sends the next packet.
    private func send(_ sender: inout LinkSender) -> (bytes: [UInt8], slotWithRoom: SenderSlot?)? {
        guard let packet = sender.nextPacket() else { return nil }
        let bytes = packet.copiedBytes
        return (bytes, sender.sent(packet))
    }

    /// Sends all packets that can be sent.
    ///
    /// - Returns: the connection handles of the packets.
    private func sendAll(_ sender: inout LinkSender) -> [UInt8] {
        var handles: [UInt8] = []
        while let (bytes, _) = send(&sender) { handles.append(bytes[1]) }
        return handles
    }

    // MARK: Frames

    @Test("A reply is unsent until its last fragment is handed over")
    func replyIsUnsentUntilItsLastFragmentIsHandedOver() throws {
        var sender = LinkSender(packetLength: 27, packetCount: 2)
        let slot = sender.open(0x0040)
        sender.enqueue(buffer(count: 40), .reply, on: .attribute, of: slot)
        #expect(sender.unsent(.reply, slot) == 1)
        let first = send(&sender)
        #expect(first?.bytes.count == 32)
        #expect(first?.slotWithRoom == nil)
        #expect(sender.unsent(.reply, slot) == 1)
        guard let packet = sender.nextPacket() else { throw NoPacket() }
        #expect(sender.unsent(.reply, slot) == 1)
        let slotWithRoom = sender.sent(packet)
        #expect(slotWithRoom == slot)
        #expect(sender.unsent(.reply, slot) == 0)
    }

    @Test("Grants that wait come after signaling commands that were sent")
    func grantsThatWaitComeAfterSignalingCommands() {
        var sender = LinkSender(packetLength: 27, packetCount: 4)
        let slot = sender.open(0x0040)
        for _ in 0..<3 { sender.enqueue(buffer(count: 8), .signaling, on: .signaling, of: slot) }
        sender.awaitChannelRoom(slot, grantLimit: 2)
        _ = send(&sender)
        let isEarly = sender.takeChannelRoom(slot)
        _ = send(&sender)
        let isDue = sender.takeChannelRoom(slot)
        let isRepeated = sender.takeChannelRoom(slot)
        #expect(!isEarly && isDue && !isRepeated)
    }

    @Test("A frame is cut into fragments, each with its header")
    func frameIsCutIntoFragments() throws {
        var sender = LinkSender(packetLength: 27, packetCount: 4)
        let slot = sender.open(0x0040)
        sender.enqueue(buffer(count: 24, of: 0xA5), .value, on: .attribute, of: slot)
        sender.enqueue(buffer(count: 1, of: 0x5A), .signaling, on: .signaling, of: slot)
        let first: [UInt8] = [0x02, 0x40, 0x00, 27, 0, 24, 0, 4, 0] + [UInt8](repeating: 0xA5, count: 23)
        #expect(send(&sender)?.bytes == first)
        #expect(send(&sender)?.bytes == [0x02, 0x40, 0x10, 1, 0, 0xA5])
        #expect(send(&sender)?.bytes == [0x02, 0x40, 0x00, 5, 0, 1, 0, 5, 0, 0x5A])
        #expect(send(&sender)?.bytes == nil)
    }

    @Test("A frame is sent at once only as one packet, with nothing before it and a buffer for it")
    func frameIsSentAtOnce() throws {
        var sender = LinkSender(packetLength: 27, packetCount: 3)
        let (first, second) = (sender.open(0x0040), sender.open(0x0041))
        var long = buffer(count: 24)
        let isLongSent = sender.beginAtOnce(&long, on: .attribute, of: first)
        #expect(!isLongSent && long.count == 24)
        var frame = buffer(count: 2, of: 0xA5)
        let isSent = sender.beginAtOnce(&frame, on: .attribute, of: first)
        #expect(isSent && [UInt8](copying: frame.bytes) == [2, 0x40, 0, 6, 0, 2, 0, 4, 0, 0xA5, 0xA5])
        #expect(sender.packetsInController(first) == 1 && sender.credits == 2)
        // The frame of one link waits, and the other's would overtake it.
        sender.enqueue(buffer(count: 2), .value, on: .attribute, of: second)
        var overtaking = buffer(count: 2)
        let hasOvertaken = sender.beginAtOnce(&overtaking, on: .attribute, of: first)
        #expect(!hasOvertaken)
        #expect(sendAll(&sender) == [0x41])
        // The last buffer is for a link that holds none.
        var last = buffer(count: 2)
        let isLastSent = sender.beginAtOnce(&last, on: .attribute, of: first)
        #expect(!isLastSent && sender.credits == 1)
        let third = sender.open(0x0042)
        let isSentByThird = sender.beginAtOnce(&last, on: .attribute, of: third)
        #expect(isSentByThird && sender.credits == 0)
        var unbuffered = buffer(count: 2)
        let isUnbufferedSent = sender.beginAtOnce(&unbuffered, on: .attribute, of: sender.open(0x0043))
        #expect(!isUnbufferedSent)
        sender.close(third)
        let isStaleSent = sender.beginAtOnce(&unbuffered, on: .attribute, of: third)
        #expect(!isStaleSent && unbuffered.count == 2 && sender.credits == 1)
    }

    @Test("Links with frames send one packet each in turn")
    func linksSendInTurn() {
        var sender = LinkSender(packetLength: 27, packetCount: 20)
        let slots = [sender.open(0x0001), sender.open(0x0002), sender.open(0x0003)]
        sender.enqueue(buffer(count: 80), .value, on: .attribute, of: slots[0])
        sender.enqueue(buffer(count: 2), .value, on: .attribute, of: slots[0])
        sender.enqueue(buffer(count: 40), .channel, on: ChannelIdentifier(rawValue: 0x0040), of: slots[1])
        sender.enqueue(buffer(count: 2), .reply, on: .attribute, of: slots[2])
        sender.enqueue(buffer(count: 2), .reply, on: .attribute, of: slots[2])
        #expect(sendAll(&sender) == [1, 2, 3, 1, 2, 3, 1, 1, 1])
    }

    @Test("A frame that is enqueued while a packet of its link is in flight follows it")
    func frameEnqueuedWhileAPacketIsInFlight() throws {
        var sender = LinkSender(packetLength: 27, packetCount: 20)
        let (first, second) = (sender.open(0x0001), sender.open(0x0002))
        sender.enqueue(buffer(count: 2), .value, on: .attribute, of: first)
        sender.enqueue(buffer(count: 2), .value, on: .attribute, of: second)
        guard let packet = sender.nextPacket() else { throw NoPacket() }
        sender.enqueue(buffer(count: 2), .value, on: .attribute, of: first)
        #expect(sender.unsent(.value, first) == 2)
        let slotWithRoom = sender.sent(packet)
        #expect(slotWithRoom == first)
        #expect(sendAll(&sender) == [2, 1])
    }

    @Test("Each limit counts its own kinds of frames")
    func limitsCountTheirOwnKinds() {
        var sender = LinkSender(frameLimit: 3, channelFrameLimit: 2, packetCount: 1)
        let slot = sender.open(0x0040)
        for kind in [FrameKind.reply, .confirmation, .security, .signaling] {
            sender.enqueue(buffer(count: 2), kind, on: .attribute, of: slot)
        }
        #expect(sender.room(slot) == 3)
        #expect(sender.channelRoom(slot) == 2)
        sender.enqueue(buffer(count: 2), .value, on: .attribute, of: slot)
        sender.enqueue(buffer(count: 2), .request, on: .attribute, of: slot)
        #expect(sender.room(slot) == 1)
        for _ in 0..<3 { sender.enqueue(buffer(count: 2), .channel, on: ChannelIdentifier(rawValue: 0x0040), of: slot) }
        #expect(sender.room(slot) == 1)
        #expect(sender.channelRoom(slot) == 0)
        #expect(sender.frameCount(slot) == 9)
    }

    // MARK: Credits

    @Test("No packet is taken without a credit")
    func noPacketIsTakenWithoutACredit() throws {
        var sender = LinkSender(packetLength: 27, packetCount: 2)
        let slot = sender.open(0x0040)
        #expect(sender.hasPacket == false)
        sender.enqueue(buffer(count: 100), .value, on: .attribute, of: slot)
        #expect(sender.hasPacket == true)
        #expect(sendAll(&sender).count == 2)
        #expect(sender.hasPacket == false)
        #expect(sender.packetsInController(slot) == 2)
        #expect(sender.completed(1, on: slot) == false)
        #expect(sendAll(&sender).count == 1)
    }

    @Test("A slot is drained when the controller has completed the last packet")
    func slotIsDrainedAfterTheLastPacket() {
        var sender = LinkSender(packetLength: 27, packetCount: 2)
        let slot = sender.open(0x0040)
        #expect(sender.isDrained(slot) == true)
        sender.enqueue(buffer(count: 60), .value, on: .attribute, of: slot)
        #expect(sender.isDrained(slot) == false)
        #expect(sendAll(&sender).count == 2)
        #expect(sender.completed(2, on: slot) == false, "A fragment is unsent.")
        #expect(sendAll(&sender).count == 1)
        #expect(sender.isDrained(slot) == false)
        #expect(sender.completed(1, on: slot) == true)
        #expect(sender.isDrained(slot) == true)
    }

    @Test("A controller cannot complete more packets than it holds")
    func excessCompletionsAreIgnored() {
        var sender = LinkSender(packetLength: 27, packetCount: 3)
        let (slot, other) = (sender.open(0x0040), sender.open(0x0041))
        sender.enqueue(buffer(count: 2), .value, on: .attribute, of: slot)
        sender.enqueue(buffer(count: 2), .value, on: .attribute, of: other)
        #expect(sendAll(&sender).count == 2)
        #expect(sender.completed(0xFFFF, on: slot) == true)
        #expect(sender.credits == 2)
        #expect(sender.completed(1, on: slot) == true)
        #expect(sender.credits == 2)
    }

    @Test("The last buffer is reserved for a link that holds none")
    func lastBufferIsForALinkThatHoldsNone() {
        var sender = LinkSender(packetLength: 27, packetCount: 3)
        let slow = sender.open(0x0001)
        let other = sender.open(0x0002)
        sender.enqueue(buffer(count: 200), .value, on: .attribute, of: slow)
        #expect(sendAll(&sender) == [1, 1])
        #expect(sender.credits == 1)
        sender.enqueue(buffer(count: 2), .value, on: .attribute, of: other)
        #expect(sendAll(&sender) == [2])
        #expect(sender.completed(1, on: other) == true)
        #expect(sendAll(&sender) == [])
        sender.close(other)
        #expect(sendAll(&sender) == [1], "A single link uses all buffers.")
    }

    @Test("A controller that was reset holds nothing")
    func configuredControllerHoldsNothing() {
        var sender = LinkSender(packetLength: 27, packetCount: 2)
        let slot = sender.open(0x0040)
        sender.enqueue(buffer(count: 2), .value, on: .attribute, of: slot)
        #expect(sendAll(&sender).count == 1)
        sender.configure(packetLength: 251, packetCount: 5)
        #expect(sender.packetsInController(slot) == 0)
        sender.enqueue(buffer(count: 247), .value, on: .attribute, of: slot)
        #expect(send(&sender)?.bytes.count == 256)
        sender.close(slot)
        #expect(sender.credits == 5)
    }

    // MARK: Closing

    @Test("A slot that closes with packets in the controller frees their buffers, once")
    func closingFreesBuffers() {
        var sender = LinkSender(packetLength: 27, packetCount: 3)
        let slot = sender.open(0x0040)
        sender.enqueue(buffer(count: 100), .value, on: .attribute, of: slot)
        #expect(sendAll(&sender).count == 3)
        sender.close(slot)
        #expect(sender.credits == 3)
        sender.close(slot)
        #expect(sender.completed(3, on: slot) == false)
        #expect(sender.credits == 3)
        #expect(sender.hasPacket == false)
    }

    @Test("A slot that closes while a packet is in flight loses no credit", arguments: [2, 60])
    func closingWhileAPacketIsInFlight(length: Int) throws {
        var sender = LinkSender(packetLength: 27, packetCount: 2)
        let slot = sender.open(0x0040)
        sender.enqueue(buffer(count: length), .value, on: .attribute, of: slot)
        guard let packet = sender.nextPacket() else { throw NoPacket() }
        #expect(sender.credits == 1)
        sender.close(slot)
        #expect(sender.credits == 2)
        // The packet belongs to the old link, although the new one has its place and its handle.
        let next = sender.open(0x0040)
        let slotWithRoom = sender.sent(packet)
        #expect(slotWithRoom == nil)
        #expect(sender.credits == 2)
        #expect(sender.isDrained(next) == true)
        #expect(sendAll(&sender) == [])
    }

    @Test("A stale slot does nothing to the link that has its place")
    func staleSlotDoesNothing() {
        var sender = LinkSender(packetLength: 27, packetCount: 2)
        let stale = sender.open(0x0040)
        sender.close(stale)
        let slot = sender.open(0x0040)
        #expect(stale != slot)
        sender.enqueue(buffer(count: 2), .reply, on: .attribute, of: slot)
        #expect(sendAll(&sender).count == 1)
        sender.enqueue(buffer(count: 2), .reply, on: .attribute, of: slot)

        sender.enqueue(buffer(count: 2), .reply, on: .attribute, of: stale)
        #expect(sender.completed(1, on: stale) == false)
        sender.close(stale)
        #expect(sender.handle(of: stale) == nil)
        #expect(sender.unsent(.reply, stale) == 0)
        #expect(sender.frameCount(stale) == 0)
        #expect(sender.packetsInController(stale) == 0)
        #expect(sender.room(stale) == 0)
        #expect(sender.channelRoom(stale) == 0)
        #expect(sender.isDrained(stale) == true)

        #expect(sender.handle(of: slot) == 0x0040)
        #expect(sender.unsent(.reply, slot) == 1)
        #expect(sender.packetsInController(slot) == 1)
        #expect(sendAll(&sender) == [0x40])
    }

    @Test("A closed slot gives up its turn")
    func closedSlotGivesUpItsTurn() {
        var sender = LinkSender(packetLength: 27, packetCount: 9)
        let slots = [sender.open(0x0001), sender.open(0x0002), sender.open(0x0003)]
        for slot in slots { sender.enqueue(buffer(count: 30), .value, on: .attribute, of: slot) }
        sender.close(slots[0])
        #expect(sendAll(&sender) == [2, 3, 2, 3])
        #expect(sender.hasPacket == false)
    }

    // MARK: Stalls

    private static let start = Instant(nanoseconds: 1_000)

    /// Opens a link and makes the controller hold two packets of it.
    private func openStalling(_ sender: inout LinkSender) -> SenderSlot {
        let slot = sender.open(0x0040)
        sender.enqueue(buffer(count: 40), .value, on: .attribute, of: slot)
        _ = sendAll(&sender)
        return slot
    }

    /// Checks for stalled links every four seconds.
    ///
    /// - Returns: the stalled slots that each check finds.
    private func check(_ sender: inout LinkSender, times: Int) -> [[SenderSlot]] {
        (0..<times).map { _ in sender.advance(to: sender.scheduleStallCheck(at: Self.start)) }
    }

    @Test("A link without progress is stalled after the stall time, and not before")
    func linkStallsAfterTheStallTime() {
        var sender = LinkSender(packetLength: 27, packetCount: 8)
        let slot = openStalling(&sender)
        // The first check only starts the measurement; nine intervals are the first to exceed the stall time.
        #expect(LinkSender.stallCheckInterval * 8 < LinkSender.stallTime)
        #expect(LinkSender.stallCheckInterval * 9 > LinkSender.stallTime)
        #expect(check(&sender, times: 9) == Array(repeating: [], count: 9))
        #expect(check(&sender, times: 2) == [[slot], [slot]])
        sender.close(slot)
        #expect(check(&sender, times: 20) == Array(repeating: [], count: 20))
    }

    @Test("A link of which the controller completes a packet is not stalled", arguments: 0...9)
    func linkWithProgressIsNotStalled(checks: Int) {
        var sender = LinkSender(packetLength: 27, packetCount: 8)
        let slot = openStalling(&sender)
        #expect(check(&sender, times: checks) == Array(repeating: [], count: checks))
        #expect(sender.completed(1, on: slot) == false)
        // The first check sees the progress, the second starts the measurement.
        #expect(check(&sender, times: 10) == Array(repeating: [], count: 10))
        #expect(check(&sender, times: 1) == [[slot]])
    }

    @Test("A link of which the controller holds nothing is not stalled")
    func idleLinkIsNotStalled() {
        var sender = LinkSender(packetLength: 27, packetCount: 8)
        let slot = openStalling(&sender)
        let idle = sender.open(0x0041)
        #expect(check(&sender, times: 1) == [[]])
        #expect(sender.completed(2, on: slot) == true)
        #expect(check(&sender, times: 20) == Array(repeating: [], count: 20))
        sender.enqueue(buffer(count: 2), .value, on: .attribute, of: idle)
        _ = sendAll(&sender)
        #expect(check(&sender, times: 9) == Array(repeating: [], count: 9))
        #expect(check(&sender, times: 1) == [[idle]])
    }

    @Test("A late check does not make a link stall earlier")
    func lateCheckCountsAsOne() {
        var sender = LinkSender(packetLength: 27, packetCount: 8)
        _ = openStalling(&sender)
        for _ in 0..<9 {
            let due = sender.scheduleStallCheck(at: Self.start)
            #expect(sender.advance(to: due + .seconds(100)) == [])
        }
    }

    @Test("A check is needed while the controller holds packets, one at a time")
    func checksAreScheduledWhileTheControllerHoldsPackets() {
        var sender = LinkSender(packetLength: 27, packetCount: 8)
        #expect(sender.needsStallCheck == false)
        let slot = openStalling(&sender)
        #expect(sender.needsStallCheck == true)
        let due = sender.scheduleStallCheck(at: Self.start)
        #expect(due == Self.start + .seconds(4))
        #expect(sender.needsStallCheck == false)
        #expect(sender.advance(to: Self.start + .seconds(3)) == [])
        #expect(sender.needsStallCheck == false, "The check is not due yet.")
        #expect(sender.advance(to: due) == [])
        #expect(sender.needsStallCheck == true)
        #expect(sender.completed(2, on: slot) == true)
        #expect(sender.needsStallCheck == false)
    }
}

extension OutboundPacket {
    /// The packet's bytes, copied.
    var copiedBytes: [UInt8] { [UInt8](copying: bytes) }
}
