import BLEByteCoding

/// A request to the central for other connection parameters (Vol 3, Part A, 4.20).
public struct ConnectionParameterUpdateRequest: Equatable, Sendable {
    /// In units of 1.25 ms: 6 to 3200.
    public var intervalMin: UInt16
    /// In units of 1.25 ms: 6 to 3200.
    public var intervalMax: UInt16
    /// In connection events: 0 to 499.
    public var latency: UInt16
    /// The supervision timeout in units of 10 ms: 10 to 3200.
    public var timeout: UInt16

    /// Creates a request. ``isValid`` tells whether the values are in their ranges.
    public init(intervalMin: UInt16, intervalMax: UInt16, latency: UInt16, timeout: UInt16) {
        self.intervalMin = intervalMin
        self.intervalMax = intervalMax
        self.latency = latency
        self.timeout = timeout
    }

    /// Whether each value is in its range, and the timeout is longer than twice the longest silence that the latency
    /// allows.
    public var isValid: Bool {
        let longestSilence = (1 + Int(latency)) * Int(intervalMax) * 2  // in 1.25 ms
        return (6...3200).contains(intervalMin) && (6...3200).contains(intervalMax) && intervalMin <= intervalMax
            && latency <= 499 && (10...3200).contains(timeout) && Int(timeout) * 8 > longestSilence
    }

    /// Decodes the command's data, without the header. ``isValid`` tells whether the values are in their ranges.
    ///
    /// - Throws: `PacketDecodingError` if the data is not exactly 8 bytes long.
    public init(decoding data: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(data)
        intervalMin = try reader.readUInt16()
        intervalMax = try reader.readUInt16()
        latency = try reader.readUInt16()
        timeout = try reader.readUInt16()
        try reader.requireEnd()
    }

    /// Appends the whole command.
    public func encode(identifier: UInt8, into buffer: inout PacketBuffer) {
        buffer.append(SignalingCode.connectionParameterUpdateRequest.rawValue)
        buffer.append(identifier)
        buffer.append(UInt16(8))
        buffer.append(intervalMin)
        buffer.append(intervalMax)
        buffer.append(latency)
        buffer.append(timeout)
    }
}

/// The central's response (Vol 3, Part A, 4.21).
public enum ConnectionParameterUpdateResponse: UInt16, Sendable {
    /// The central accepts the parameters and will update the connection.
    case accepted = 0
    /// The central rejects the parameters; the connection keeps its own.
    case rejected = 1

    /// Decodes the command's data, without the header.
    ///
    /// - Throws: `PacketDecodingError` if the data is not exactly 2 bytes long, or the result is neither 0 nor 1.
    public init(decoding data: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(data)
        let result = try reader.readUInt16()
        try reader.requireEnd()
        guard let response = ConnectionParameterUpdateResponse(rawValue: result) else {
            throw .invalidValue(UInt64(result), field: "Connection Parameter Update result")
        }
        self = response
    }

    /// Appends the whole command.
    public func encode(identifier: UInt8, into buffer: inout PacketBuffer) {
        buffer.append(SignalingCode.connectionParameterUpdateResponse.rawValue)
        buffer.append(identifier)
        buffer.append(UInt16(2))
        buffer.append(rawValue)
    }
}
