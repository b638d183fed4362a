import BLEByteCoding
import BLESMP
import BluetoothTypes
import Testing

private let key: UInt128 = 0x0F0E_0D0C_0B0A_0908_0706_0504_0302_0100
private let keyBytes: [UInt8] = Array(0x00...0x0F)

private let features = PairingFeatures(
    ioCapability: .keyboardDisplay,
    hasOutOfBandData: true,
    authenticationRequirements: [.bonding, .authentication, .secureConnections],
    maximumKeySize: 16,
    initiatorKeys: [.encryption, .identity],
    responderKeys: [.identity, .signing]
)

private func number(_ octets: ClosedRange<UInt8>) -> UInt256Bytes {
    guard let number = UInt256Bytes(leastSignificantFirst: Array(octets)) else { fatalError("not 32 bytes") }
    return number
}

private let samples: [(octets: [UInt8], pdu: SecurityManagerPDU)] = [
    ([0x01, 4, 1, 0x0D, 16, 3, 6], .pairingRequest(PairingRequest(features: features))),
    ([0x02, 4, 1, 0x0D, 16, 3, 6], .pairingResponse(PairingResponse(features: features))),
    ([0x03] + keyBytes, .pairingConfirm(PairingConfirm(value: key))),
    ([0x04] + keyBytes, .pairingRandom(PairingRandom(value: key))),
    ([0x05, 0x0A], .pairingFailed(PairingFailed(reason: .invalidParameters))),
    ([0x05, 0xEE], .pairingFailed(PairingFailed(reason: PairingFailedReason(rawValue: 0xEE)))),
    ([0x06] + keyBytes, .encryptionInformation(EncryptionInformation(longTermKey: key))),
    (
        [0x07, 0x34, 0x12, 1, 2, 3, 4, 5, 6, 7, 8],
        .centralIdentification(
            CentralIdentification(encryptedDiversifier: 0x1234, randomNumber: 0x0807_0605_0403_0201)
        )
    ),
    ([0x08] + keyBytes, .identityInformation(IdentityInformation(resolvingKey: key))),
    (
        [0x09, 0x00, 0x56, 0x34, 0x12, 0xDC, 0x1B, 0x00],
        .identityAddressInformation(
            IdentityAddressInformation(address: DeviceAddress(0x001B_DC12_3456, isRandom: false))
        )
    ),
    (
        [0x09, 0x01, 0x56, 0x34, 0x12, 0xDC, 0x1B, 0xC0],
        .identityAddressInformation(
            IdentityAddressInformation(address: DeviceAddress(0xC01B_DC12_3456, isRandom: true))
        )
    ),
    (
        [0x09, 0x00, 0, 0, 0, 0, 0, 0],
        .identityAddressInformation(IdentityAddressInformation(address: DeviceAddress(0, isRandom: false)))
    ),
    (
        [0x09, 0x01, 0, 0, 0, 0, 0, 0],
        .identityAddressInformation(IdentityAddressInformation(address: DeviceAddress(0, isRandom: true)))
    ),
    ([0x0A] + keyBytes, .signingInformation(SigningInformation(signatureKey: key))),
    ([0x0B, 0x05], .securityRequest(SecurityRequest(authenticationRequirements: [.bonding, .authentication]))),
    (
        [0x0C] + Array(0x00...0x3F),
        .pairingPublicKey(PairingPublicKey(key: P256PublicKey(x: number(0x00...0x1F), y: number(0x20...0x3F))))
    ),
    ([0x0D] + keyBytes, .pairingDHKeyCheck(PairingDHKeyCheck(value: key))),
    ([0x0E, 0x04], .keypressNotification(KeypressNotification(kind: .entryCompleted))),
]

private func decode(_ octets: [UInt8]) throws(PacketDecodingError) -> SecurityManagerPDU {
    try SecurityManagerPDU(decoding: octets.rawSpan)
}

private func error(of octets: [UInt8]) -> PacketDecodingError? {
    do throws(PacketDecodingError) {
        _ = try decode(octets)
        return nil
    } catch {
        return error
    }
}

@Suite("A PDU of the Security Manager Protocol")
struct PDUTests {
    @Test(arguments: samples.indices)
    func pduIsDecodedAndEncodedByteByByte(index: Int) throws {
        let (octets, pdu) = samples[index]
        #expect(try decode(octets) == pdu)
        #expect(PacketBuffer.bytes { pdu.encode(into: &$0) } == octets)
    }

    @Test func everyCodeHasASample() {
        #expect(Set(samples.compactMap { $0.octets.first }) == Set(CommandCode.allCases.map(\.rawValue)))
    }

    @Test(arguments: samples.indices)
    func truncatedOrOverlongPDUIsRefused(index: Int) {
        let octets = samples[index].octets
        for length in octets.indices {
            guard case .truncated = error(of: Array(octets.prefix(length))) else {
                Issue.record("\(length) bytes were read")
                continue
            }
        }
        #expect(error(of: octets + [0]) == .trailingBytes(count: 1))
    }

    @Test(
        arguments: [
            ([0x00], .invalidValue(0, field: "SMP code")),
            ([0x0F, 1], .invalidValue(0x0F, field: "SMP code")),
            ([0x01, 5, 0, 0, 16, 0, 0], .invalidValue(5, field: "IO capability")),
            ([0x01, 0, 2, 0, 16, 0, 0], .invalidValue(2, field: "OOB data flag")),
            ([0x02, 0, 0, 0, 6, 0, 0], .invalidValue(6, field: "maximum encryption key size")),
            ([0x02, 0, 0, 0, 17, 0, 0], .invalidValue(17, field: "maximum encryption key size")),
            ([0x0E, 5], .invalidValue(5, field: "notification type")),
            ([0x09, 2, 1, 0, 0, 0, 0, 0xC0], .invalidValue(2, field: "address type")),
            ([0x09, 1, 1, 0, 0, 0, 0, 0x00], .invalidValue(0x0000_0000_0001, field: "identity address")),
            ([0x09, 1, 1, 0, 0, 0, 0, 0x40], .invalidValue(0x4000_0000_0001, field: "identity address")),
            ([0x09, 1, 1, 0, 0, 0, 0, 0x80], .invalidValue(0x8000_0000_0001, field: "identity address")),
        ] as [([UInt8], PacketDecodingError)]
    )
    func undefinedValueIsRefused(octets: [UInt8], expected: PacketDecodingError) {
        #expect(error(of: octets) == expected)
    }

    /// Reserved bits are part of the confirm values.
    @Test func reservedBitsAreKept() throws {
        let octets: [UInt8] = [0x01, 0, 0, 0xFE, 16, 0xF0, 0xF8]
        guard case .pairingRequest(let request) = try decode(octets) else {
            Issue.record("no Pairing Request")
            return
        }
        #expect(PacketBuffer.bytes { request.encode(into: &$0) } == octets)
        #expect(!request.features.authenticationRequirements.bonds)
    }
}
