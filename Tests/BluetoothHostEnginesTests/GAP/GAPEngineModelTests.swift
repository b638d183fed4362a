import BLEHCI
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// Random calls of apps, changes of bonds and resets, with a controller that refuses what the specification does not
/// allow.
@Suite("The plans of GAP together under random changes")
struct GAPEngineModelTests {
    private struct Model: ~Copyable {
        var random: SeededGenerator
        var world: GAPWorld
        var scans: Set<UInt64> = []
        var attempts: [UInt64: DeviceAddress] = [:]
        var advertisements: Set<UInt64> = []
        var count: UInt64 = 0

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            world = .on(
                isPrivate: Bool.random(using: &random),
                listSize: Bool.random(using: &random) ? 2 : 0,
                canScanWhileInitiating: Bool.random(using: &random),
                isExtended: Bool.random(using: &random),
                hasCodedPHY: Bool.random(using: &random)
            )
            world.controller.refusesCoded = Bool.random(using: &random)
        }

        private var isExtended: Bool { world.information.usesExtendedCommands }

        mutating func step() throws {
            count += 1
            switch Int.random(in: 0..<40, using: &random) {
            case 0..<3:
                let phys: PHYSet = [.le1M, .leCoded, [.le1M, .leCoded]].randomElement(using: &random) ?? .le1M
                scans.insert(count)
                world.startScan(count, ScanOptions(phys: phys))
            case 3..<6:
                guard let scan = scans.sorted().first else { return }
                scans.remove(scan)
                world.stopScan(scan)
            case 6..<9 where attempts.count < 6: connect()
            case 9..<12:
                guard let attempt = attempts.keys.sorted().first else { return }
                attempts[attempt] = nil
                world.perform(world.engine.endAttempt(attempt, .cancelled, world.context))
            case 12..<14: try toggleAdvertising()
            case 14..<24: world.pass()
            case 24..<34: world.reply()
            case 34: world.bond((1...3).filter { _ in Bool.random(using: &random) })
            case 35: world.advance(by: .seconds(Int.random(in: 1...60, using: &random)))
            case 36: world.advance(by: .seconds(900))
            case 37: meet()
            case 38: connected()
            default: if Int.random(in: 0..<4, using: &random) == 0 { reset() }
            }
            removeEndedScans()
        }

        /// Only scans on LE Coded alone end, if the controller refuses this PHY.
        private mutating func removeEndedScans() {
            for case .endScan(let scan, let error) in world.takeEffects() {
                #expect(world.controller.refusesCoded && world.information.canUseCodedPHY)
                #expect(error == .command(.status(GAPController.codedRefusal, LESetExtendedScanParameters.opcode)))
                scans.remove(scan.value)
            }
        }

        private mutating func connect() {
            let number = UInt64.random(in: 1...5, using: &random)
            let peer = number > 3 ? GAPSample.address(number) : AddressPlanFixture.peer(number)
            attempts[count] = peer
            world.connect(count, to: peer)
            // As if a scan had received the peer on LE Coded.
            let last = world.engine.connecting.attempts.count - 1
            world.engine.connecting.attempts[last].usesCodedPHY = Bool.random(using: &random)
        }

        private mutating func toggleAdvertising() throws {
            let number: UInt64 = isExtended ? .random(in: 1...2, using: &random) : 1
            if advertisements.remove(number) != nil {
                world.perform(world.engine.stopAdvertising(AdvertisementIdentifier(value: number), world.context))
                world.settle()
            } else {
                try world.advertise(number)
                advertisements.insert(number)
            }
        }

        /// Has the scan receive a peer that uses a private address.
        private mutating func meet() {
            guard world.controller.scan.isOn else { return }
            let number = UInt64.random(in: 1...3, using: &random)
            let address = DeviceAddress(0x4000_0000_0000 + number, isRandom: true)
            world.perform(world.engine.resolved(AddressPlanFixture.peer(number), at: address, world.context))
        }

        /// Has the controller make a connection to a peer that it initiates to, which ends soon.
        private mutating func connected() {
            guard case .initiating(let addresses) = world.controller.initiator.state,
                let address = addresses.inOrder.first,
                world.pending.isEmpty
            else { return }
            world.controller.initiator.state = .idle
            let number = address.isRandom ? address.value & 0xF : 0
            let isPrivate = address.kind == .resolvablePrivate
            let peers: Set = isPrivate ? [address, AddressPlanFixture.peer(number)] : [address]
            attempts = attempts.filter { !peers.contains($0.value) }
            let link = GAPWorld.link(0x40)
            world.perform(world.engine.linkBegan(link, asCentral: true, with: peers, world.context))
            world.perform(world.engine.linkEnded(link, with: peers, world.context))
        }

        private mutating func reset() {
            world.reset()
            world.bringUp()
        }

        mutating func settle() {
            world.settle()
            // Each activity had a turn by then, and has one again.
            for _ in 0..<4 where !hasWantedState {
                world.advance(by: ConnectionPlan.turnDuration)
                world.settle()
            }
            removeEndedScans()
        }

        private var isResolving: Bool { world.engine.needsResolutionScan }

        private var hasWantedState: Bool {
            let controller = world.controller
            let isScanWanted = !scans.isEmpty || isResolving
            let isInitiationWanted = attempts.values.contains { !world.engine.addresses.mustBeResolvedByScan($0) }
            let isSharing = !controller.canScanWhileInitiating && isScanWanted && isInitiationWanted
            let isInitiating = controller.initiator.state != .idle
            if isSharing { return controller.scan.isOn != isInitiating }
            return controller.scan.isOn == isScanWanted && (isInitiating || !isInitiationWanted)
        }

        func check() {
            #expect(world.violations.isEmpty)
            #expect(hasWantedState)
            #expect(world.controller.advertisementCount == advertisements.count)
            #expect(world.engine.addresses.hold == .nothing && !world.engine.addresses.awaitsRest)
            #expect(world.controller.randomAddress == world.engine.addresses.randomAddress)
            #expect(world.controller.scan.agrees(with: world.engine.scanning.controller))
            #expect(world.controller.initiator.agrees(with: world.engine.connecting.controller))
            #expect(Set(world.engine.connecting.attempts.map(\.identifier)) == Set(attempts.keys))
        }
    }

    @Test("The controller does what is wanted and never refuses", arguments: 0..<20)
    func randomChanges(group: UInt64) throws {
        for seed in group * 20..<group * 20 + 20 {
            var model = Model(seed: seed)
            for _ in 0..<300 { try model.step() }
            model.settle()
            model.check()
        }
    }
}
