import BLEHCI
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// Random advertisements, replies and events, with a simulated controller.
@Suite("The plan for advertising under random changes")
struct AdvertisingPlanModelTests {
    /// The advertising sets of a controller. Legacy advertising is set 0.
    private struct Controller {
        struct AdvertisingSet: Equatable {
            var data: [UInt8] = []
            /// Whether more data must follow.
            var isIncomplete = false
            var address: DeviceAddress?
            var isOn = false
            var train: Train?
        }

        /// A periodic advertising train, from its parameters on.
        struct Train: Equatable {
            var data: [UInt8] = []
            var isIncomplete = false
            var isOn = false
        }

        var sets: [UInt8: AdvertisingSet] = [:]

        /// Performs a command that follows the rules of the specification.
        mutating func perform(_ command: GAPCommand) {
            if let command = command.decode(LESetExtendedAdvertisingParameters.self) {
                setParameters(command.advertisingHandle)
            } else if command.decode(LESetAdvertisingParameters.self) != nil {
                setParameters(0)
            } else if let command = command.decode(LESetExtendedAdvertisingData.self) {
                setData(command.advertisingHandle, command.operation, command.advertisingData.bytes)
            } else if let command = command.decode(LESetAdvertisingData.self) {
                setData(0, .complete, command.advertisingData.bytes)
            } else if let command = command.decode(LESetAdvertisingSetRandomAddress.self) {
                #expect(sets[command.advertisingHandle]?.isOn == false)
                sets[command.advertisingHandle]?.address = command.randomAddress
            } else if let command = command.decode(LESetExtendedAdvertisingEnable.self) {
                for set in command.sets { setEnabled(set.advertisingHandle, command.enable) }
            } else if let command = command.decode(LESetAdvertisingEnable.self) {
                setEnabled(0, command.advertisingEnable)
            } else if let command = command.decode(LERemoveAdvertisingSet.self) {
                #expect(sets[command.advertisingHandle]?.isOn == false)
                #expect(sets[command.advertisingHandle]?.train?.isOn != true)
                sets[command.advertisingHandle] = nil
            } else {
                performPeriodic(command)
            }
        }

        private mutating func performPeriodic(_ command: GAPCommand) {
            if let command = command.decode(LESetPeriodicAdvertisingParameters.self) {
                let handle = command.advertisingHandle
                #expect(sets[handle] != nil && sets[handle]?.train?.isOn != true)
                let train = sets[handle]?.train ?? Train()
                sets[handle]?.train = train
            } else if let command = command.decode(LESetPeriodicAdvertisingData.self) {
                guard var train = sets[command.advertisingHandle]?.train else {
                    Issue.record("data of no train")
                    return
                }
                let isFirst = command.operation == .complete || command.operation == .firstFragment
                #expect(!train.isOn || command.operation == .complete)
                #expect(isFirst || train.isIncomplete)
                train.data = (isFirst ? [] : train.data) + command.advertisingData.bytes
                train.isIncomplete =
                    command.operation == .firstFragment || command.operation == .intermediateFragment
                sets[command.advertisingHandle]?.train = train
            } else if let command = command.decode(LESetPeriodicAdvertisingEnable.self) {
                let isOn = command.enable.contains(.enabled)
                if isOn { #expect(sets[command.advertisingHandle]?.train?.isIncomplete == false) }
                sets[command.advertisingHandle]?.train?.isOn = isOn
            }
        }

        private mutating func setParameters(_ handle: UInt8) {
            #expect(sets[handle]?.isOn != true && sets[handle]?.train?.isOn != true)
            var set = AdvertisingSet()
            set.train = sets[handle]?.train
            sets[handle] = set
        }

        private mutating func setData(_ handle: UInt8, _ operation: AdvertisingDataOperation, _ data: [UInt8]) {
            #expect(sets[handle]?.isOn == false)
            let isFirst = operation == .complete || operation == .firstFragment
            #expect(isFirst || sets[handle]?.isIncomplete == true)
            if isFirst { sets[handle]?.data = [] }
            sets[handle]?.data += data
            sets[handle]?.isIncomplete = operation == .firstFragment || operation == .intermediateFragment
        }

        private mutating func setEnabled(_ handle: UInt8, _ isOn: Bool) {
            if isOn { #expect(sets[handle]?.isIncomplete == false) }
            sets[handle]?.isOn = isOn
        }

        /// Whether it must refuse a command: parameters of advertising that is on. After a refused end, or two refused
        /// restarts, the host does not know whether it is on.
        func mustRefuse(_ command: GAPCommand) -> Bool {
            if let command = command.decode(LESetExtendedAdvertisingParameters.self) {
                return sets[command.advertisingHandle]?.isOn == true
            }
            return command.opcode == LESetAdvertisingParameters.opcode && sets[0]?.isOn == true
        }

        /// Whether a command turns advertising off or removes a set.
        static func isEnd(_ command: GAPCommand) -> Bool {
            if let command = command.decode(LESetExtendedAdvertisingEnable.self) { return !command.enable }
            if let command = command.decode(LESetAdvertisingEnable.self) { return !command.advertisingEnable }
            return command.opcode == LERemoveAdvertisingSet.opcode
        }

        /// Whether it may refuse a command that is no end. It always stops trains.
        static func mayRefuse(_ command: GAPCommand) -> Bool {
            if let command = command.decode(LESetExtendedAdvertisingEnable.self) { return command.enable }
            if let command = command.decode(LESetAdvertisingEnable.self) { return command.advertisingEnable }
            if let command = command.decode(LESetPeriodicAdvertisingEnable.self) {
                return command.enable.contains(.enabled)
            }
            return command.opcode != LERemoveAdvertisingSet.opcode
        }
    }

    private struct Model: RandomPlanModel {
        var random: SeededGenerator
        var fixture: AdvertisingPlanFixture
        var controller = Controller()
        /// The command in progress, and the reply that is on its way.
        var inProgress: (command: PlannedCommand, failure: CommandFailure?)?
        /// The reply to a command that an earlier controller got.
        var stale: GAPStep?
        /// The calls that wait, by their numbers.
        var calls: Set<UInt32> = []
        var nextCall: UInt32 = 1000

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            fixture = AdvertisingPlanFixture(isExtended: Bool.random(using: &random), sets: 3)
            fixture.context.information.commands.insert(LESetPeriodicAdvertisingEnable.opcode)
        }

        mutating func perform(_ effects: [AdvertisingEffect]) {
            for case .finish(let call, _) in effects {
                #expect(calls.remove(call.index) != nil, "a call that waits")
            }
        }

        mutating func start() {
            let isLong = fixture.context.information.usesExtendedCommands && chance(2)
            let isConnectable = chance(2)
            // Connectable data must fit one PDU.
            let length = isLong ? (isConnectable ? 200 : 600) : 20
            let data = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
            let address = chance(2) ? GAPSample.address(UInt64.random(in: 1...9, using: &random)) : nil
            let hasTrain = fixture.context.information.usesExtendedCommands && chance(3)
            let configuration = AdvertisementConfiguration(
                isConnectable: !hasTrain && isConnectable,
                isScannable: !hasTrain,
                advertisingData: AdvertisingData(decoding: data),
                address: fixture.context.information.usesExtendedCommands ? address : nil,
                periodic: hasTrain ? PeriodicAdvertisingConfiguration(data: trainData()) : nil
            )
            guard let advertisement = try? fixture.start(configuration) else { return }
            calls.insert(UInt32(advertisement.value))
        }

        /// The data of a train, of one fragment or of two.
        private mutating func trainData() -> AdvertisingData {
            let length = Int.random(in: 0...1, using: &random) * 252 + Int.random(in: 0...40, using: &random)
            return AdvertisingData(decoding: (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) })
        }

        mutating func changeTrain() {
            let trains = fixture.plan.entries.filter { $0.configuration.periodic != nil && !$0.isEnding }
            guard let entry = trains.randomElement(using: &random) else { return }
            try? fixture.plan.setPeriodicData(trainData(), of: entry.identifier, fixture.context.information)
        }

        mutating func stop() {
            guard let entry = fixture.plan.entries.randomElement(using: &random) else { return }
            let isStarting = entry.calls.contains { $0.index == UInt32(entry.identifier.value) }
            if isStarting {
                fixture.plan.remove(AdvertisingPlanFixture.call(UInt32(entry.identifier.value)), of: entry.identifier)
                calls.remove(UInt32(entry.identifier.value))
            }
            perform(fixture.plan.stop(entry.identifier, isOn: true))
            nextCall += 1
            // It has ended already if the controller has nothing of it.
            let isWaiting = fixture.plan.awaitEnd(of: entry.identifier, AdvertisingPlanFixture.call(nextCall))
            if isWaiting { calls.insert(nextCall) }
        }

        mutating func nextCommand() -> PlannedCommand? { fixture.next() }

        mutating func send(_ next: PlannedCommand) -> CommandFailure? {
            if fixture.context.addresses.hold == .everything { #expect(!Controller.mayRefuse(next.command)) }
            if controller.mustRefuse(next.command) {
                #expect(fixture.plan.mayAdvertise)
                return GAPSample.refusal(of: next.command, .commandDisallowed)
            }
            if Controller.isEnd(next.command), chance(6) {
                let code: HCIErrorCode = chance(2) ? .commandDisallowed : .unsupportedFeatureOrParameterValue
                return GAPSample.refusal(of: next.command, code)
            }
            let isRefused = Controller.mayRefuse(next.command) && chance(5)
            if !isRefused { controller.perform(next.command) }
            return isRefused ? GAPSample.refusal(of: next.command, .commandDisallowed) : nil
        }

        mutating func reply() {
            guard let (command, failure) = inProgress else { return }
            inProgress = nil
            if let failure {
                perform(fixture.plan.failed(command.step, failure, at: fixture.now, hasLinks: chance(2)))
            } else {
                perform(fixture.plan.finished(command.step, at: fixture.now))
            }
        }

        mutating func terminate() {
            let isOn = controller.sets.keys.sorted().filter { controller.sets[$0]?.isOn == true }
            guard let handle = isOn.randomElement(using: &random) else { return }
            if fixture.context.information.usesExtendedCommands {
                controller.sets[handle]?.isOn = false
                perform(fixture.plan.terminated(handle, by: 0x40))
            } else if fixture.plan.entries.first?.configuration.isConnectable == true {
                controller.sets[handle]?.isOn = false
                fixture.plan.endedByConnection()
            }
        }

        mutating func reset() {
            controller = Controller()
            stale = inProgress?.command.step
            inProgress = nil
            perform(fixture.plan.controllerLost())
        }

        mutating func step() {
            switch Int.random(in: 0..<42, using: &random) {
            case 0..<3: start()
            case 3..<5: stop()
            case 5..<20: send()
            case 20..<33: reply()
            case 33: terminate()
            case 34: if chance(4) { reset() }
            case 35:
                if let stale { perform(fixture.plan.finished(stale, at: fixture.now)) }
            case 36: fixture.context.addresses.hold = chance(2) ? .everything : .nothing
            case 37: fixture.context.addresses.isChanging = chance(2)
            case 39..<41: changeTrain()
            case 38: fixture.context.addresses.advertisingAddress = chance(2) ? nil : GAPSample.address(nextCall.value)
            default: perform(fixture.advance(by: .milliseconds(Int.random(in: 1...60_000, using: &random))))
            }
        }

        /// Has the controller perform what is wanted.
        mutating func settle() {
            reply()
            fixture.context.addresses.hold = .nothing
            fixture.context.addresses.isChanging = false
            performAll()
            fixture.plan.linkEnded()
            // After refused parameters, the advertisement is turned off in the next second.
            for _ in 1...2 {
                perform(fixture.advance(by: .seconds(1)))
                performAll()
            }
        }

        /// Has the controller perform all commands that it accepts. The others are blocked until a link ends.
        private mutating func performAll() {
            var count = 0
            while let next = fixture.next(), count < 1000 {
                if controller.mustRefuse(next.command) {
                    let failure = GAPSample.refusal(of: next.command, .commandDisallowed)
                    perform(fixture.plan.failed(next.step, failure, at: fixture.now, hasLinks: true))
                } else {
                    controller.perform(next.command)
                    perform(fixture.plan.finished(next.step, at: fixture.now))
                }
                count += 1
            }
            #expect(count < 1000)
        }

        func check() {
            #expect(calls.isEmpty, "each call has ended")
            let isExtended = fixture.context.information.usesExtendedCommands
            let leftOn = fixture.plan.entries.filter(\.isLeftOn)
            for entry in leftOn {
                #expect(isExtended && entry.state == .endRefused && entry.mayBeOn)
                #expect(entry.refusalCount == AdvertisingPlan.Entry.refusalLimit)
            }
            let handles = leftOn.map(\.handle)
            let isOn = controller.sets.filter { $0.value.isOn && !handles.contains($0.key) }
            #expect(isOn.count == fixture.plan.count)
            for entry in fixture.plan.entries where !entry.isLeftOn {
                #expect(entry.state == .on)
                let configuration = entry.configuration
                let usesExtendedPDUs = configuration.usesExtendedPDUs(maximumLegacyLength: 31)
                let data =
                    usesExtendedPDUs ? configuration.extendedAdvertisingData : configuration.advertisingData
                let set = isOn[isExtended ? entry.handle : 0]
                #expect(set.map { $0.data == data.bytes } == true)
                #expect(set?.address == entry.address)
                // A set that was not removed keeps its train, which is off.
                #expect((set?.train?.isOn ?? false) == (configuration.periodic != nil))
                if configuration.periodic != nil { #expect(set?.train?.data == entry.periodicData.bytes) }
                #expect(entry.nextPeriodicData == nil)
                if isExtended, let address = entry.wantedAddress(fixture.context) { #expect(set?.address == address) }
            }
        }
    }

    @Test(arguments: 0..<20)
    func controllerHasWhatIsWantedAndEachCallEndsOnce(group: UInt64) {
        Model.run(group: group)
    }
}

extension UInt32 {
    fileprivate var value: UInt64 { UInt64(self) }
}
