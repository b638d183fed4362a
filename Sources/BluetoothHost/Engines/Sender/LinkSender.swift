import BLEByteCoding
import BLEHCI
import BLEL2CAP
import BasicContainers
import BluetoothTypes

/// Names one link's queue in a ``LinkSender`` until it is closed. The queue of a later link has another name.
struct SenderSlot: Hashable {
    fileprivate let index: UInt32
    fileprivate let generation: UInt32
}

/// One ACL packet on its way to the controller: the next fragment of a frame, with the packet's headers in front of it.
/// The headers lie over the part of the frame that has been sent.
struct OutboundPacket: ~Copyable {
    fileprivate var buffer: PacketBuffer
    fileprivate let kind: FrameKind
    fileprivate let slot: SenderSlot
    /// The length of the packet in bytes, with its H4 indicator.
    fileprivate let length: Int

    /// The packet, with its H4 indicator.
    var bytes: RawSpan {
        @_lifetime(borrow self)
        get { buffer.bytes.extracting(first: length) }
    }
}

/// The outbound queues of all links.
///
/// It hands L2CAP frames to the controller as ACL packets, as many as the controller has buffers. A frame is cut into
/// fragments that fit these buffers. Each link sends one packet in turn (Vol 4, Part E, 4.1.1). The sender counts the
/// unsent frames of each link, finds links on which the controller sends nothing, and keeps the buffers of sent frames
/// for later ones.
///
/// The sender is never copied and is the only owner of its queues. So a change of a queue needs no check for other
/// owners.
///
/// The caller opens a slot for each link. A closed slot is stale: it has nothing unsent, and calls with it have no
/// effect.
///
/// A frame takes one of two ways:
///
/// - ``beginAtOnce(_:on:of:)`` turns the frame into its packet, if it is the next one and the controller can take it.
///   The caller sends the packet before it uses the sender again, and then returns the buffer to ``recycle(_:)``.
/// - Otherwise ``enqueue(_:_:on:of:)`` appends the frame to the queue of its link. The caller takes packets with
///   ``nextPacket()``, sends each, and returns it to ``sent(_:)``. It may use the sender in between, and may close the
///   packet's slot.
struct LinkSender: ~Copyable {
    /// A link on which the controller completes nothing for longer than this has stalled.
    ///
    /// A packet that the peer does not acknowledge ends the link by the supervision timeout, of at most 32 seconds
    /// (Vol 6, Part B, 4.5.2). So the controller has forgotten a link that stalls and does not end.
    static let stallTime = Duration.seconds(34)
    /// The time between two checks for stalled links.
    static let stallCheckInterval = Duration.seconds(4)

    /// Maximum number of unsent values and requests per link.
    let frameLimit: Int
    /// Maximum number of unsent K-frames per link.
    let channelFrameLimit: Int
    /// The longest data of one ACL packet in bytes.
    private(set) var packetLength: Int
    /// The number of packets that the controller can hold.
    private(set) var packetCount: Int
    /// Free buffers of the controller.
    private(set) var credits: Int
    /// The queues by the indices of their slots, those of closed slots included.
    private var queues = UniqueArray<OutboundQueue>()
    private var freeIndices: [UInt32] = []
    /// The slots with something to send and no packet in flight, each once, in the order of their turns.
    private var scheduled = ShortQueue<SenderSlot>()
    private var pool = BufferPool()
    private var nextStallCheck: Instant?

    /// - Parameters:
    ///   - frameLimit: maximum number of unsent values and requests per link.
    ///   - channelFrameLimit: maximum number of unsent K-frames per link.
    ///   - packetLength: the longest data of one ACL packet in bytes.
    ///   - packetCount: the number of packets that the controller can hold.
    init(frameLimit: Int = 16, channelFrameLimit: Int = 8, packetLength: Int = 27, packetCount: Int = 0) {
        self.frameLimit = frameLimit
        self.channelFrameLimit = channelFrameLimit
        self.packetLength = packetLength
        self.packetCount = packetCount
        credits = packetCount
    }

    /// Starts with the buffers of a controller that holds nothing.
    ///
    /// - Parameters:
    ///   - packetLength: the longest data of one ACL packet in bytes.
    ///   - packetCount: the number of packets that the controller can hold.
    mutating func configure(packetLength: Int, packetCount: Int) {
        self.packetLength = packetLength
        self.packetCount = packetCount
        credits = packetCount
        for index in queues.indices { queues[index].controllerWasReset() }
    }

    // MARK: Slots

    /// Opens the queue of a new link.
    mutating func open(_ handle: ConnectionHandle) -> SenderSlot {
        if let free = freeIndices.popLast() {
            let generation = queues[Int(free)].generation
            queues[Int(free)] = OutboundQueue(handle: handle, generation: generation)
            return SenderSlot(index: free, generation: generation)
        }
        queues.append(OutboundQueue(handle: handle, generation: 0))
        return SenderSlot(index: UInt32(queues.count - 1), generation: 0)
    }

    /// Drops the frames of a link that ended. The controller flushes the packets that it holds for the link, so their
    /// buffers are free (Vol 4, Part E, 4.1.1).
    mutating func close(_ slot: SenderSlot) {
        guard isOpen(slot) else { return }
        let queue = queues[Int(slot.index)]
        credits += queue.packetsInController
        queues[Int(slot.index)] = OutboundQueue(handle: queue.handle, generation: queue.generation &+ 1)
        freeIndices.append(slot.index)
        scheduled.removeAll(slot)
    }

    @inline(__always)
    private func isOpen(_ slot: SenderSlot) -> Bool {
        queues[Int(slot.index)].generation == slot.generation
    }

    /// The number of open slots.
    var openCount: Int { queues.count - freeIndices.count }

    /// The handle of an open slot's link; nil for a stale slot.
    @inline(__always)
    func handle(of slot: SenderSlot) -> ConnectionHandle? {
        isOpen(slot) ? queues[Int(slot.index)].handle : nil
    }

    // MARK: Buffers

    /// Returns an empty buffer.
    mutating func takeBuffer() -> PacketBuffer { pool.take() }

    /// Keeps a buffer that was not sent for later use.
    mutating func recycle(_ buffer: consuming PacketBuffer) { pool.recycle(buffer) }

    // MARK: Frames

    /// Appends a frame to a link's queue.
    ///
    /// - Parameter pdu: the frame's payload.
    mutating func enqueue(
        _ pdu: consuming PacketBuffer,
        _ kind: FrameKind,
        on channel: ChannelIdentifier,
        of slot: SenderSlot
    ) {
        guard isOpen(slot) else { return recycle(pdu) }
        Frame.prependHeader(channel: channel, to: &pdu)
        if queues[Int(slot.index)].append(OutboundQueue.Frame(buffer: pdu, kind: kind)) { scheduled.append(slot) }
    }

    /// Writes the headers of a frame, and counts it as sent, if the frame is one packet that the controller can take
    /// now and nothing waits before it.
    ///
    /// A packet by ``enqueue(_:_:on:of:)``, ``nextPacket()`` and ``sent(_:)`` costs twice as much.
    ///
    /// - Parameter pdu: the frame's payload; the whole packet with its H4 indicator on success.
    /// - Returns: whether the frame counts as sent: the caller sends it before it calls another function, and then
    ///   returns the buffer to ``recycle(_:)``.
    @inline(__always)
    mutating func beginAtOnce(
        _ pdu: inout PacketBuffer,
        on channel: ChannelIdentifier,
        of slot: SenderSlot
    ) -> Bool {
        guard scheduled.isEmpty, credits > 0, pdu.count + Frame.headerLength <= packetLength, isOpen(slot) else {
            return false
        }
        let index = Int(slot.index)
        guard !reservesLastBuffer(for: index), queues[index].beginWhole() else { return false }
        credits -= 1
        Frame.prependHeader(channel: channel, to: &pdu)
        ACLHeader(connectionHandle: queues[index].handle, packetBoundaryFlag: .firstNonFlushable).prepend(to: &pdu)
        pdu.prepend(BLEHCI.PacketType.acl.rawValue)
        return true
    }

    /// Whether the last free buffer of the controller is reserved for other links than this one.
    @inline(__always)
    private func reservesLastBuffer(for index: Int) -> Bool {
        credits == 1 && openCount > 1 && packetCount > 1 && queues[index].packetsInController > 0
    }

    /// The number of frames of a kind whose last fragment the controller does not have yet.
    @inline(__always)
    func unsent(_ kind: FrameKind, _ slot: SenderSlot) -> Int {
        isOpen(slot) ? queues[Int(slot.index)].unsent(kind) : 0
    }

    /// The number of values and requests that the link's queue takes. The K-frames of channels and the answers to the
    /// peer have limits of their own, so that none of them blocks the others.
    @inline(__always)
    func room(_ slot: SenderSlot) -> Int {
        guard isOpen(slot) else { return 0 }
        let unsent = queues[Int(slot.index)].unsent(.value) + queues[Int(slot.index)].unsent(.request)
        return max(0, frameLimit - unsent)
    }

    /// The number of K-frames that the link's queue takes.
    @inline(__always)
    func channelRoom(_ slot: SenderSlot) -> Int {
        isOpen(slot) ? max(0, channelFrameLimit - queues[Int(slot.index)].unsent(.channel)) : 0
    }

    /// Waits for room for K-frames, if the link's queue has none, and until fewer than `grantLimit` signaling commands
    /// are unsent, if it is given.
    mutating func awaitChannelRoom(_ slot: SenderSlot, grantLimit: Int? = nil) {
        guard isOpen(slot) else { return }
        queues[Int(slot.index)].awaitsChannelRoom = channelRoom(slot) == 0
        queues[Int(slot.index)].grantLimit = grantLimit ?? 0
    }

    /// Ends the wait of ``awaitChannelRoom(_:)``.
    ///
    /// - Returns: whether the wait has ended now.
    @inline(__always)
    mutating func takeChannelRoom(_ slot: SenderSlot) -> Bool {
        guard isOpen(slot) else { return false }
        let index = Int(slot.index)
        guard
            queues[index].awaitsChannelRoom && channelRoom(slot) > 0
                || queues[index].unsent(.signaling) < queues[index].grantLimit
        else { return false }
        queues[index].awaitsChannelRoom = false
        queues[index].grantLimit = 0
        return true
    }

    /// Whether the controller has sent all frames of the link; true for a stale slot.
    @inline(__always)
    func isDrained(_ slot: SenderSlot) -> Bool {
        !isOpen(slot) || queues[Int(slot.index)].isDrained
    }

    /// The number of packets of the link that the controller has not sent, or that wait here.
    func unsentPackets(_ slot: SenderSlot) -> Int {
        isOpen(slot) ? queues[Int(slot.index)].unsentPackets(limit: packetLength) : 0
    }

    /// The number of frames of the link that were not completely handed to the controller.
    func frameCount(_ slot: SenderSlot) -> Int {
        isOpen(slot) ? queues[Int(slot.index)].frameCount : 0
    }

    // MARK: Packets

    /// Whether there may be a packet to send, and a buffer for it.
    var hasPacket: Bool { credits > 0 && !scheduled.isEmpty }

    /// Packets of all links that the controller holds.
    var packetsInController: Int { packetCount - credits }

    /// Packets of one link that the controller holds.
    func packetsInController(_ slot: SenderSlot) -> Int {
        isOpen(slot) ? queues[Int(slot.index)].packetsInController : 0
    }

    /// Takes the next ACL packet, if there is one and the controller has a buffer for it. The caller sends the packet
    /// and then returns it to ``sent(_:)``.
    ///
    /// If there are several links, the last free buffer is reserved for a link that holds none. So a link whose peer
    /// receives nothing does not stop the others.
    mutating func nextPacket() -> OutboundPacket? {
        var passed = 0
        while credits > 0, let slot = scheduled.popFirst() {
            let index = Int(slot.index)
            if reservesLastBuffer(for: index) {
                scheduled.append(slot)
                passed += 1
                if passed >= scheduled.count { return nil }
                continue
            }
            guard let (frame, length) = queues[index].takePacket(limit: packetLength) else { continue }
            credits -= 1
            return OutboundPacket(buffer: frame.buffer, kind: frame.kind, slot: slot, length: length)
        }
        return nil
    }

    /// Continues with the frame of a packet that was sent. The rest of the frame is sent next on its link, after the
    /// other links had their turns.
    ///
    /// - Returns: the slot if the whole frame was sent, so that its queue accepts another frame.
    mutating func sent(_ packet: consuming OutboundPacket) -> SenderSlot? {
        let (slot, kind, length) = (packet.slot, packet.kind, packet.length)
        // Moved out of the packet, so that the buffer keeps a single owner.
        var packet = packet
        var buffer = PacketBuffer(capacity: 0, headroom: 0)
        swap(&buffer, &packet.buffer)
        buffer.removeFirst(length)
        let isWhole = buffer.isEmpty
        if isOpen(slot) {
            guard isWhole else {
                queues[Int(slot.index)].putBack(OutboundQueue.Frame(buffer: buffer, kind: kind))
                scheduled.append(slot)
                return nil
            }
            if queues[Int(slot.index)].frameSent(kind) { scheduled.append(slot) }
            pool.recycle(buffer)
            return slot
        }
        pool.recycle(buffer)
        return nil
    }

    /// Handles Number Of Completed Packets for one link. A count above the number of packets in the controller is
    /// reduced to that number.
    ///
    /// - Returns: whether the controller has sent all frames of the link now.
    mutating func completed(_ count: Int, on slot: SenderSlot) -> Bool {
        guard isOpen(slot) else { return false }
        credits += queues[Int(slot.index)].complete(count)
        return queues[Int(slot.index)].isDrained
    }

    // MARK: Stalls

    /// Whether the controller holds packets and no check for stalled links is scheduled.
    var needsStallCheck: Bool { nextStallCheck == nil && credits < packetCount }

    /// Schedules the next check for stalled links.
    ///
    /// - Returns: when ``advance(to:)`` is to be called.
    mutating func scheduleStallCheck(at now: Instant) -> Instant {
        let due = now + LinkSender.stallCheckInterval
        nextStallCheck = due
        return due
    }

    /// Checks for stalled links, if a check is due.
    ///
    /// Each check counts as ``stallCheckInterval``, even if it is late. A loop that was blocked has not received the
    /// controller's events either.
    ///
    /// - Returns: the slots whose packets the controller holds and of which it completed none for longer than
    ///   ``stallTime``. Each later check returns them again, until they are closed or the controller completes a
    ///   packet.
    mutating func advance(to now: Instant) -> [SenderSlot] {
        guard let due = nextStallCheck, due <= now else { return [] }
        nextStallCheck = nil
        var stalled: [SenderSlot] = []
        for index in queues.indices {
            let checks = queues[index].checkForStall()
            if LinkSender.stallCheckInterval * (checks - 1) > LinkSender.stallTime {
                stalled.append(SenderSlot(index: UInt32(index), generation: queues[index].generation))
            }
        }
        return stalled
    }
}
