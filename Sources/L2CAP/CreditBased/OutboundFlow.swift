import ByteCoding

/// One direction of a channel, seen by the sender: cuts SDUs into K-frames as the peer's credits allow
/// (Vol 3, Part A, 3.4.3 and 10.1).
struct OutboundFlow {
    /// The peer's, as all but ``queue`` here.
    private(set) var mtu: Int
    private(set) var mps: Int
    private(set) var credits: Int
    private let capacity: Int
    private var queue = SDUQueue()
    /// How many octets of the first SDU have been sent.
    private var offset = 0
    /// Whether an SDU had no room and its writer waits.
    private var isRoomAwaited = false

    init(mtu: UInt16, mps: UInt16, credits: UInt16, capacity: Int) {
        self.mtu = Int(mtu)
        self.mps = Int(mps)
        self.credits = Int(credits)
        self.capacity = capacity
    }

    /// How many SDUs are not sent whole yet.
    var count: Int { queue.count }

    var canSend: Bool { credits > 0 && !queue.isEmpty }

    /// Queues an SDU. One alone always has room, however long.
    mutating func append(_ unit: consuming [UInt8]) throws(CreditBasedChannel.SendError) {
        guard unit.count <= mtu else { throw .exceedsMTU(mtu) }
        guard queue.isEmpty || queue.cost + unit.count + SDUQueue.overhead <= capacity else {
            isRoomAwaited = true
            throw .noRoom
        }
        queue.append(unit)
    }

    /// Appends the next K-frame's payload and tells whether there was one.
    mutating func writeFrame(into buffer: inout PacketBuffer) -> Bool {
        guard credits > 0, let unit = queue.first else { return false }
        credits -= 1
        var room = mps
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

    /// Whether one who waits for room is to be told that there is some now.
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
