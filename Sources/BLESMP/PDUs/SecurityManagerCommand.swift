import BLEByteCoding

/// The code of an SMP command (Vol 3, Part H, 3.3, table 3.3).
public enum CommandCode: UInt8, Hashable, Sendable, CaseIterable {
    /// ``PairingRequest`` (3.5.1).
    case pairingRequest = 0x01
    /// ``PairingResponse`` (3.5.2).
    case pairingResponse = 0x02
    /// ``PairingConfirm`` (3.5.3).
    case pairingConfirm = 0x03
    /// ``PairingRandom`` (3.5.4).
    case pairingRandom = 0x04
    /// ``PairingFailed`` (3.5.5).
    case pairingFailed = 0x05
    /// ``EncryptionInformation`` (3.6.2).
    case encryptionInformation = 0x06
    /// ``CentralIdentification`` (3.6.3).
    case centralIdentification = 0x07
    /// ``IdentityInformation`` (3.6.4).
    case identityInformation = 0x08
    /// ``IdentityAddressInformation`` (3.6.5).
    case identityAddressInformation = 0x09
    /// ``SigningInformation`` (3.6.6).
    case signingInformation = 0x0A
    /// ``SecurityRequest`` (3.6.7).
    case securityRequest = 0x0B
    /// ``PairingPublicKey`` (3.5.6).
    case pairingPublicKey = 0x0C
    /// ``PairingDHKeyCheck`` (3.5.7).
    case pairingDHKeyCheck = 0x0D
    /// ``KeypressNotification`` (3.5.8).
    case keypressNotification = 0x0E
}

/// A command of the Security Manager Protocol (Vol 3, Part H, 3.3). Each command has a fixed length.
public protocol SecurityManagerCommand: Hashable, Sendable {
    /// The first byte of every command of this type.
    static var code: CommandCode { get }

    /// Decodes a whole command with its code.
    init(decoding bytes: RawSpan) throws(PacketDecodingError)

    /// Appends the whole command with its code.
    func encode(into buffer: inout PacketBuffer)
}

extension ByteReader {
    /// Reads the code of the command and checks it.
    mutating func readCode(_ code: CommandCode) throws(PacketDecodingError) {
        let value = try readUInt8()
        if value != code.rawValue { throw .invalidValue(UInt64(value), field: "SMP code") }
    }

    /// Reads a number of 256 bits.
    mutating func readUInt256() throws(PacketDecodingError) -> UInt256Bytes {
        let octets = try readBytes(count: 32)
        guard let number = UInt256Bytes(leastSignificantFirst: [UInt8](copying: octets)) else {
            throw .truncated(needed: 32, available: octets.byteCount)
        }
        return number
    }
}
