import BLEByteCoding

/// The identifier of a channel on a link (Vol 3, Part A, 2.1).
public struct ChannelIdentifier: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16

    @inlinable
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// No channel.
    public static let null = ChannelIdentifier(rawValue: 0x0000)
    /// The Attribute Protocol.
    public static let attribute = ChannelIdentifier(rawValue: 0x0004)
    /// LE signaling.
    public static let signaling = ChannelIdentifier(rawValue: 0x0005)
    /// The Security Manager protocol.
    public static let securityManager = ChannelIdentifier(rawValue: 0x0006)

    /// The values that a device assigns to connection-oriented channels on an LE link.
    public static let dynamicRange: ClosedRange<UInt16> = 0x0040...0x007F

    /// Whether the channel is connection-oriented.
    @inlinable
    public var isDynamic: Bool { ChannelIdentifier.dynamicRange.contains(rawValue) }
}

/// A basic L2CAP frame: the length of the payload, the channel, the payload (Vol 3, Part A, 3.1).
public struct Frame: ~Escapable {
    /// The length of the header in bytes: length (2 bytes) and channel identifier (2 bytes).
    public static let headerLength = 4

    /// The channel that the frame is for: the endpoint on the receiving device.
    public let channel: ChannelIdentifier
    /// The bytes after the header, borrowed from the bytes that were decoded.
    public let payload: RawSpan

    /// Decodes a frame that fills `bytes`.
    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        let length = try reader.readUInt16()
        channel = ChannelIdentifier(rawValue: try reader.readUInt16())
        payload = try reader.readBytes(count: Int(length))
        try reader.requireEnd()
    }

    /// Prepends the header to a payload of at most 65,535 bytes that is already in `buffer`.
    @inlinable
    public static func prependHeader(channel: ChannelIdentifier, to buffer: inout PacketBuffer) {
        let length = UInt16(truncatingIfNeeded: buffer.count)
        buffer.prepend(length, channel.rawValue)
    }
}
