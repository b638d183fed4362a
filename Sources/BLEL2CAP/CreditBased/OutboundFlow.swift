import BLEByteCoding

/// The sending direction of a channel: cuts SDUs into K-frames as the peer's credits allow
/// (Vol 3, Part A, 3.4.3 and 10.1).
///
/// K-frames may be shorter than the peer's MPS. They are no longer than ``maximumPayloadLength``, because the number of
/// K-frames that wait for the link is limited, not their bytes. So they do not delay other packets for long.
struct OutboundFlow {
    /// The longest K-frame payload that is sent, in bytes, even if the peer's MPS is longer.
    static let maximumPayloadLength = 4096

    /// The peer's MTU. MPS and credits are the peer's as well.
    private(set) var mtu: Int
    private(set) var mps: Int
    private(set) var credits: Int
    private let capacity: Int
    private var queue = SDUQueue()
    /// The number of bytes of the first SDU that have been sent.
    private var offset = 0
    /// Whether an SDU was refused because the queue was full.
    private var isRoomAwaited = false

    init(mtu: UInt16, mps: UInt16, credits: UInt16, capacity: Int) {
        self.mtu = Int(mtu)
        self.mps = Int(mps)
        self.credits = Int(credits)
        self.capacity = max(capacity, 0)
    }

    /// The number of SDUs that are not sent completely.
    var count: Int { queue.count }

    /// The number of bytes of SDUs that are not sent.
    var byteCount: Int { queue.cost - queue.count * SDUQueue.overhead - offset }

    /// Queues an SDU. An empty queue accepts an SDU of any length up to the MTU.
    mutating func append(_ unit: consuming [UInt8]) throws(CreditBasedChannel.SendError) {
        guard unit.count <= mtu else { throw .exceedsMTU(mtu) }
        guard queue.isEmpty || queue.cost + unit.count + SDUQueue.overhead <= capacity else {
            isRoomAwaited = true
            throw .noRoom
        }
        queue.append(unit)
    }

    /// Appends the next K-frame's payload and returns whether there was one.
    mutating func writeFrame(into buffer: inout PacketBuffer) -> Bool {
        guard credits > 0, let unit = queue.first else { return false }
        credits -= 1
        var room = min(mps, OutboundFlow.maximumPayloadLength)
        if offset == 0 {
            buffer.append(UInt16(truncatingIfNeeded: unit.count))
            room -= 2
        }
        let end = min(offset + room, unit.count)
        buffer.append(unit.rawSpan.extracting(offset..<end))
        offset = end
        if offset == unit.count {
            _ = queue.popFirst()
            offset = 0
        }
        return true
    }

    /// Whether to report room to a sender whose SDU was refused.
    mutating func takeRoom() -> Bool {
        guard isRoomAwaited, queue.cost <= capacity / 2 else { return false }
        isRoomAwaited = false
        return true
    }

    mutating func add(credits more: UInt16) throws(CreditBasedChannel.Violation) {
        guard credits + Int(more) <= UInt16.max else { throw .creditOverflow(credits: credits, more: Int(more)) }
        credits += Int(more)
    }

    /// Sends other lengths from now on.
    mutating func reconfigure(mtu: UInt16, mps: UInt16) {
        self.mtu = Int(mtu)
        self.mps = Int(mps)
    }
}
