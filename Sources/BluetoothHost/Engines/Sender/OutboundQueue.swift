import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// The unsent frames of one link, and the number of packets that the controller holds for it.
struct OutboundQueue {
    /// A frame with its L2CAP header.
    struct Frame {
        var buffer: PacketBuffer
        let kind: FrameKind
    }

    let handle: ConnectionHandle
    /// The generation of the slots that name this queue. A queue that is closed takes the next generation.
    let generation: UInt32
    private var frames = ShortQueue<Frame>()
    /// The number of unsent frames of each kind, by raw value. A frame of which a fragment is in flight counts.
    private var counts: InlineArray<7, Int> = .init(repeating: 0)
    /// Whether a fragment of the frame at the front has been sent.
    private var isFrontStarted = false
    /// Whether the queue has its place among those that have something to send, or a packet in flight.
    private var isScheduled = false
    /// Whether channels wait until the queue accepts another K-frame.
    var awaitsChannelRoom = false
    /// Grants of credits wait until fewer signaling commands are unsent; 0 if none waits.
    var grantLimit = 0
    /// Packets that the controller holds for this link.
    private(set) var packetsInController = 0
    /// Whether the controller has completed a packet since the last stall check.
    private var hasProgress = false
    /// The number of successive stall checks that found packets in the controller and no progress.
    private var checksWithoutProgress = 0

    init(handle: ConnectionHandle, generation: UInt32) {
        self.handle = handle
        self.generation = generation
    }

    // MARK: Frames

    /// The number of frames of which no fragment is in flight and some are unsent.
    var frameCount: Int { frames.count }

    /// Whether nothing waits here or in the controller.
    var isDrained: Bool { frames.isEmpty && packetsInController == 0 }

    /// The number of packets that wait here or in the controller.
    ///
    /// - Parameter limit: the longest data of one packet in bytes.
    func unsentPackets(limit: Int) -> Int {
        packetsInController + frames.sum { ($0.buffer.count + limit - 1) / limit }
    }

    /// Frames of a kind whose last fragment the controller does not have yet.
    func unsent(_ kind: FrameKind) -> Int { counts[kind.rawValue] }

    /// Appends a frame.
    ///
    /// - Returns: whether the queue must be scheduled now.
    @inline(__always)
    mutating func append(_ frame: consuming Frame) -> Bool {
        counts[frame.kind.rawValue] &+= 1
        frames.append(frame)
        if isScheduled { return false }
        isScheduled = true
        return true
    }

    // MARK: Packets

    /// Counts a packet in the controller, if nothing is queued: a whole frame that is sent without being queued.
    @inline(__always)
    mutating func beginWhole() -> Bool {
        guard !isScheduled else { return false }
        packetsInController &+= 1
        return true
    }

    /// Takes the frame at the front and prepends the headers of its next packet.
    ///
    /// - Parameter limit: the longest data of one packet in bytes.
    /// - Returns: the frame and the length of the packet in bytes, with its H4 indicator; nil if there is no frame.
    @inline(__always)
    mutating func takePacket(limit: Int) -> (frame: Frame, length: Int)? {
        guard var frame = frames.popFirst() else {
            isScheduled = false
            return nil
        }
        packetsInController &+= 1
        let length = min(frame.buffer.count, limit)
        ACLHeader(
            connectionHandle: handle,
            packetBoundaryFlag: isFrontStarted ? .continuing : .firstNonFlushable
        ).prepend(to: &frame.buffer, dataTotalLength: UInt16(truncatingIfNeeded: length))
        frame.buffer.prepend(BLEHCI.PacketType.acl.rawValue)
        return (frame, 1 + ACLHeader.length + length)
    }

    /// Puts back the unsent rest of a frame.
    @inline(__always)
    mutating func putBack(_ frame: consuming Frame) {
        isFrontStarted = true
        frames.prepend(frame)
    }

    /// Counts a frame whose last packet was sent.
    ///
    /// - Returns: whether the queue has more to send.
    @inline(__always)
    mutating func frameSent(_ kind: FrameKind) -> Bool {
        isFrontStarted = false
        counts[kind.rawValue] &-= 1
        isScheduled = !frames.isEmpty
        return isScheduled
    }

    /// Counts packets that the controller completed; it cannot complete more than it holds.
    ///
    /// - Returns: how many packets were counted.
    @inline(__always)
    mutating func complete(_ count: Int) -> Int {
        let completed = min(count, packetsInController)
        packetsInController &-= completed
        if completed > 0 { hasProgress = true }
        return completed
    }

    /// Forgets the packets that a controller held before its reset.
    mutating func controllerWasReset() {
        packetsInController = 0
    }

    // MARK: Stalls

    /// Checks whether the controller has completed a packet since the last check.
    ///
    /// - Returns: the number of checks, with this one, that found packets in the controller and no progress.
    mutating func checkForStall() -> Int {
        if packetsInController == 0 || hasProgress {
            hasProgress = false
            checksWithoutProgress = 0
        } else {
            checksWithoutProgress += 1
        }
        return checksWithoutProgress
    }
}
