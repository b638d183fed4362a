import BLEATT
import BLEGATT
import BLEHCI
import BLEL2CAP
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// A bond with keys for the other role only: LE legacy pairing gives each role its own key (Vol 3, Part H, 2.4.2.3).
/// Another device may have the peer's address (BLESA).
@Suite("A bond without a key for this role")
struct KeyOfOtherRoleTests {
    private static func bond(for role: BLEHCI.Role) -> Bond {
        var bond = SecurityFixture.bond()
        let strength = KeyStrength(isAuthenticated: false, isSecureConnections: false, keySize: 16)
        let key = LongTermKey(value: 0x4711, encryptedDiversifier: 7, randomNumber: 9, strength: strength)
        bond.centralKey = role == .central ? key : nil
        bond.peripheralKey = role == .central ? nil : key
        return bond
    }

    @Test("The central's requests to the peer end, and values from the peer are not trusted")
    func centralDoesNotTrustThePeer() throws {
        let fixture = try SecurityFixture(bond: Self.bond(for: .peripheral))
        let link = try fixture.connect(.central)
        let values = Recorder<[UInt8]>()
        _ = try fixture.run { try $0.addSubscriber(of: 0x0009, on: link) { values.append($0.value) } }
        let read = fixture.start { try await $0.perform(ReadValue(handle: 0x0009), on: link) }
        let write = fixture.start { try await $0.writeWithoutResponse([1], to: 0x0009, on: link) }
        fixture.advance(.milliseconds(1))
        #expect(throws: HostError.security(.keyMissing)) { try read.all.first?.get() }
        #expect(throws: HostError.security(.keyMissing)) { try write.all.first?.get() }
        #expect(read.all.count == 1 && write.all.count == 1)
        #expect(throws: HostError.security(.keyMissing)) {
            try fixture.run { try $0.beginOpeningChannel(to: SPSM(rawValue: 0x80), on: link) { _ in nil } }
        }
        #expect(fixture.exchange([0x1B, 0x09, 0x00, 0x55]).isEmpty)
        #expect(values.all.isEmpty)
        #expect(fixture.sent(on: 4).isEmpty && fixture.sent(on: 5).isEmpty)
        #expect(fixture.sent(on: 6).isEmpty, "no pairing begins by itself")
        #expect(fixture.count(LEEnableEncryption.self) == 0)
    }

    @Test("The peripheral's requests, as a client of the central, wait")
    func peripheralDoesNotTrustThePeer() throws {
        let fixture = try SecurityFixture(bond: Self.bond(for: .central))
        let link = try fixture.connect(.peripheral)
        let values = Recorder<[UInt8]>()
        _ = try fixture.run { try $0.addSubscriber(of: 0x0009, on: link) { values.append($0.value) } }
        let read = fixture.start { try await $0.perform(ReadValue(handle: 0x0009), on: link) }
        fixture.advance(.milliseconds(1))
        #expect(throws: HostError.self) { try read.all.first?.get() }
        #expect(read.all.count == 1)
        #expect(fixture.exchange([0x1B, 0x09, 0x00, 0x55]).isEmpty)
        #expect(values.all.isEmpty)
        #expect(fixture.sent(on: 4).isEmpty)
    }

    @Test("The bond is replaced if the app pairs")
    func bondIsReplacedIfTheAppPairs() throws {
        let encounter = try Encounter(.central, bond: Self.bond(for: .peripheral))
        encounter.settle()
        #expect(encounter.heard.isEmpty, "no pairing begins by itself")
        #expect(encounter.heardAttributePDUs.isEmpty)
        let call = try encounter.require()
        encounter.settle()
        #expect(try call.all.first?.get() != nil)
        let bonds = try encounter.run { $0.bondRecords().map(\.bond) }
        #expect(bonds.count == 1 && bonds.first?.centralKey != nil)
        #expect(
            encounter.heardAttributePDUs == [[0x02, 0x05, 0x02]],
            "ATT_MTU is exchanged once the link is encrypted"
        )
    }

    @Test("The bond is replaced with the delegate's consent if the policy is to pair again", arguments: [true, false])
    func bondIsReplacedWithConsentIfThePolicyPairsAgain(hasDelegate: Bool) throws {
        let encounter = try Encounter(.central, bond: Self.bond(for: .peripheral), meets: false) {
            $0.security.keyLoss = .askToPairAgain
        }
        let inquiries = Recorder<PairingInquiry>()
        if hasDelegate {
            try encounter.run {
                $0.setPairingHandler { inquiry, answer in
                    inquiries.append(inquiry)
                    answer(.accept)
                    return {}
                }
            }
        }
        encounter.meet(forgetsData: false)
        encounter.settle()
        #expect(encounter.heard.isEmpty == !hasDelegate)
        #expect(inquiries.all.contains { $0.replaces != nil } == hasDelegate)
        #expect(inquiries.all.allSatisfy { !$0.isIdentityVerified })
    }

    @Test("Outside the pairing window, a central that claims to be bonded cannot pair")
    func windowHoldsForClaimedIdentities() throws {
        let encounter = try Encounter(.peripheral, bond: Self.bond(for: .central)) {
            $0.security.pairable = .duringWindow
            $0.security.justWorks = .always
        }
        try encounter.run {
            $0.setPairingHandler { _, answer in
                answer(.accept)
                return {}
            }
        }
        let host = encounter.host
        let read = encounter.fixture.start {
            let link = try #require(await host.linkIdentifiers().first)
            _ = try await host.perform(ReadValue(handle: 0x0009), on: link)
        }
        // After 5 s the central would be asked to encrypt the link, if it could.
        encounter.fixture.loop.run(for: .seconds(6))
        encounter.settle()
        #expect(encounter.heard.isEmpty, "no Security Request is sent, because no pairing may begin")
        #expect(throws: HostError.security(.refused("the pairing window is closed"))) { try read.all.first?.get() }
        #expect(read.all.count == 1)
        encounter.pair()
        #expect(encounter.heard == [[0x05, 0x05]])
        #expect(encounter.outcome == nil)
        #expect(try encounter.run { $0.links.values.first?.security.securityManager.isClosed } == false)
        #expect(try encounter.run { $0.bondRecords().map(\.bond) } == [Self.bond(for: .central)])
    }

    @Test("No channel is requested, as with a key that the policy refuses")
    func channelsWaitForVerification() throws {
        let fixture = try SecurityFixture { $0.security.requiresAuthentication = true }
        let link = try fixture.connect(.central)
        #expect(throws: HostError.self) {
            try fixture.run { try $0.beginOpeningChannel(to: SPSM(rawValue: 0x80), on: link) { _ in nil } }
        }
        fixture.advance(.milliseconds(1))
        #expect(fixture.sent(on: 5).isEmpty)
    }
}
