import BLEGATT
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// Secure Connections Only mode (Vol 3, Part C, 10.2.4).
@Suite("Secure Connections Only mode")
struct SecureConnectionsOnlyTests {
    @Test("One setting enables all its requirements")
    func oneSettingEnablesAllRequirements() {
        var policy = SecurityPolicy()
        #expect(!policy.isSecureConnectionsOnly)
        policy.minimumKeySizeInBytes = 7
        policy.allowsDebugKeys = true
        policy.offersSecureConnections = false
        policy.isSecureConnectionsOnly = true
        #expect(policy.isSecureConnectionsOnly && policy.offersSecureConnections && !policy.allowsDebugKeys)
        #expect(policy.requiresSecureConnections && policy.requiresAuthentication && policy.minimumKeySizeInBytes == 16)
        for strength in [
            KeyStrength(isAuthenticated: false, isSecureConnections: true, keySize: 16),
            KeyStrength(isAuthenticated: true, isSecureConnections: false, keySize: 16),
            KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 15),
        ] {
            #expect(!policy.accepts(strength))
        }
        #expect(policy.accepts(KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 16)))
        policy.isSecureConnectionsOnly = false
        #expect(!policy.requiresSecureConnections && !policy.requiresAuthentication)
    }

    @Test(
        "Just Works and LE legacy pairing are refused",
        arguments: [
            ([0x01, 0x03, 0x00, 0x0D, 0x10, 0x00, 0x00], 0x03),
            ([0x01, 0x04, 0x00, 0x05, 0x10, 0x00, 0x00], 0x03),
        ] as [([UInt8], UInt8)]
    )
    func weakPairingIsRefused(request: [UInt8], reason: UInt8) throws {
        let fixture = try SecurityFixture(bond: nil) {
            $0.security.isSecureConnectionsOnly = true
            $0.security.ioCapability = .displayYesNo
        }
        try fixture.connect(.peripheral)
        #expect(fixture.exchangeSecurity(request) == [[0x05, reason]])
    }

    @Test("Keys of weaker earlier bonds are not used, and signed writes are ignored")
    func weakBondsAreNotUsed() throws {
        let fixture = try SecurityFixture { $0.security.isSecureConnectionsOnly = true }
        let link = try fixture.connect(.peripheral)
        fixture.requestKey()
        #expect(fixture.count(LELongTermKeyRequestNegativeReply.self) == 1)
        try fixture.run { host in
            guard var record = host.bonds[SecurityFixture.peer] else {
                Issue.record("there is no bond")
                return
            }
            record.bond.peerSigningKey = SigningKey(value: 7, isAuthenticated: true)
            record.bond.ownSigningKey = SigningKey(value: 8, isAuthenticated: true)
            try host.importBond(record)
        }
        #expect(throws: HostError.self) {
            let host = fixture.host
            try fixture.fixture.run { try await host.writeSigned([1], to: 9, on: link) }
        }
    }
}
