import BLEByteCoding

/// A request for one channel with LE credit-based flow control (Vol 3, Part A, 4.22).
public struct LECreditBasedConnectionRequest: Equatable, Sendable {
    /// The service on the responding device that the channel is for.
    public var spsm: SPSM
    /// The channel endpoint on the requesting device.
    public var source: ChannelIdentifier
    /// The longest SDU that the requesting device can receive, in bytes: 23 to 65,535.
    public var mtu: UInt16
    /// The longest K-frame payload that it can receive, in bytes: 23 to 65,533.
    public var mps: UInt16
    /// The number of K-frames that the peer may send first.
    public var initialCredits: UInt16

    /// Creates a request. The values are not checked against their ranges.
    public init(spsm: SPSM, source: ChannelIdentifier, mtu: UInt16, mps: UInt16, initialCredits: UInt16) {
        self.spsm = spsm
        self.source = source
        self.mtu = mtu
        self.mps = mps
        self.initialCredits = initialCredits
    }

    /// Decodes the command's data, without the header. The values are not checked.
    ///
    /// - Throws: `PacketDecodingError` if the data is not exactly 10 bytes long.
    public init(decoding data: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(data)
        spsm = SPSM(rawValue: try reader.readUInt16())
        source = ChannelIdentifier(rawValue: try reader.readUInt16())
        mtu = try reader.readUInt16()
        mps = try reader.readUInt16()
        initialCredits = try reader.readUInt16()
        try reader.requireEnd()
    }

    /// Appends the whole command.
    public func encode(identifier: UInt8, into buffer: inout PacketBuffer) {
        SignalingCode.leCreditBasedConnectionRequest.encodeHeader(identifier: identifier, length: 10, into: &buffer)
        buffer.append(spsm.rawValue)
        buffer.append(source.rawValue)
        buffer.append(mtu)
        buffer.append(mps)
        buffer.append(initialCredits)
    }
}

/// The response to a request for one channel (Vol 3, Part A, 4.23).
public struct LECreditBasedConnectionResponse: Equatable, Sendable {
    /// The channel endpoint on the responding device; null if it refuses.
    public var destination: ChannelIdentifier
    /// The longest SDU that the responding device can receive, in bytes: 23 to 65,535.
    public var mtu: UInt16
    /// The longest K-frame payload that it can receive, in bytes: 23 to 65,533.
    public var mps: UInt16
    /// The number of K-frames that the requesting device may send first.
    public var initialCredits: UInt16
    /// Whether the channel is open, or the reason for the refusal.
    public var result: CreditBasedConnectionResult

    /// Creates a response. The values are not checked against their ranges.
    public init(
        destination: ChannelIdentifier,
        mtu: UInt16,
        mps: UInt16,
        initialCredits: UInt16,
        result: CreditBasedConnectionResult
    ) {
        self.destination = destination
        self.mtu = mtu
        self.mps = mps
        self.initialCredits = initialCredits
        self.result = result
    }

    /// A refusal. The other fields then have no meaning and are zero.
    public init(refusing result: CreditBasedConnectionResult) {
        self.init(destination: .null, mtu: 0, mps: 0, initialCredits: 0, result: result)
    }

    /// Decodes the command's data, without the header. The values are not checked.
    ///
    /// - Throws: `PacketDecodingError` if the data is not exactly 10 bytes long.
    public init(decoding data: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(data)
        destination = ChannelIdentifier(rawValue: try reader.readUInt16())
        mtu = try reader.readUInt16()
        mps = try reader.readUInt16()
        initialCredits = try reader.readUInt16()
        result = CreditBasedConnectionResult(rawValue: try reader.readUInt16())
        try reader.requireEnd()
    }

    /// Appends the whole command.
    public func encode(identifier: UInt8, into buffer: inout PacketBuffer) {
        SignalingCode.leCreditBasedConnectionResponse.encodeHeader(identifier: identifier, length: 10, into: &buffer)
        buffer.append(destination.rawValue)
        buffer.append(mtu)
        buffer.append(mps)
        buffer.append(initialCredits)
        buffer.append(result.rawValue)
    }
}
