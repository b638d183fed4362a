import ByteCoding

/// Any command of the Security Manager Protocol (Vol 3, Part H, 3.3).
public enum SecurityManagerPDU: Hashable, Sendable {
    case pairingRequest(PairingRequest)
    case pairingResponse(PairingResponse)
    case pairingConfirm(PairingConfirm)
    case pairingRandom(PairingRandom)
    case pairingFailed(PairingFailed)
    case encryptionInformation(EncryptionInformation)
    case centralIdentification(CentralIdentification)
    case identityInformation(IdentityInformation)
    case identityAddressInformation(IdentityAddressInformation)
    case signingInformation(SigningInformation)
    case securityRequest(SecurityRequest)
    case pairingPublicKey(PairingPublicKey)
    case pairingDHKeyCheck(PairingDHKeyCheck)
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
