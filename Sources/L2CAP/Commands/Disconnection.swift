import ByteCoding

/// A request to end a channel (Vol 3, Part A, 4.6).
public struct DisconnectionRequest: Equatable, Sendable {
    /// The channel endpoint on the device that receives the request.
    public var destination: ChannelIdentifier
    /// The channel endpoint on the requesting device.
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

/// Confirms that a channel has ended; both endpoints are as in the request (Vol 3, Part A, 4.7).
public struct DisconnectionResponse: Equatable, Sendable {
    /// The channel endpoint on the device that received the request.
    public var destination: ChannelIdentifier
    /// The channel endpoint on the requesting device.
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
