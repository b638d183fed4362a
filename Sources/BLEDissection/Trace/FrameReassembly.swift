import BLEByteCoding
import BLEL2CAP

/// Reassembles the frames in one direction of a link, also from fragments whose end the recorder has cut off.
///
/// Zeros take the place of the missing bytes, so that the next fragments continue the frame. Only the bytes before the
/// first missing byte are delivered.
struct FrameReassembly {
    /// Takes the channel of a frame, the known part of its payload, and the number of bytes missing after this part.
    typealias Receiver = (_ channel: ChannelIdentifier, _ payload: RawSpan, _ missing: Int) -> Void

    private var reassembler = Reassembler(maximumPayloadLength: 0xFFFF)
    /// The number of bytes of the current frame so far, including missing bytes.
    private var length = 0
    /// The number of bytes of the current frame before the first missing byte; nil if none is missing.
    private var knownLength: Int?
    /// Whether the length field of the current frame is missing. The fragments of this frame are ignored.
    private var isLengthMissing = false

    /// Whether further fragments of the current frame are expected.
    var isIncomplete: Bool {
        if isLengthMissing { return true }
        // An empty frame is a whole frame, except after a frame that is incomplete.
        let emptyFrame: [UInt8] = [0, 0, 0, 0]
        return !reassembler.isWhole(emptyFrame.rawSpan)
    }

    /// Takes one fragment, and passes a frame that it completes to `deliver`.
    ///
    /// - Parameters:
    ///   - fragment: the recorded part of an ACL packet's data.
    ///   - missing: the number of bytes that the recorder has cut off the end of the data.
    ///   - isStart: whether the fragment starts a frame, by its Packet Boundary flag.
    mutating func receive(
        _ fragment: RawSpan,
        missing: Int,
        isStart: Bool,
        deliver: Receiver
    ) -> Reassembler.Outcome {
        if isStart {
            length = 0
            knownLength = nil
            isLengthMissing = false
        } else if isLengthMissing {
            return .incomplete
        }
        let start = length
        length += fragment.byteCount + missing
        guard missing > 0 || knownLength != nil else {
            return reassembler.receive(fragment, isStart: isStart) { frame in
                deliver(frame.channel, frame.payload, 0)
            }
        }
        let known = knownLength ?? start + fragment.byteCount
        knownLength = known
        // A frame begins with its length, in two bytes.
        guard known >= 2 else {
            reassembler = Reassembler(maximumPayloadLength: 0xFFFF)
            isLengthMissing = true
            return .incomplete
        }
        let whole = [UInt8](copying: fragment) + [UInt8](repeating: 0, count: missing)
        return reassembler.receive(whole.rawSpan, isStart: isStart) { frame in
            let knownPayloadLength = known - Frame.headerLength
            // Without the channel identifier, nothing is known of the payload.
            guard knownPayloadLength >= 0, knownPayloadLength <= frame.payload.byteCount else { return }
            deliver(
                frame.channel,
                frame.payload.extracting(first: knownPayloadLength),
                frame.payload.byteCount - knownPayloadLength
            )
        }
    }
}
