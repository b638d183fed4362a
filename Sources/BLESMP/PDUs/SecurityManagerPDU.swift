import BLEByteCoding

/// Any command of the Security Manager Protocol (Vol 3, Part H, 3.3).
public enum SecurityManagerPDU: Hashable, Sendable {
    /// The initiator's features, with which a pairing begins (3.5.1).
    case pairingRequest(PairingRequest)
    /// The responder's features (3.5.2).
    case pairingResponse(PairingResponse)
    /// A commitment to a random value (3.5.3).
    case pairingConfirm(PairingConfirm)
    /// The random value behind a commitment, or a nonce (3.5.4).
    case pairingRandom(PairingRandom)
    /// The end of a pairing without a result (3.5.5).
    case pairingFailed(PairingFailed)
    /// The sender's long term key, in LE legacy pairing (3.6.2).
    case encryptionInformation(EncryptionInformation)
    /// EDIV and Rand of that long term key (3.6.3).
    case centralIdentification(CentralIdentification)
    /// The sender's identity resolving key (3.6.4).
    case identityInformation(IdentityInformation)
    /// The sender's identity address (3.6.5).
    case identityAddressInformation(IdentityAddressInformation)
    /// The sender's signing key (3.6.6).
    case signingInformation(SigningInformation)
    /// The peripheral's request for security (3.6.7).
    case securityRequest(SecurityRequest)
    /// The sender's public key, in LE Secure Connections (3.5.6).
    case pairingPublicKey(PairingPublicKey)
    /// The check of the Diffie-Hellman key, in LE Secure Connections (3.5.7).
    case pairingDHKeyCheck(PairingDHKeyCheck)
    /// A key press during passkey entry (3.5.8).
    case keypressNotification(KeypressNotification)

    /// Decodes a whole PDU of the Security Manager's channel.
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        guard let code = bytes[checked: 0] else { throw .truncated(needed: 1, available: 0) }
        switch CommandCode(rawValue: code) {
        case .pairingRequest: self = .pairingRequest(try PairingRequest(decoding: bytes))
        case .pairingResponse: self = .pairingResponse(try PairingResponse(decoding: bytes))
        case .pairingConfirm: self = .pairingConfirm(try PairingConfirm(decoding: bytes))
        case .pairingRandom: self = .pairingRandom(try PairingRandom(decoding: bytes))
        case .pairingFailed: self = .pairingFailed(try PairingFailed(decoding: bytes))
        case .encryptionInformation: self = .encryptionInformation(try EncryptionInformation(decoding: bytes))
        case .centralIdentification: self = .centralIdentification(try CentralIdentification(decoding: bytes))
        case .identityInformation: self = .identityInformation(try IdentityInformation(decoding: bytes))
        case .identityAddressInformation:
            self = .identityAddressInformation(try IdentityAddressInformation(decoding: bytes))
        case .signingInformation: self = .signingInformation(try SigningInformation(decoding: bytes))
        case .securityRequest: self = .securityRequest(try SecurityRequest(decoding: bytes))
        case .pairingPublicKey: self = .pairingPublicKey(try PairingPublicKey(decoding: bytes))
        case .pairingDHKeyCheck: self = .pairingDHKeyCheck(try PairingDHKeyCheck(decoding: bytes))
        case .keypressNotification: self = .keypressNotification(try KeypressNotification(decoding: bytes))
        case nil: throw .invalidValue(UInt64(code), field: "SMP code")
        }
    }

    /// Appends the whole PDU.
    public func encode(into buffer: inout PacketBuffer) {
        switch self {
        case .pairingRequest(let command): command.encode(into: &buffer)
        case .pairingResponse(let command): command.encode(into: &buffer)
        case .pairingConfirm(let command): command.encode(into: &buffer)
        case .pairingRandom(let command): command.encode(into: &buffer)
        case .pairingFailed(let command): command.encode(into: &buffer)
        case .encryptionInformation(let command): command.encode(into: &buffer)
        case .centralIdentification(let command): command.encode(into: &buffer)
        case .identityInformation(let command): command.encode(into: &buffer)
        case .identityAddressInformation(let command): command.encode(into: &buffer)
        case .signingInformation(let command): command.encode(into: &buffer)
        case .securityRequest(let command): command.encode(into: &buffer)
        case .pairingPublicKey(let command): command.encode(into: &buffer)
        case .pairingDHKeyCheck(let command): command.encode(into: &buffer)
        case .keypressNotification(let command): command.encode(into: &buffer)
        }
    }
}
