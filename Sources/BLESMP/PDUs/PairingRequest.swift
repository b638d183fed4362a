import BLEByteCoding

/// Begins a pairing with the initiator's features (Vol 3, Part H, 3.5.1).
public struct PairingRequest: SecurityManagerCommand {
    public static let code = CommandCode.pairingRequest

    /// The features of the initiator.
    public var features: PairingFeatures

    /// A Pairing Request with its parameters.
    public init(features: PairingFeatures) {
        self.features = features
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readCode(.pairingRequest)
        features = try PairingFeatures(from: &reader)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.code.rawValue)
        features.encode(into: &buffer)
    }
}

/// Accepts a pairing with the responder's features (Vol 3, Part H, 3.5.2).
public struct PairingResponse: SecurityManagerCommand {
    public static let code = CommandCode.pairingResponse

    /// The features of the responder. Its key fields have the keys that both sides will distribute.
    public var features: PairingFeatures

    /// A Pairing Response with its parameters.
    public init(features: PairingFeatures) {
        self.features = features
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readCode(.pairingResponse)
        features = try PairingFeatures(from: &reader)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.code.rawValue)
        features.encode(into: &buffer)
    }
}
