import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

@Suite("Two security engines under random inputs")
struct SecurityWalkTests {
    private typealias Side = SecuritySide
    private typealias Role = SecurityChannel<SwiftCryptography>.Role

    private static let stranger = DeviceAddress(0xC000_0000_0077, isRandom: true)

    /// Two hosts, and random inputs for them.
    private struct Walk {
        var random: SeededGenerator
        var world: SecurityWorld

        init(seed: UInt64) {
            var random = SeededGenerator(seed: seed)
            // A device with a private address sometimes gives the identity of a stranger when it pairs.
            let privateRole: Role? = [.central, .peripheral, nil, nil, nil, nil].randomElement(using: &random) ?? nil
            let (central, bondsOfCentral) = Walk.host(.central, privateRole, &random)
            let (peripheral, bondsOfPeripheral) = Walk.host(.peripheral, privateRole, &random)
            world = SecurityWorld(central, peripheral, bonds: (bondsOfCentral, bondsOfPeripheral), seed: random.next())
            self.random = random
        }

        /// A host with or without a bond with its peer, and sometimes with one with a stranger.
        private static func host(
            _ role: Role,
            _ privateRole: Role?,
            _ random: inout SeededGenerator
        ) -> (Side, BondDatabase) {
            var bond: Bond?
            switch Int.random(in: 0..<8, using: &random) {
            case 0..<3: bond = Side.bond(role)
            case 3: bond = Side.bond(role, key: LongTermKey(value: 0x77, strength: Side.strength))
            default: break
            }
            if Int.random(in: 0..<8, using: &random) == 0 {
                if role == .central { bond?.centralKey = nil } else { bond?.peripheralKey = nil }
            }
            var records = bond.map { [BondRecord(bond: $0)] } ?? []
            if Bool.random(using: &random) {
                records.append(BondRecord(bond: BondSample.bond(stranger, strength: BondSample.unauthenticated)))
            }
            var database = BondSample.database()
            database.load(HostSecurityState(identity: BondSample.identity, bonds: records))
            var policy = SecurityPolicy()
            for _ in 0..<3 { change(&policy, &random) }
            let hasHandler = Int.random(in: 0..<4, using: &random) > 0
            let isKnown = privateRole == nil || privateRole == role
            var side = Side(
                role,
                privateRole: privateRole,
                bond: isKnown ? bond : nil,
                hasPairingHandler: hasHandler
            ) { $0 = policy }
            if privateRole == role {
                side.context.localIdentity = LocalIdentity(address: stranger, resolvingKey: 7)
            }
            return (side, database)
        }

        /// Changes one property of a policy.
        private static func change(_ policy: inout SecurityPolicy, _ random: inout SeededGenerator) {
            let capabilities = IOCapability.allCases
            switch Int.random(in: 0..<15, using: &random) {
            case 0: policy.encryptsBondedLinks = Int.random(in: 0..<4, using: &random) > 0
            case 1: policy.servesUnverifiedClients.toggle()
            case 2: policy.requestsEncryption.toggle()
            case 3: policy.keyLoss = policy.keyLoss == .fail ? .askToPairAgain : .fail
            case 4: policy.bondReplacement = Bool.random(using: &random) ? .whenConsented : .whenIdentityVerified
            case 5: policy.pairable = Int.random(in: 0..<3, using: &random) > 0 ? .always : .duringWindow
            case 6: policy.justWorks = Bool.random(using: &random) ? .always : .whenStartedHere
            case 7: policy.securesOnDemand.toggle()
            case 8: policy.pairsOnRequest.toggle()
            case 9: policy.bonds = Int.random(in: 0..<3, using: &random) > 0
            case 10: policy.offersSecureConnections.toggle()
            case 11: policy.ioCapability = capabilities.randomElement(using: &random) ?? .noInputNoOutput
            case 12: policy.requiresAuthentication = Int.random(in: 0..<4, using: &random) == 0
            case 13: policy.delaysJustWorksConsent.toggle()
            default:
                let list: Set = [Side.centralAddress, Side.peripheralAddress]
                policy.pairingAcceptList = Int.random(in: 0..<4, using: &random) == 0 ? list : nil
            }
        }

        mutating func step() {
            let role: Role = Bool.random(using: &random) ? .central : .peripheral
            guard !world[role].hasEnded else { return }
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<60: world.deliver(to: world[role].inbox.isEmpty ? world.other(role) : role)
            case 60..<75: answer(role, refusesOften: false)
            case 75..<83: call(role)
            case 83, 84: cancel(role)
            case 85: world.removeBond(role)
            case 86, 87: changePolicy(role)
            case 88..<92: world.advance(.milliseconds(Int.random(in: 0..<4_000, using: &random)))
            case 92: if Int.random(in: 0..<4, using: &random) == 0 { world.advance(.seconds(40)) }
            case 93: if Bool.random(using: &random) { interfere(role) }
            case 94: if Bool.random(using: &random) { world.endEncryption() }
            case 95: world[role].side.context.isPairingWindowOpen.toggle()
            case 96:
                let wait = world[role].side.context.waitOfPeer
                world[role].side.context.waitOfPeer = wait == nil && Bool.random(using: &random) ? .seconds(1) : nil
            case 97: answer(role, refusesOften: true)
            case 98: if Int.random(in: 0..<6, using: &random) == 0 { disconnect(role) }
            default: if Int.random(in: 0..<6, using: &random) == 0 { world.disconnect(.connectionTimeout) }
            }
        }

        private mutating func call(_ role: Role) {
            let required = RequiredSecurity(isAuthenticated: Int.random(in: 0..<5, using: &random) == 0)
            world.call(
                role,
                required,
                isForApp: Bool.random(using: &random),
                pairsAgain: Int.random(in: 0..<4, using: &random) == 0
            )
        }

        private mutating func cancel(_ role: Role) {
            guard let call = world[role].calls.randomElement(using: &random) else { return }
            world.input(role) { $0.cancel(.call(call.token)) }
        }

        private mutating func changePolicy(_ role: Role) {
            var policy = world[role].side.engine.policy
            Walk.change(&policy, &random)
            world.input(role) { $0.engine.setPolicy(policy, &$0.context) }
        }

        private mutating func answer(_ role: Role, refusesOften: Bool) {
            guard let question = world[role].question?.inquiry.question else { return }
            let refuses = Int.random(in: 0..<(refusesOften ? 2 : 12), using: &random) == 0
            switch question {
            case .consent, .compare: world.answer(role, refuses ? .refuse : .accept)
            case .enterPasskey: world.answer(role, refuses ? .refuse : .passkey(world.passkey))
            case .showPasskey: if refuses { world.answer(role, .refuse) }
            }
        }

        /// Makes the peer send a PDU that it should not send.
        private mutating func interfere(_ role: Role) {
            let request: [UInt8] = [0x01, 0x03, 0x00, 0x09, 0x10, 0x01, 0x01]
            let pdus: [[UInt8]] = [request, [0x0B, 0x01], [0x0B, 0x05], [0x05, 0x08], [0x0D], [0x03, 0x00]]
            guard let pdu = pdus.randomElement(using: &random) else { return }
            world.send(.pdu(pdu), to: role)
        }

        /// Makes a host end the link, as if a bond was removed.
        private mutating func disconnect(_ role: Role) {
            let error = HostError.disconnected(.controller(.connectionTerminatedByLocalHost))
            world.input(role) { $0.engine.disconnectionBegan(error, &$0.context) }
            if Bool.random(using: &random) { world.removeBond(role) }
            world.disconnect(.connectionTerminatedByLocalHost)
        }

        /// Makes all deliveries and lets the time pass, until no call waits.
        mutating func settle() {
            for _ in 0..<2_000 {
                if let role = SecurityWorld.roles.first(where: { !world[$0].inbox.isEmpty }) {
                    world.deliver(to: role)
                } else if world.central.calls.isEmpty, world.peripheral.calls.isEmpty {
                    return
                } else if let deadline = world.deadline {
                    world.advance(max(deadline - world.now, .zero))
                } else {
                    return
                }
            }
        }
    }

    @Test("Each call ends once, and no gate opens without encryption", arguments: 1...3 as ClosedRange<UInt64>)
    func eachCallEndsOnce(part: UInt64) {
        var total = SecurityWorld.Counts()
        var states: Set<String> = []
        for seed in part * 1_000..<part * 1_000 + 240 {
            var walk = Walk(seed: seed)
            for step in 0..<300 where !walk.world.hasEnded {
                walk.step()
                guard walk.world.errors.isEmpty else {
                    Issue.record("seed \(seed), step \(step): \(walk.world.errors)")
                    return
                }
            }
            walk.settle()
            #expect(walk.world.central.calls.isEmpty && walk.world.peripheral.calls.isEmpty, "seed \(seed)")
            walk.world.disconnect(.connectionTimeout)
            walk.settle()
            #expect(walk.world.errors == [], "seed \(seed)")
            #expect(walk.world.hasEnded, "seed \(seed)")
            states.formUnion(walk.world.states)
            let counts = walk.world.counts
            total.paired += counts.paired
            total.failedPairings += counts.failedPairings
            total.verified += counts.verified
            total.succeeded += counts.succeeded
            total.failed += counts.failed
            total.disconnections += counts.disconnections
            total.questionsOfReplacement += counts.questionsOfReplacement
        }
        // The walk means something only if it gets everywhere.
        #expect(states.count == 7, "\(states)")
        #expect(total.paired > 20 && total.failedPairings > 20 && total.verified > 20, "\(total)")
        #expect(total.succeeded > 20 && total.failed > 20 && total.disconnections > 0, "\(total)")
        #expect(total.questionsOfReplacement > 0, "\(total)")
    }
}
