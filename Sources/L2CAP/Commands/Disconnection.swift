import ByteCoding

/// Ends a channel (Vol 3, Part A, 4.6).
public struct DisconnectionRequest: Equatable, Sendable {
    /// The channel's end on the device that is asked.
    public var destination: ChannelIdentifier
    /// The channel's end on the device that asks.
    public var source: ChannelIdentifier

    public init(destination: ChannelIdentifier, source: ChannelIdentifier) {
        self.destination = destination
        self.source = source
    }

    public init(decoding data: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(data)
        destination = ChannelIdentifier(rawValue: try reader.readUInt16())
        source = ChannelIdentifier(rawValue: try reader.readUInt16())
        try reader.requireEnd()
    }

    /// Appends the whole command.
    public func encode(identifier: UInt8, into buffer: inout PacketBuffer) {
        SignalingCode.disconnectionRequest.encodeHeader(identifier: identifier, length: 4, into: &buffer)
        buffer.append(destination.rawValue)
        buffer.append(source.rawValue)
    }
}

/// Says that a channel has ended; both ends are as in the request (Vol 3, Part A, 4.7).
public struct DisconnectionResponse: Equatable, Sendable {
    /// The channel's end on the device that was asked.
    public var destination: ChannelIdentifier
    /// The channel's end on the device that asked.
    public var source: ChannelIdentifier

    public init(destination: ChannelIdentifier, source: ChannelIdentifier) {
        self.destination = destination
        self.source = source
    }

    public init(decoding data: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(data)
        destination = ChannelIdentifier(rawValue: try reader.readUInt16())
        source = ChannelIdentifier(rawValue: try reader.readUInt16())
        try reader.requireEnd()
    }

    /// Appends the whole command.
    public func encode(identifier: UInt8, into buffer: inout PacketBuffer) {
        SignalingCode.disconnectionResponse.encodeHeader(identifier: identifier, length: 4, into: &buffer)
        buffer.append(destination.rawValue)
        buffer.append(source.rawValue)
    }
}
