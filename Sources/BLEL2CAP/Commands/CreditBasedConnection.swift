import BLEByteCoding

/// A request for up to five channels with enhanced credit-based flow control (Vol 3, Part A, 4.25).
public struct CreditBasedConnectionRequest: Equatable, Sendable {
    /// The service on the responding device that the channels are for.
    public var spsm: SPSM
    /// The longest SDU that the requesting device can receive on each channel, in bytes: 64 to 65,535.
    public var mtu: UInt16
    /// The longest K-frame payload that it can receive, in bytes: 64 to 65,533.
    public var mps: UInt16
    /// The number of K-frames that the peer may first send on each channel: at least 1.
    public var initialCredits: UInt16
    /// The channel endpoints on the requesting device.
    public var sources: ChannelIdentifierList

    /// Creates a request. The values are not checked against their ranges.
    public init(spsm: SPSM, mtu: UInt16, mps: UInt16, initialCredits: UInt16, sources: ChannelIdentifierList) {
        self.spsm = spsm
        self.mtu = mtu
        self.mps = mps
        self.initialCredits = initialCredits
        self.sources = sources
    }

    /// Decodes the command's data, without the header.
    ///
    /// - Throws: `PacketDecodingError` if the data is too short, or its rest is not a list of at most five channels.
    public init(decoding data: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(data)
        spsm = SPSM(rawValue: try reader.readUInt16())
        mtu = try reader.readUInt16()
        mps = try reader.readUInt16()
        initialCredits = try reader.readUInt16()
        sources = try ChannelIdentifierList(decodingRestOf: &reader)
    }

    /// Appends the whole command.
    public func encode(identifier: UInt8, into buffer: inout PacketBuffer) {
        SignalingCode.creditBasedConnectionRequest
            .encodeHeader(identifier: identifier, length: 8 + 2 * sources.count, into: &buffer)
        buffer.append(spsm.rawValue)
        buffer.append(mtu)
        buffer.append(mps)
        buffer.append(initialCredits)
        sources.encode(into: &buffer)
    }
}

/// The response to a request for up to five channels (Vol 3, Part A, 4.26).
public struct CreditBasedConnectionResponse: Equatable, Sendable {
    /// The longest SDU that the responding device can receive on each channel, in bytes: 64 to 65,535.
    public var mtu: UInt16
    /// The longest K-frame payload that it can receive, in bytes: 64 to 65,533.
    public var mps: UInt16
    /// The number of K-frames that the requesting device may first send on each channel: at least 1.
    public var initialCredits: UInt16
    /// The result for all channels, or the reason for the refused ones if some channels are open.
    public var result: CreditBasedConnectionResult
    /// The channel endpoints on the responding device, in the order of the request; null for each refused channel.
    public var destinations: ChannelIdentifierList

    /// Creates a response. The values are not checked against their ranges.
    public init(
        mtu: UInt16,
        mps: UInt16,
        initialCredits: UInt16,
        result: CreditBasedConnectionResult,
        destinations: ChannelIdentifierList
    ) {
        self.mtu = mtu
        self.mps = mps
        self.initialCredits = initialCredits
        self.result = result
        self.destinations = destinations
    }

    /// A response that opens no channel and lists none.
    init(refusing result: CreditBasedConnectionResult) {
        self.init(mtu: 0, mps: 0, initialCredits: 0, result: result, destinations: ChannelIdentifierList())
    }

    /// Decodes the command's data, without the header.
    ///
    /// - Throws: `PacketDecodingError` if the data is too short, or its rest is not a list of at most five channels.
    public init(decoding data: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(data)
        mtu = try reader.readUInt16()
        mps = try reader.readUInt16()
        initialCredits = try reader.readUInt16()
        result = CreditBasedConnectionResult(rawValue: try reader.readUInt16())
        destinations = try ChannelIdentifierList(decodingRestOf: &reader)
    }

    /// Appends the whole command.
    public func encode(identifier: UInt8, into buffer: inout PacketBuffer) {
        SignalingCode.creditBasedConnectionResponse
            .encodeHeader(identifier: identifier, length: 8 + 2 * destinations.count, into: &buffer)
        buffer.append(mtu)
        buffer.append(mps)
        buffer.append(initialCredits)
        buffer.append(result.rawValue)
        destinations.encode(into: &buffer)
    }
}
