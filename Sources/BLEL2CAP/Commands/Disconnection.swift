import BLEByteCoding

/// A command that ends a channel: a request or its response, with the same endpoints.
public protocol DisconnectionCommand: Equatable, Sendable {
    /// The code of the command.
    static var code: SignalingCode { get }

    /// The channel endpoint on the device that receives the request.
    var destination: ChannelIdentifier { get }
    /// The channel endpoint on the requesting device.
    var source: ChannelIdentifier { get }

    /// Creates a command for the channel with these endpoints.
    init(destination: ChannelIdentifier, source: ChannelIdentifier)
}

extension DisconnectionCommand {
    /// Decodes the command's data, without the header.
    public init(decoding data: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(data)
        let destination = ChannelIdentifier(rawValue: try reader.readUInt16())
        let source = ChannelIdentifier(rawValue: try reader.readUInt16())
        try reader.requireEnd()
        self.init(destination: destination, source: source)
    }

    /// Appends the whole command.
    public func encode(identifier: UInt8, into buffer: inout PacketBuffer) {
        Self.code.encodeHeader(identifier: identifier, length: 4, into: &buffer)
        buffer.append(destination.rawValue)
        buffer.append(source.rawValue)
    }
}

/// A request to end a channel (Vol 3, Part A, 4.6).
public struct DisconnectionRequest: DisconnectionCommand {
    public static let code = SignalingCode.disconnectionRequest

    public var destination: ChannelIdentifier
    public var source: ChannelIdentifier

    public init(destination: ChannelIdentifier, source: ChannelIdentifier) {
        self.destination = destination
        self.source = source
    }
}

/// Confirms that a channel has ended; both endpoints are as in the request (Vol 3, Part A, 4.7).
public struct DisconnectionResponse: DisconnectionCommand {
    public static let code = SignalingCode.disconnectionResponse

    public var destination: ChannelIdentifier
    public var source: ChannelIdentifier

    public init(destination: ChannelIdentifier, source: ChannelIdentifier) {
        self.destination = destination
        self.source = source
    }
}
