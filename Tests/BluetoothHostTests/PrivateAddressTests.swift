import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// A peer without a bond.
private let stranger = DeviceAddress(0xC0FF_EE00_0002, isRandom: true)

@Suite("The private address of a host")
struct PrivateAddressTests {
    private func addresses(_ fixture: HostFixture) -> [DeviceAddress] {
        fixture.controller.commands.compactMap { $0.decode(LESetRandomAddress.self)?.randomAddress }
    }

    @Test func privateAddressIsReplacedAfterItsTimeAgainAndAgain() throws {
        let fixture = HostFixture { $0.usesPrivateAddresses = true }
        try fixture.bringUp()
        fixture.loop.run(for: .seconds(899))
        #expect(addresses(fixture).isEmpty)
        fixture.loop.run(for: .seconds(2))
        #expect(addresses(fixture).count == 1)
        fixture.loop.run(for: .seconds(900))
        #expect(Set(addresses(fixture)).count == 2)
    }

    @Test("A host closes although the time ends while its last link does not end", .timeLimit(.minutes(10)))
    func hostClosesThoughTheAddressExpiresMeanwhile() throws {
        let fixture = HostFixture {
            $0.usesPrivateAddresses = true
            $0.privateAddressTimeout = .seconds(1)
        }
        try fixture.bringUp()
        fixture.connect()
        fixture.loop.run(for: .milliseconds(500))
        // The controller answers and reports no end of the link, for which the host waits a second.
        fixture.controller.override = { $0.opcode == Disconnect.opcode ? ScriptedController.status($0.opcode) : nil }
        let host = fixture.host
        let start = fixture.loop.now
        try fixture.run { await host.close() }
        #expect(fixture.loop.now - start >= .seconds(1))
    }

    /// How the encryption of a link fails.
    enum Failure: CaseIterable {
        /// The controller reports that the key is missing.
        case keyMissing
        /// The link ends, because a packet could not be decrypted.
        case undecryptedPacket
        /// This host has no key.
        case refusedKey
    }

    @Test("A failed encryption has the address replaced, once for each link", arguments: Failure.allCases)
    func failedEncryptionHasTheAddressReplaced(failure: Failure) throws {
        let security = try SecurityFixture { $0.usesPrivateAddresses = true }
        try security.connect(.peripheral, peer: failure == .refusedKey ? stranger : SecurityFixture.peer)
        func fail() {
            security.requestKey()
            switch failure {
            case .keyMissing: security.encryptionChanged(.pinOrKeyMissing)
            case .undecryptedPacket: security.disconnected(.connectionTerminatedDueToMICFailure)
            case .refusedKey: break
            }
            security.advance(.seconds(1))
        }
        #expect(addresses(security.fixture).isEmpty)
        fail()
        #expect(addresses(security.fixture).count == 1)
        if failure != .undecryptedPacket {
            fail()
            #expect(addresses(security.fixture).count == 1)
            security.disconnected()
        }
        try security.connect(.peripheral)
        #expect(addresses(security.fixture).isEmpty)
        security.requestKey()
        security.encryptionChanged()
        security.advance(.seconds(1))
        #expect(addresses(security.fixture).isEmpty, "this encryption has succeeded")
    }

    @Test("A failed encryption of a host without private addresses replaces none")
    func failedEncryptionReplacesNoIdentityAddress() throws {
        let security = try SecurityFixture()
        try security.connect(.peripheral)
        security.requestKey()
        security.encryptionChanged(.pinOrKeyMissing)
        security.advance(.seconds(1))
        #expect(addresses(security.fixture).isEmpty)
    }

    @Test func timeOfTheAddressBeginsAgainAfterAReset() throws {
        let fixture = HostFixture { $0.usesPrivateAddresses = true }
        try fixture.bringUp()
        fixture.loop.run(for: .seconds(600))
        // A hardware error.
        fixture.controller.emit([0x04, 0x10, 0x01, 0x42])
        fixture.loop.run(for: .seconds(10))
        #expect(fixture.events.all.last == "poweredOn")
        #expect(addresses(fixture).count == 1)
        fixture.loop.run(for: .seconds(880))
        #expect(addresses(fixture).count == 1)
        fixture.loop.run(for: .seconds(20))
        #expect(addresses(fixture).count == 2)
    }
}
