import BLE
import BLEHCI
import BLESMP
import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BluetoothHost

private let connection: ConnectionHandle = 0x0040

@Suite("A pairing that would replace a bond")
struct BondReplacementTests {
    private static let strength = KeyStrength(isAuthenticated: false, isSecureConnections: true, keySize: 16)
    private static let bonded: Bond = {
        var bond = Bond(identity: Encounter.peerAddress)
        bond.centralKey = LongTermKey(value: 0x1234, strength: strength)
        bond.peripheralKey = bond.centralKey
        return bond
    }()

    /// The Security Requests of a peripheral that wants a bond, without and with authentication.
    private static let (securityRequest, authenticatedRequest): ([UInt8], [UInt8]) = ([0x0B, 0x01], [0x0B, 0x05])
    private static let pairingNotSupported: [UInt8] = [0x05, 0x05]

    /// A peer with a bond whose key is not authenticated.
    ///
    /// - Parameter encryptsAtOnce: whether a central verifies the peer's identity before anything else.
    private func encounter(
        _ role: BLEHCI.Role,
        _ replacement: SecurityPolicy.BondReplacement = .whenConsented,
        encryptsAtOnce: Bool = true,
        inquiries: Recorder<PairingInquiry>? = nil
    ) throws -> (Encounter, Recorder<SecurityEvent>) {
        let encounter = try Encounter(role, bond: Self.bonded, meets: false) {
            $0.security.ioCapability = .displayYesNo
            $0.security.justWorks = .always
            $0.security.bondReplacement = replacement
            $0.security.encryptsBondedLinks = encryptsAtOnce
        }
        if let inquiries {
            try encounter.run {
                $0.setPairingHandler { inquiry, answer in
                    inquiries.append(inquiry)
                    answer(.accept)
                    return {}
                }
            }
        }
        let events = Recorder<SecurityEvent>()
        _ = try encounter.run { $0.observeSecurity { events.append($0) } }
        encounter.expectedKey = Self.bonded.centralKey
        encounter.peer.parameters.ioCapability = .displayYesNo
        encounter.meet()
        encounter.settle()
        return (encounter, events)
    }

    private func pairings(_ events: Recorder<SecurityEvent>) -> Int {
        events.all.count { if case .pairingStarted = $0 { true } else { false } }
    }

    @Test(
        "A central does not answer a Security Request with a pairing that it would refuse itself",
        arguments: [true, false]
    )
    func centralBeginsNoPairingThatItWouldRefuseItself(isVerified: Bool) throws {
        let (encounter, events) = try encounter(.central, encryptsAtOnce: isVerified)
        encounter.send(Self.authenticatedRequest)
        encounter.settle()
        #expect(encounter.heard == [Self.pairingNotSupported])
        #expect(pairings(events) == 0)
        let strength = try encounter.run { $0.links[connection]?.security.strength }
        #expect(strength == (isVerified ? Self.strength : nil))
        #expect(try encounter.run { $0.bondRecords().map(\.bond) } == [Self.bonded])
        #expect(try encounter.run { $0.pairing.attempts.wait(for: Encounter.peerAddress, at: $0.loop.now) } == nil)
    }

    @Test("A central still answers a Security Request by encryption if the bond's key is sufficient")
    func centralStillEncryptsIfTheKeyOfTheBondIsSufficient() throws {
        for replacement in [SecurityPolicy.BondReplacement.whenConsented, .whenIdentityVerified, .never] {
            let (encounter, events) = try encounter(.central, replacement, encryptsAtOnce: false)
            // A requirement that it cannot fulfil does not prevent encryption with the bond's key.
            encounter.send(Self.authenticatedRequest)
            encounter.settle()
            encounter.send(Self.securityRequest)
            encounter.settle()
            #expect(encounter.heard == [Self.pairingNotSupported])
            #expect(pairings(events) == 0)
            #expect(try encounter.run { $0.links[connection]?.security.strength } == Self.strength)
        }
    }

    @Test(
        "The policy decides whether the delegate is asked and a pairing begins",
        arguments: [
            (.whenConsented, true, true), (.whenConsented, false, true), (.whenIdentityVerified, true, true),
            (.whenIdentityVerified, false, false), (.never, true, false), (.never, false, false),
        ] as [(SecurityPolicy.BondReplacement, Bool, Bool)]
    )
    func policyDecidesWhetherTheDelegateIsAsked(
        replacement: SecurityPolicy.BondReplacement,
        isVerified: Bool,
        begins: Bool
    ) throws {
        let inquiries = Recorder<PairingInquiry>()
        let (encounter, events) = try encounter(.central, replacement, encryptsAtOnce: isVerified, inquiries: inquiries)
        encounter.send(Self.authenticatedRequest)
        encounter.settle()
        #expect(encounter.heard.first?.first == (begins ? 0x01 : 0x05))
        #expect(pairings(events) == (begins ? 1 : 0))
        #expect(inquiries.all.first?.replaces == (begins ? Self.strength : nil))
    }

    @Test("A peripheral refuses the Pairing Request before any exchange, however often it arrives")
    func peripheralRefusesThePairingRequestBeforeAnyExchange() throws {
        let inquiries = Recorder<PairingInquiry>()
        for (replacement, asks) in [(SecurityPolicy.BondReplacement.whenConsented, false), (.never, true)] {
            let (encounter, events) = try encounter(.peripheral, replacement, inquiries: asks ? inquiries : nil)
            encounter.pair()
            encounter.pair()
            #expect(encounter.heard == [Self.pairingNotSupported, Self.pairingNotSupported])
            #expect(pairings(events) == 0 && inquiries.all.isEmpty)
            #expect(encounter.requestKey(try #require(Self.bonded.peripheralKey)) == 0x1234, "it can still encrypt")
        }
    }

    @Test("A pairing that the app requests begins on a peripheral, whatever the policy for replacing bonds")
    func pairingRequestedByTheAppBeginsWhateverThePolicy() throws {
        let (encounter, events) = try encounter(.peripheral, .never)
        let call = try encounter.require(pairsAgain: true)
        encounter.settle()
        encounter.pair()
        #expect(pairings(events) == 1)
        #expect(call.all.count == 1)
    }

    @Test("A value that needs a stronger key is refused without a pairing if nobody can consent")
    func strongerKeyOnDemandIsRefusedIfNobodyCanConsent() throws {
        try LockAndPhone.run { world in
            let devices = try await LockAndPhone(in: world, lock: { $0.security.justWorks = .always })
            let peer = try await devices.connect()
            try await peer.pair()
            while devices.lockEvents.results.isEmpty { try await world.sleep(for: .milliseconds(10)) }
            var policy = SecurityPolicy()
            policy.ioCapability = .displayYesNo
            policy.justWorks = .always
            await devices.lock.setSecurityPolicy(policy)
            await devices.phone.setSecurityPolicy(policy)
            devices.phoneEvents.clear()
            devices.lockEvents.clear()
            let handle = try devices.handle(LockAndPhone.authenticated)
            await #expect(throws: BLEError.self) { try await peer.read(handle) }
            #expect(await peer.security?.isAuthenticated == false)
            for event in devices.phoneEvents.all + devices.lockEvents.all {
                if case .pairingStarted = event { Issue.record("a pairing has begun") }
            }
            #expect(try await peer.read(devices.handle(LockAndPhone.encrypted)) == [0x2A])
        }
    }
}
