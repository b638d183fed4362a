import BLEByteCoding

/// The receiving direction of a channel: reassembles K-frames to SDUs and grants credits
/// (Vol 3, Part A, 3.4.3 and 10.1).
///
/// The memory that the peer can claim is bounded. The bytes held, and those that the peer's credits would allow it to
/// send, together do not exceed the capacity. So credits are granted only as SDUs are read, and a reader that stops
/// reading stops the peer.
///
/// A change to a longer MPS is the exception. The peer may use all its credits for longer K-frames, and they cannot be
/// taken back. Until they are used, the credits that were granted before may claim up to ``reconfigurationFactor``
/// times the capacity.
///
/// The longer MPS counts as soon as the app asks for it. The peer gets the request once its credits fit
/// ``reconfigurationFactor`` times the capacity, and gets more credits once they fit the capacity itself. Without this
/// factor, the request of an app would wait until an idle peer sends something.
struct InboundFlow {
    /// How many times the capacity the peer's credits may claim after a change to a longer MPS.
    static let reconfigurationFactor = 16
    /// The greatest capacity. Greater ones are taken as this one, so that the limit for reconfigurations does not
    /// overflow.
    private static let maximumCapacity = Int.max / reconfigurationFactor

    private enum State {
        case idle
        /// An SDU of this many bytes has begun.
        case assembling(length: Int)
    }

    private(set) var mtu: Int
    private(set) var mps: Int
    /// The number of K-frames that the peer may send.
    private(set) var credits = 0
    private var capacity: Int
    /// The longer MPS that the app has asked for and the peer has not agreed to, and the capacity before.
    private var pending: (mps: Int, earlierCapacity: Int)?
    private var state = State.idle
    private var partial: [UInt8] = []
    private var complete = SDUQueue()

    init(_ configuration: CreditBasedChannel.Configuration) {
        mtu = Int(configuration.mtu)
        mps = Int(configuration.mps)
        capacity = min(configuration.receiveByteCapacity, InboundFlow.maximumCapacity)
        ensureCapacity()
    }

    /// The number of unread SDUs.
    var count: Int { complete.count }

    /// The maximum cost of a credit: a full K-frame, and possibly the overhead of an SDU.
    private var costOfCredit: Int { (pending?.mps ?? mps) + SDUQueue.overhead }

    private var held: Int {
        switch state {
        case .idle: complete.cost
        case .assembling: complete.cost + partial.count + SDUQueue.overhead
        }
    }

    /// Two K-frames must fit while the longest SDU is incomplete, or it could never become complete.
    private mutating func ensureCapacity() {
        capacity = max(capacity, mtu + SDUQueue.overhead + 2 * costOfCredit)
    }

    /// Takes a K-frame's payload and returns whether it completed an SDU.
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

    /// Removes and returns the oldest complete SDU.
    mutating func read() -> [UInt8]? { complete.popFirst() }

    /// Removes and returns all complete SDUs.
    mutating func readAll() -> [[UInt8]] { complete.removeAll() }

    /// The credits to grant to the peer now; nil if there are none.
    ///
    /// Credits are granted in bulk, when the peer has used half of what it could have.
    mutating func takeGrant() -> UInt16? {
        let affordable = min((capacity - held) / costOfCredit, Int(UInt16.max))
        guard affordable > credits, credits <= affordable / 2 else { return nil }
        defer { credits = affordable }
        return UInt16(truncatingIfNeeded: affordable - credits)
    }

    /// Whether the peer's credits fit the limit for reconfigurations if its K-frames have the pending MPS.
    var areCreditsAffordable: Bool { held + credits * costOfCredit <= capacity * InboundFlow.reconfigurationFactor }

    /// Counts with another MPS from now on, if it is longer. ``reconfigure(mtu:mps:)`` or ``cancelReconfiguration()``
    /// follows.
    mutating func prepareReconfiguration(mps: UInt16) {
        guard Int(mps) > self.mps else { return }
        pending = (Int(mps), capacity)
        ensureCapacity()
    }

    /// Counts with the present MPS again, because the peer has not agreed to another one.
    mutating func cancelReconfiguration() {
        guard let (_, earlierCapacity) = pending.take() else { return }
        capacity = earlierCapacity
    }

    /// Receives other lengths from now on.
    mutating func reconfigure(mtu: UInt16, mps: UInt16) {
        pending = nil
        self.mtu = Int(mtu)
        self.mps = Int(mps)
        ensureCapacity()
    }
}
