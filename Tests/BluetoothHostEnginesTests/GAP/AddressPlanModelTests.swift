import BLEHCI
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// Random bonds, addresses and replies, with a simulated controller.
@Suite("The plan for addresses under random changes")
struct AddressPlanModelTests {
    private struct Controller {
        var randomAddress: DeviceAddress?
        var list: [DeviceAddress: ResolvingList.Entry] = [:]
        var isResolving = false
        let capacity = 3

        /// Performs a command that follows the rules of the specification.
        mutating func perform(_ command: GAPCommand) {
            if let command = command.decode(LESetRandomAddress.self) {
                randomAddress = command.randomAddress
            } else if let command = command.decode(LEAddDeviceToResolvingList.self) {
                let identity = command.peerIdentityAddress
                #expect(list[identity] == nil)
                #expect(list.count < capacity)
                list[identity] = ResolvingList.Entry(
                    identity: identity,
                    peerKey: command.peerIRK,
                    localKey: command.localIRK
                )
            } else if let command = command.decode(LERemoveDeviceFromResolvingList.self) {
                #expect(list.removeValue(forKey: command.peerIdentityAddress) != nil)
            } else if let command = command.decode(LESetPrivacyMode.self) {
                #expect(list[command.peerIdentityAddress] != nil)
            } else if let command = command.decode(LESetAddressResolutionEnable.self) {
                isResolving = command.addressResolutionEnable
            }
        }
    }

    private struct Model: RandomPlanModel {
        var random: SeededGenerator
        var fixture: AddressPlanFixture
        var controller = Controller()
        let mayRefuse: Bool
        /// The command in progress, and the reply that is on its way.
        var inProgress: (command: PlannedCommand, failure: CommandFailure?)?
        var stale: GAPStep?

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            mayRefuse = seed.isMultiple(of: 2)
            let information = GAPSample.information(isExtended: Bool.random(using: &random), listSize: 3)
            fixture = AddressPlanFixture(isPrivate: Bool.random(using: &random), information)
            fixture.plan.controllerWasReset(fixture.context, &fixture.random)
            while let next = fixture.next() { perform(next) }
            fixture.plan.startLifetime(at: fixture.now)
        }

        mutating func perform(_ command: PlannedCommand) {
            controller.perform(command.command)
            fixture.plan.finished(command.step, fixture.context.information)
        }

        mutating func changePeers() {
            var numbers: [UInt64] = []
            for number in UInt64(1)...6 where chance(2) { numbers.append(number) }
            numbers.shuffle(using: &random)
            fixture.setPeers(numbers, keys: chance(3) ? [1: 100, 2: 200] : [:])
        }

        mutating func nextCommand() -> PlannedCommand? { fixture.next() }

        mutating func send(_ next: PlannedCommand) -> CommandFailure? {
            let needsAll =
                next.command.opcode != LESetRandomAddress.opcode || !fixture.context.information.usesExtendedCommands
            #expect(fixture.context.rest >= (needsAll ? .everything : .scanningAndInitiating))
            #expect(fixture.plan.hold >= (needsAll ? .everything : .scanningAndInitiating))
            let isRefusable = next.command.opcode != LERemoveDeviceFromResolvingList.opcode
            let isRefused = mayRefuse && isRefusable && chance(4)
            if !isRefused { controller.perform(next.command) }
            return isRefused ? GAPSample.refusal(of: next.command) : nil
        }

        mutating func reply() {
            guard let (command, failure) = inProgress else { return }
            inProgress = nil
            if let failure {
                #expect(fixture.plan.failed(command.step, failure).count == 1)
            } else {
                fixture.plan.finished(command.step, fixture.context.information)
            }
        }

        mutating func reset() {
            controller = Controller()
            stale = inProgress?.command.step
            inProgress = nil
            fixture.plan.controllerLost()
            let rest = fixture.context.rest
            fixture.context.rest = .everything
            fixture.plan.controllerWasReset(fixture.context, &fixture.random)
            while let next = fixture.next() { perform(next) }
            fixture.context.rest = rest
            fixture.plan.startLifetime(at: fixture.now)
        }

        mutating func step() {
            switch Int.random(in: 0..<30, using: &random) {
            case 0..<2: changePeers()
            case 2..<5: _ = fixture.plan.requestRun()
            case 5..<15: send()
            case 15..<24: reply()
            case 24..<26:
                let all: [AddressHold] = [.nothing, .scanningAndInitiating, .everything]
                if inProgress == nil { fixture.context.rest = all.randomElement(using: &random) ?? .nothing }
            case 26: if chance(5) { reset() }
            case 27: if let stale { fixture.plan.finished(stale, fixture.context.information) }
            case 28:
                let isAdvertising = !fixture.context.information.usesExtendedCommands && chance(2)
                fixture.context.legacyAdvertisingAddress = isAdvertising ? GAPSample.address(9) : nil
            default: _ = fixture.advance(by: .seconds(Int.random(in: 1...1000, using: &random)))
            }
        }

        mutating func settle() {
            reply()
            fixture.context.rest = .everything
            _ = fixture.plan.requestRun()
            for _ in 0..<100 {
                if let next = fixture.next() { perform(next) }
            }
        }

        func check() {
            #expect(!fixture.plan.run.isRunning)
            #expect(fixture.plan.hold == .nothing)
            #expect(fixture.plan.randomAddress == controller.randomAddress)
            let own = fixture.plan.settings.usesPrivateAddresses
            if let wanted = fixture.context.legacyAdvertisingAddress ?? fixture.plan.privateAddress {
                #expect(controller.randomAddress == wanted)
            }
            #expect(fixture.plan.list?.entries.count == controller.list.count)
            for (identity, entry) in controller.list { #expect(fixture.plan.list?.entries[identity] == entry) }
            #expect(fixture.plan.list?.isResolving == controller.isResolving)
            guard !mayRefuse else { return }
            let wanted = (own ? [GAPSample.identity] : []) + fixture.context.peers
            #expect(Set(controller.list.keys) == Set(wanted.prefix(controller.capacity)))
            #expect(controller.isResolving == !controller.list.isEmpty)
        }
    }

    @Test(arguments: 0..<20)
    func controllerHasWhatIsWantedAfterRandomChanges(group: UInt64) {
        Model.run(group: group)
    }
}
