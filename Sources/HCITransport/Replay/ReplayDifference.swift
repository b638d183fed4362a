import ByteCoding

/// Where a host first does otherwise than a recording has it.
public struct ReplayDifference: Error, Hashable, Sendable {
    /// How long the replay had been going on, by the host's clock.
    public let time: Duration
    /// Where in ``PacketRecording/packets`` the packet stands that the host was to have sent; the number of packets where
    /// there was none left.
    public let index: Int
    /// What the host was to have sent; nil where the recording has no more of it.
    public let expected: PacketRecording.Packet?
    /// What the host has sent, with its H4 indicator; nil where it has sent nothing.
    public let sent: [UInt8]?

    package init(time: Duration, index: Int, expected: PacketRecording.Packet?, sent: [UInt8]?) {
        self.time = time
        self.index = index
        self.expected = expected
        self.sent = sent
    }

    /// The first octet that is another; nil where one of both is missing or the shorter is the other's beginning.
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
