import BLEByteCoding

/// Changes the lengths that the sender can receive on up to five channels of the enhanced variant
/// (Vol 3, Part A, 4.27).
public struct CreditBasedReconfigureRequest: Equatable, Sendable {
    /// The longest SDU that the sender can receive, in bytes; never less than before.
    public var mtu: UInt16
    /// The longest K-frame payload that it can receive, in bytes; less than before only for a single channel.
    public var mps: UInt16
    /// The channel endpoints on the requesting device: the destinations of the frames that it receives.
    public var destinations: ChannelIdentifierList

    /// Creates a request. The values are not checked against their ranges.
    public init(mtu: UInt16, mps: UInt16, destinations: ChannelIdentifierList) {
        self.mtu = mtu
        self.mps = mps
        self.destinations = destinations
    }

    /// Decodes the command's data, without the header.
    ///
    /// - Throws: `PacketDecodingError` if the data is too short, or its rest is not a list of at most five channels.
    public init(decoding data: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(data)
        mtu = try reader.readUInt16()
        mps = try reader.readUInt16()
        destinations = try ChannelIdentifierList(decodingRestOf: &reader)
    }

    /// Appends the whole command.
    public func encode(identifier: UInt8, into buffer: inout PacketBuffer) {
        SignalingCode.creditBasedReconfigureRequest
            .encodeHeader(identifier: identifier, length: 4 + 2 * destinations.count, into: &buffer)
        buffer.append(mtu)
        buffer.append(mps)
        destinations.encode(into: &buffer)
    }
}

/// The result of a reconfiguration: all of it was applied, or none (Vol 3, Part A, 4.28).
public struct CreditBasedReconfigureResult: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16

    @inlinable
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The new lengths apply to all channels of the request.
    public static let successful = CreditBasedReconfigureResult(rawValue: 0x0000)
    /// The MTU would be less than before.
    public static let reductionOfMTUNotAllowed = CreditBasedReconfigureResult(rawValue: 0x0001)
    /// The MPS would be less than before, for more than one channel.
    public static let reductionOfMPSNotAllowed = CreditBasedReconfigureResult(rawValue: 0x0002)
    /// One or more destinations are not channels of the sender.
    public static let invalidDestinationCIDs = CreditBasedReconfigureResult(rawValue: 0x0003)
    /// A parameter is not acceptable for another reason, for example because it is out of range.
    public static let unacceptableParameters = CreditBasedReconfigureResult(rawValue: 0x0004)
}

/// The response to a reconfiguration (Vol 3, Part A, 4.28).
public struct CreditBasedReconfigureResponse: Equatable, Sendable {
    /// Whether the new lengths apply, or the reason why none does.
    public var result: CreditBasedReconfigureResult

    /// Creates a response.
    public init(result: CreditBasedReconfigureResult) {
        self.result = result
    }

    /// Decodes the command's data, without the header.
    ///
    /// - Throws: `PacketDecodingError` if the data is not exactly 2 bytes long.
    public init(decoding data: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(data)
        result = CreditBasedReconfigureResult(rawValue: try reader.readUInt16())
        try reader.requireEnd()
    }

    /// Appends the whole command.
    public func encode(identifier: UInt8, into buffer: inout PacketBuffer) {
        SignalingCode.creditBasedReconfigureResponse.encodeHeader(identifier: identifier, length: 2, into: &buffer)
        buffer.append(result.rawValue)
    }
}
