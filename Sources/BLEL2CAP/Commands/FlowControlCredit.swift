import BLEByteCoding

/// Grants the peer credits to send more K-frames (Vol 3, Part A, 4.24).
public struct FlowControlCredit: Equatable, Sendable {
    /// The channel endpoint on the granting device.
    public var channel: ChannelIdentifier
    /// The number of further K-frames: at least 1.
    public var credits: UInt16

    /// Creates a grant of `credits` for `channel`.
    public init(channel: ChannelIdentifier, credits: UInt16) {
        self.channel = channel
        self.credits = credits
    }

    /// Decodes the command's data, without the header. The values are not checked.
    ///
    /// - Throws: `PacketDecodingError` if the data is not exactly 4 bytes long.
    public init(decoding data: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(data)
        channel = ChannelIdentifier(rawValue: try reader.readUInt16())
        credits = try reader.readUInt16()
        try reader.requireEnd()
    }

    /// Appends the whole command.
    public func encode(identifier: UInt8, into buffer: inout PacketBuffer) {
        SignalingCode.flowControlCredit.encodeHeader(identifier: identifier, length: 4, into: &buffer)
        buffer.append(channel.rawValue)
        buffer.append(credits)
    }
}
