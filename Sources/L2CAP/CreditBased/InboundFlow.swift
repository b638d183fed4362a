import ByteCoding

/// One direction of a channel, seen by the receiver: puts K-frames together to SDUs and gives credits
/// (Vol 3, Part A, 3.4.3 and 10.1).
///
/// What the peer can make us hold is bounded: the octets held, and those that the credits it has would allow it to send,
/// are together never more than the capacity. So credits go back only as SDUs are read, and a reader that does not read
/// stops the peer.
struct InboundFlow {
    private enum State {
        case idle
        /// An SDU of this many octets has begun.
        case assembling(length: Int)
    }

    private(set) var mtu: Int
    private(set) var mps: Int
    /// How many K-frames the peer may send.
    private(set) var credits = 0
    private var capacity: Int
    private var state = State.idle
    private var partial: [UInt8] = []
    private var complete = SDUQueue()

    init(_ configuration: CreditBasedChannel.Configuration) {
        mtu = Int(configuration.mtu)
        mps = Int(configuration.mps)
        capacity = configuration.receiveCapacity
        ensureCapacity()
    }

    /// How many SDUs wait to be read.
    var count: Int { complete.count }

    /// What a credit may cost: a K-frame that is full, and perhaps an SDU of its own.
    private var costOfCredit: Int { mps + SDUQueue.overhead }

    private var held: Int {
        switch state {
        case .idle: complete.cost
        case .assembling: complete.cost + partial.count + SDUQueue.overhead
        }
    }

    /// Two K-frames must have room while the longest SDU is incomplete, or it would never become complete.
    private mutating func ensureCapacity() {
        capacity = max(capacity, mtu + SDUQueue.overhead + 2 * costOfCredit)
    }

    /// Takes a K-frame's payload and tells whether it completed an SDU.
    mutating func receive(_ payload: RawSpan) throws(CreditBasedChannel.Violation) -> Bool {
        guard credits > 0 else { throw .noCredit }
        guard payload.byteCount <= mps else { throw .frameExceedsMPS(length: payload.byteCount) }
        credits -= 1
        switch state {
        case .idle:
            var reader = ByteReader(payload)
            guard let length = try? reader.readUInt16() else { throw .missingSDULength }
            guard length <= mtu else { throw .sduExceedsMTU(length: Int(length)) }
            return try append(reader.readRemaining(), length: Int(length))
        case .assembling(let length):
            return try append(payload, length: length)
        }
    }

    private mutating func append(_ segment: RawSpan, length: Int) throws(CreditBasedChannel.Violation) -> Bool {
        guard partial.count + segment.byteCount <= length else { throw .segmentsExceedSDU(length: length) }
        if partial.isEmpty, segment.byteCount == length {
            partial = [UInt8](copying: segment)
        } else {
            partial.reserveCapacity(length)
            unsafe segment.withUnsafeBytes { unsafe partial.append(contentsOf: $0) }
        }
        guard partial.count == length else {
            state = .assembling(length: length)
            return false
        }
        state = .idle
        complete.append(partial)
        partial = []
        return true
    }

    /// Takes the oldest SDU that is complete.
    mutating func read() -> [UInt8]? { complete.popFirst() }

    /// Takes all that are complete.
    mutating func readAll() -> [[UInt8]] { complete.removeAll() }

    /// The credits that the peer is to be given now, if any.
    ///
    /// They are given in bulk, when the peer has used half of what it could have.
    mutating func takeGrant() -> UInt16? {
        let affordable = min((capacity - held) / costOfCredit, Int(UInt16.max))
        guard affordable > credits, credits <= affordable / 2 else { return nil }
        defer { credits = affordable }
        return UInt16(truncatingIfNeeded: affordable - credits)
    }

    /// Receives other lengths from now on.
    mutating func reconfigure(mtu: UInt16, mps: UInt16) {
        self.mtu = Int(mtu)
        self.mps = Int(mps)
        ensureCapacity()
    }
}
