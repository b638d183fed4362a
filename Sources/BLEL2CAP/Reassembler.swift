import BLEByteCoding

/// Reassembles the fragments in a link's ACL packets to L2CAP frames (Vol 3, Part A, 7.2.2).
///
/// A frame in a single fragment is delivered in place. Only a frame in several fragments is copied.
/// ``maximumPayloadLength`` limits the memory that a peer can claim.
public struct Reassembler {
    /// The outcome of one fragment.
    public enum Outcome: Equatable, Sendable {
        /// A frame was complete and has been delivered.
        case delivered
        /// More fragments follow.
        case incomplete
        /// The fragment, or the frame it belongs to, was dropped.
        case dropped(Violation)
    }

    /// An error in a sequence of fragments.
    public enum Violation: Equatable, Sendable {
        /// A continuing fragment without a started frame.
        case unexpectedContinuation
        /// A frame was started while another was incomplete; the older one is lost.
        case interruptedFrame
        /// The fragments have more bytes than the frame's length.
        case excessBytes
        /// The frame is longer than ``Reassembler/maximumPayloadLength``.
        case oversizedFrame(length: Int)
        /// The first fragment of a frame is empty.
        case emptyStart
    }

    private enum State: Equatable {
        case idle
        /// The header itself is split: its length field is not complete yet.
        case collectingHeader
        case collecting(total: Int)
        /// The rest of a frame that is too long is discarded.
        case discarding(remaining: Int)
    }

    /// The default of ``maximumPayloadLength``, in bytes.
    public static let defaultMaximumPayloadLength = 4096
    /// The longest payload that is reassembled, in bytes.
    public let maximumPayloadLength: Int
    private var state = State.idle
    private var collected: [UInt8] = []

    /// Creates a reassembler with no started frame.
    ///
    /// - Parameter maximumPayloadLength: the longest payload that is reassembled, in bytes. Longer frames are dropped.
    public init(maximumPayloadLength: Int = Reassembler.defaultMaximumPayloadLength) {
        self.maximumPayloadLength = maximumPayloadLength
    }

    /// Whether the first fragment of a frame is the whole frame, and no other frame is incomplete. Such a fragment need
    /// not be passed to ``receive(_:isStart:deliver:)``.
    public func isWhole(_ fragment: RawSpan) -> Bool {
        guard case .idle = state else { return false }
        return Reassembler.frameLength(of: fragment) == fragment.byteCount
    }

    /// Takes one fragment, and passes a frame that it completes to `deliver`.
    ///
    /// - Parameters:
    ///   - fragment: an ACL packet's data.
    ///   - isStart: whether the fragment starts a frame, by its Packet Boundary flag.
    ///   - deliver: takes the frame that the fragment completes.
    public mutating func receive(
        _ fragment: RawSpan,
        isStart: Bool,
        deliver: (borrowing Frame) -> Void
    ) -> Outcome {
        isStart ? start(with: fragment, deliver: deliver) : resume(with: fragment, deliver: deliver)
    }

    private mutating func start(with fragment: RawSpan, deliver: (borrowing Frame) -> Void) -> Outcome {
        let interrupted = state != .idle
        state = .idle
        collected.removeAll(keepingCapacity: true)
        guard fragment.byteCount > 0 else { return .dropped(.emptyStart) }
        guard let total = Reassembler.frameLength(of: fragment) else {
            collect(fragment)
            state = .collectingHeader
            return interrupted ? .dropped(.interruptedFrame) : .incomplete
        }
        if fragment.byteCount > total { return .dropped(.excessBytes) }
        if fragment.byteCount == total {
            guard let frame = try? Frame(decoding: fragment) else { return .dropped(.excessBytes) }
            deliver(frame)
            return interrupted ? .dropped(.interruptedFrame) : .delivered
        }
        let outcome = begin(total: total, with: fragment)
        return interrupted && outcome == .incomplete ? .dropped(.interruptedFrame) : outcome
    }

    private mutating func begin(total: Int, with fragment: RawSpan) -> Outcome {
        let length = total - Frame.headerLength
        guard length <= maximumPayloadLength else {
            state = .discarding(remaining: total - fragment.byteCount)
            collected.removeAll(keepingCapacity: true)
            return .dropped(.oversizedFrame(length: length))
        }
        collected.reserveCapacity(total)
        collect(fragment)
        state = .collecting(total: total)
        return .incomplete
    }

    private mutating func resume(with fragment: RawSpan, deliver: (borrowing Frame) -> Void) -> Outcome {
        switch state {
        case .idle:
            return .dropped(.unexpectedContinuation)
        case .discarding(let remaining):
            state = fragment.byteCount < remaining ? .discarding(remaining: remaining - fragment.byteCount) : .idle
            return .incomplete
        case .collectingHeader:
            collect(fragment)
            guard let total = Reassembler.frameLength(of: collected.rawSpan) else { return .incomplete }
            let length = total - Frame.headerLength
            guard length <= maximumPayloadLength else {
                let excess = collected.count - total
                state = excess < 0 ? .discarding(remaining: -excess) : .idle
                collected.removeAll(keepingCapacity: true)
                return .dropped(.oversizedFrame(length: length))
            }
            state = .collecting(total: total)
            return finishIfComplete(total: total, deliver: deliver)
        case .collecting(let total):
            if collected.count + fragment.byteCount > total {
                state = .idle
                collected.removeAll(keepingCapacity: true)
                return .dropped(.excessBytes)
            }
            collect(fragment)
            return finishIfComplete(total: total, deliver: deliver)
        }
    }

    private mutating func finishIfComplete(total: Int, deliver: (borrowing Frame) -> Void) -> Outcome {
        guard collected.count >= total else { return .incomplete }
        state = .idle
        defer { collected.removeAll(keepingCapacity: true) }
        guard let frame = try? Frame(decoding: collected.rawSpan) else { return .dropped(.excessBytes) }
        deliver(frame)
        return .delivered
    }

    private mutating func collect(_ fragment: RawSpan) {
        collected.append(copying: fragment)
    }

    /// The total length of the frame that starts with `bytes`; nil while its length field is not complete.
    private static func frameLength(of bytes: RawSpan) -> Int? {
        var reader = ByteReader(bytes)
        guard let length = try? reader.readUInt16() else { return nil }
        return Int(length) + Frame.headerLength
    }
}
