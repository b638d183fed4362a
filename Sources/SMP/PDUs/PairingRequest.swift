import ByteCoding

/// Begins a pairing with what the initiator can and wants (Vol 3, Part H, 3.5.1).
public struct PairingRequest: SecurityManagerCommand {
    public static let code = CommandCode.pairingRequest

    /// What the initiator can and wants.
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

/// Agrees to a pairing, with what the responder can and wants (Vol 3, Part H, 3.5.2).
public struct PairingResponse: SecurityManagerCommand {
    public static let code = CommandCode.pairingResponse

    /// What the responder can and wants; of the keys, those that both sides will distribute.
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
