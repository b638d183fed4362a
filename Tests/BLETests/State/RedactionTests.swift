import BLE
import BLESMP
import BluetoothHost
import BluetoothTypes
import Testing

@testable import BLE

@Suite("Keys in descriptions and reflections")
struct RedactionTests {
    private static let secret: UInt128 = 0x5EC2_E75E_C2E7_5EC2_E75E_C2E7_5EC2_E75E
    private static let octets = [UInt8](repeating: 0xE7, count: 32)

    private static var bond: Bond {
        var bond = Bond(identity: DeviceAddress(0xF000_0000_0002, isRandom: true))
        let key = LongTermKey(
            value: secret,
            strength: KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 16)
        )
        bond.centralKey = key
        bond.peripheralKey = key
        bond.identityResolvingKey = secret
        bond.peerSigningKey = SigningKey(value: secret, isAuthenticated: true, nextCounter: 7)
        bond.ownSigningKey = bond.peerSigningKey
        return bond
    }

    private static var security: HostSecurityState {
        HostSecurityState(
            identity: HostIdentity(
                staticAddress: DeviceAddress(0xC000_0000_0001, isRandom: true),
                resolvingKey: secret
            ),
            bonds: [BondRecord(bond: bond)]
        )
    }

    private static var policies: [SecurityPolicy] {
        var random = SecurityPolicy()
        random.ownOutOfBandData = .temporaryKey(secret)
        random.peerOutOfBandData = .secureConnections(confirm: secret, random: secret)
        var key = SecurityPolicy()
        if let value = UInt256Bytes(leastSignificantFirst: octets) {
            key.ownOutOfBandData = .secureConnections(privateKey: P256PrivateKey(value), random: secret)
        }
        return [random, key]
    }

    private static var values: [Any] {
        var configuration = Adapter.Configuration()
        configuration.security = policies[1]
        let strength = KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 16)
        let outcome = PairingOutcome(model: .justWorks, strength: strength, bond: bond, isBonded: true)
        return [
            bond, bond.centralKey as Any, bond.peerSigningKey as Any, BondRecord(bond: bond), security,
            BondExport(host: "hci0", security: security), BondEntry(record: BondRecord(bond: bond)),
            LocalIdentity(address: bond.identity, resolvingKey: secret), outcome, PairingStep.completed(outcome),
            PairingStep.send([6] + octets), configuration, EncryptionInformation(longTermKey: secret),
            IdentityInformation(resolvingKey: secret), SigningInformation(signatureKey: secret),
        ] + policies
    }

    @Test("Keys are redacted in all texts that Swift makes of a value", arguments: 0..<values.count)
    func keysAreRedacted(index: Int) {
        let value = Self.values[index]
        var dumped = ""
        dump(value, to: &dumped)
        for text in ["\(value)", String(reflecting: value), String(describing: [value]), dumped] {
            #expect(!text.contains("\(Self.secret)"))
            #expect(!text.lowercased().contains(String(Self.secret, radix: 16)))
            #expect(!text.contains("231, 231"))
            #expect(!dumped.contains("231\n"))
        }
    }

    @Test("Values that are not secret are shown")
    func restIsShown() {
        #expect("\(Self.bond)".contains("F0:00:00:00:00:02"))
        #expect("\(Self.bond)".contains("redacted"))
        #expect("\(BondRecord(bond: Self.bond))".contains("nextCounter: 7"))
        #expect("\(Self.policies[0])".contains("temporaryKey"))
    }
}
