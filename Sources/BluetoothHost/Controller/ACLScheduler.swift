import BluetoothTypes
import ByteCoding
import DequeModule
import HCI

/// Frames on their way to one link.
final class OutboundQueue {
    fileprivate struct Frame {
        var buffer: PacketBuffer
        let isChannelFrame: Bool
    }

    let handle: ConnectionHandle
    fileprivate var frames = Deque<Frame>()
    /// How many of the frames are K-frames of credit-based channels.
    fileprivate(set) var channelFrameCount = 0
    /// Whether the frame at the front has had a fragment sent.
    fileprivate var isFrontStarted = false
    /// Packets that the controller holds for this link.
    fileprivate(set) var packetsInController = 0
    /// Packets that the controller has sent for this link so far.
    fileprivate(set) var completedCount = 0
    fileprivate var isReady = false
    fileprivate var isClosed = false

    init(handle: ConnectionHandle) {
        self.handle = handle
    }

    /// Frames not yet handed to the controller whole.
    var frameCount: Int { frames.count }

    /// Those of the fixed channels: each kind has its own share of the queue, so that neither keeps the other out.
    var fixedChannelFrameCount: Int { frames.count - channelFrameCount }

    /// Whether nothing waits here or in the controller.
    var isDrained: Bool { frames.isEmpty && packetsInController == 0 }
}

/// Hands L2CAP frames to the controller as ACL packets: as many as it has buffers, in fragments no longer than its own,
/// one fragment of each link in turn (Vol 4, Part E, 4.1.1).
struct ACLScheduler {
    /// The longest data of one ACL packet in octets.
    private(set) var packetLength = 27
    /// How many packets the controller can hold.
    private(set) var packetCount = 0
    private var credits = 0
    /// Links with something to send, each once.
    private var ready = Deque<OutboundQueue>()

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
    mutating func enqueue(_ frame: consuming PacketBuffer, on queue: OutboundQueue, isChannelFrame: Bool = false) {
        guard !queue.isClosed else { return }
        queue.frames.append(OutboundQueue.Frame(buffer: frame, isChannelFrame: isChannelFrame))
        if isChannelFrame { queue.channelFrameCount += 1 }
        if !queue.isReady {
            queue.isReady = true
            ready.append(queue)
        }
    }

    /// Sends while the controller has buffers: one ACL packet with its H4 indicator at a time to `send`.
    ///
    /// - Parameter finish: is given each frame's buffer, once all of the frame is sent, and the link it was for.
    mutating func drain(send: (RawSpan) -> Void, finish: (consuming PacketBuffer, OutboundQueue) -> Void) {
        while credits > 0, let queue = ready.popFirst() {
            guard !queue.isClosed, !queue.frames.isEmpty else {
                queue.isReady = false
                continue
            }
            credits -= 1
            queue.packetsInController += 1
            var frame = queue.frames.removeFirst()
            if sendFragment(of: &frame.buffer, on: queue, send: send) {
                queue.isFrontStarted = false
                if frame.isChannelFrame { queue.channelFrameCount -= 1 }
                finish(frame.buffer, queue)
            } else {
                queue.isFrontStarted = true
                queue.frames.prepend(frame)
            }
            if queue.frames.isEmpty {
                queue.isReady = false
            } else {
                ready.append(queue)
            }
        }
    }

    /// Sends the next fragment of a frame and tells whether it was the last.
    ///
    /// The packet's headers go in front of the fragment, over what of the frame has been sent before.
    private func sendFragment(
        of frame: inout PacketBuffer,
        on queue: OutboundQueue,
        send: (RawSpan) -> Void
    ) -> Bool {
        let length = min(frame.count, packetLength)
        ACLHeader(
            connectionHandle: queue.handle,
            packetBoundaryFlag: queue.isFrontStarted ? .continuing : .firstNonFlushable
        ).prepend(to: &frame, dataTotalLength: UInt16(truncatingIfNeeded: length))
        frame.prepend(HCI.PacketType.acl.rawValue)
        let octets = 1 + ACLHeader.length + length
        send(frame.bytes.extracting(first: octets))
        frame.removeFirst(octets)
        return frame.isEmpty
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
        queue.frames.removeAll()
        queue.channelFrameCount = 0
        credits += queue.packetsInController
        queue.packetsInController = 0
    }
}
