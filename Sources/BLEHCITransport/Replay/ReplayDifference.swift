import BLEByteCoding

/// The first difference between the packets that a host sends and a recording.
public struct ReplayDifference: Error, Hashable, Sendable {
    /// The time since the start of the replay, on the host's clock.
    public let time: Duration
    /// The index in ``PacketRecording/packets`` of the packet that the host should have sent, or the number of packets
    /// if none was left.
    public let index: Int
    /// The packet that the host should have sent; nil if the recording has no more of them.
    public let expected: PacketRecording.Packet?
    /// The packet that the host sent, with its H4 indicator; nil if it sent nothing.
    public let sent: [UInt8]?

    package init(time: Duration, index: Int, expected: PacketRecording.Packet?, sent: [UInt8]?) {
        self.time = time
        self.index = index
        self.expected = expected
        self.sent = sent
    }

    /// The offset of the first byte that differs; nil if a packet is missing, or one packet is a prefix of the other.
    public var offset: Int? {
        guard let expected, let sent else { return nil }
        return zip(expected.bytes, sent).enumerated().first { $0.element.0 != $0.element.1 }?.offset
    }
}

extension ReplayDifference: CustomStringConvertible {
    public var description: String {
        let place = expected.map { "packet \($0.number) of the recording" } ?? "the recording's end"
        let wanted = expected.map(\.bytes.hexadecimal) ?? "nothing more"
        let found = sent.map(\.hexadecimal) ?? "nothing"
        return "at \(place), after \(time): expected \(wanted), the host has sent \(found)"
    }
}
