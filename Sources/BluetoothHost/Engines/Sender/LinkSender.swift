import BluetoothTypes
import ByteCoding
import HCI

/// The unsent frames of one link.
final class OutboundQueue {
    fileprivate struct Frame {
        var buffer: PacketBuffer
        let kind: FrameKind
    }

    let handle: ConnectionHandle
    @exclusivity(unchecked)
    fileprivate var frames = ShortQueue<Frame>()
    /// The number of unsent frames of each kind, by raw value.
    @exclusivity(unchecked)
    private var counts: InlineArray<7, Int> = .init(repeating: 0)
    /// Whether the frame at the front has had a fragment sent.
    @exclusivity(unchecked)
    fileprivate var isFrontStarted = false
    /// Packets that the controller holds for this link.
    @exclusivity(unchecked)
    fileprivate(set) var packetsInController = 0
    /// Packets that the controller has sent for this link so far.
    @exclusivity(unchecked)
    fileprivate(set) var completedCount = 0
    @exclusivity(unchecked)
    fileprivate var isReady = false
    @exclusivity(unchecked)
    fileprivate var isClosed = false

    init(handle: ConnectionHandle) {
        self.handle = handle
    }

    /// Frames not yet handed to the controller whole.
    var frameCount: Int { frames.count }

    /// Frames of a kind whose last fragment the controller does not have yet.
    func unsentCount(_ kind: FrameKind) -> Int { counts[kind.rawValue] }

    /// Unsent frames that apps caused on the fixed channels. Channels and replies have limits of their own, so that none of
    /// them blocks the others.
    var appFrameCount: Int { unsentCount(.value) + unsentCount(.request) }

    fileprivate func count(_ kind: FrameKind, by difference: Int) {
        counts[kind.rawValue] += difference
    }

    fileprivate func removeAllFrames() {
        frames.removeAll()
        counts = .init(repeating: 0)
    }

    /// Whether nothing waits here or in the controller.
    var isDrained: Bool { frames.isEmpty && packetsInController == 0 }
}

/// One ACL packet on its way to the controller: the next fragment of a frame, with the packet's headers before it. They lie
/// over what of the frame has been sent before.
struct OutboundPacket: ~Copyable {
    fileprivate let frame: OutboundQueue.Frame
    let queue: OutboundQueue
    /// How many octets the packet has, with its H4 indicator.
    fileprivate let count: Int

    var bytes: RawSpan {
        @_lifetime(borrow self)
        get { frame.buffer.bytes.extracting(first: count) }
    }
}

/// Hands L2CAP frames to the controller as ACL packets: as many as it has buffers, in fragments no longer than its own,
/// one fragment of each link in turn (Vol 4, Part E, 4.1.1).
struct LinkSender {
    /// The longest data of one ACL packet in octets.
    private(set) var packetLength = 27
    /// How many packets the controller can hold.
    private(set) var packetCount = 0
    private var credits = 0
    /// Whether the last free buffer is for a link that holds none, so that a link whose peer takes nothing does not stop the
    /// others.
    var reservesLastBuffer = false
    /// Links with something to send, each once.
    private var ready = ShortQueue<OutboundQueue>()

    /// Free buffers of the controller.
    var availableCredits: Int { credits }

    /// Packets of all links that the controller holds.
    var packetsInController: Int { packetCount - credits }

    /// Starts with the buffers of a controller that holds nothing.
    mutating func configure(packetLength: Int, packetCount: Int) {
        self.packetLength = packetLength
        self.packetCount = packetCount
        credits = packetCount
        ready.removeAll()
    }

    /// Appends a frame with its L2CAP header to a link's queue.
    mutating func enqueue(_ frame: consuming PacketBuffer, _ kind: FrameKind, on queue: OutboundQueue) {
        guard !queue.isClosed else { return }
        queue.frames.append(OutboundQueue.Frame(buffer: frame, kind: kind))
        queue.count(kind, by: 1)
        if !queue.isReady {
            queue.isReady = true
            ready.append(queue)
        }
    }

    /// Whether there may be a packet to send, and a buffer for it.
    var hasPacket: Bool { credits > 0 && !ready.isEmpty }

    /// The next ACL packet, where there is one and the controller has a buffer for it. Once it has been sent, it is given back
    /// by ``packetSent(_:)``.
    mutating func nextPacket() -> OutboundPacket? {
        var passed = 0
        while credits > 0, let queue = ready.popFirst() {
            if credits == 1, reservesLastBuffer, packetCount > 1, queue.packetsInController > 0, !queue.isClosed {
                ready.append(queue)
                passed += 1
                if passed >= ready.count { return nil }
                continue
            }
            guard !queue.isClosed, var frame = queue.frames.popFirst() else {
                queue.isReady = false
                continue
            }
            credits -= 1
            queue.packetsInController += 1
            let length = min(frame.buffer.count, packetLength)
            ACLHeader(
                connectionHandle: queue.handle,
                packetBoundaryFlag: queue.isFrontStarted ? .continuing : .firstNonFlushable
            ).prepend(to: &frame.buffer, dataTotalLength: UInt16(truncatingIfNeeded: length))
            frame.buffer.prepend(HCI.PacketType.acl.rawValue)
            return OutboundPacket(frame: frame, queue: queue, count: 1 + ACLHeader.length + length)
        }
        return nil
    }

    /// Goes on with the frame that a packet was of: what is left of it is the next to be sent of its link, which has its turn
    /// again after the others.
    ///
    /// - Returns: the frame's buffer, where all of it has been sent.
    mutating func packetSent(_ packet: consuming OutboundPacket) -> PacketBuffer? {
        let (queue, count) = (packet.queue, packet.count)
        var frame = packet.frame
        frame.buffer.removeFirst(count)
        let isWhole = frame.buffer.isEmpty
        queue.isFrontStarted = !isWhole
        if !queue.isClosed {
            if isWhole {
                queue.count(frame.kind, by: -1)
            } else {
                queue.frames.prepend(frame)
            }
        }
        if queue.frames.isEmpty {
            queue.isReady = false
        } else {
            ready.append(queue)
        }
        return isWhole ? frame.buffer : nil
    }

    /// Takes Number Of Completed Packets for one link; more than the link had sent are not believed.
    mutating func complete(_ count: Int, on queue: OutboundQueue) {
        let completed = min(count, queue.packetsInController)
        queue.packetsInController -= completed
        queue.completedCount += completed
        credits += completed
    }

    /// Forgets a link: what the controller held for it is flushed (Vol 4, Part E, 4.1.1).
    mutating func close(_ queue: OutboundQueue) {
        queue.isClosed = true
        queue.removeAllFrames()
        credits += queue.packetsInController
        queue.packetsInController = 0
    }
}
