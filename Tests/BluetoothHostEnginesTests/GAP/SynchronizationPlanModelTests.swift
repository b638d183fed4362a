import BLEHCI
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// Random synchronizations, events and resets, with a simulated controller.
@Suite("The plan for synchronizations under random changes")
struct SynchronizationPlanModelTests {
    /// A controller that creates one synchronization at a time (Vol 4, Part E, 7.8.67 to 7.8.69).
    private struct Controller {
        /// The advertiser of the train that is to be found.
        var sought: UInt64?
        /// Whether the creation was cancelled, and its end is not reported yet.
        var isEnding = false
        /// The advertisers of the received trains, by their handles.
        var received: [UInt16: UInt64] = [:]
        private var lastHandle: UInt16 = 0

        mutating func perform(_ command: GAPCommand) -> HCIErrorCode {
            if let command = command.decode(LEPeriodicAdvertisingCreateSync.self) {
                guard sought == nil else { return .commandDisallowed }
                let advertiser = command.advertiserAddress.value
                guard !received.values.contains(advertiser) else { return .connectionAlreadyExists }
                sought = advertiser
            } else if command.opcode == LEPeriodicAdvertisingCreateSyncCancel.opcode {
                guard sought != nil else { return .commandDisallowed }
                isEnding = true
            } else if let command = command.decode(LEPeriodicAdvertisingTerminateSync.self) {
                guard received.removeValue(forKey: command.syncHandle) != nil else {
                    return .unknownAdvertisingIdentifier
                }
            }
            return .success
        }

        /// Ends the creation. A creation that is being cancelled ends so.
        ///
        /// - Returns: the event's status and handle; nil if there is no creation.
        mutating func endCreation(isFound: Bool) -> (HCIErrorCode, UInt16)? {
            guard let advertiser = sought.take() else { return nil }
            defer { isEnding = false }
            if isEnding { return (.operationCancelledByHost, 0) }
            guard isFound else { return (.connectionFailedToBeEstablished, 0) }
            lastHandle += 1
            received[lastHandle] = advertiser
            return (.success, lastHandle)
        }
    }

    /// A packet of the controller on its way to the host.
    private enum Message {
        case reply(GAPStep, CommandFailure?)
        case established(HCIErrorCode, UInt16)
        case lost(UInt16)
    }

    private struct Model {
        var random: SeededGenerator
        var plan = SynchronizationPlan()
        var controller = Controller()
        var now = GAPSample.start
        private let information: ControllerInformation
        private var messages: [Message] = []
        private var count: UInt64 = 0
        /// Whether time has passed since a creation was cancelled.
        private var isEndLate = false
        /// Whether each synchronization was reported as established.
        private var isEstablished: [SynchronizationIdentifier: Bool] = [:]
        /// The steps of creations that the controller refuses for a reason of its own.
        private var refused: Set<GAPStep> = []

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            var information = GAPSample.information()
            information.commands.insert(LEPeriodicAdvertisingCreateSync.opcode)
            self.information = information
        }

        private mutating func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

        private mutating func perform(_ effects: [SynchronizationEffect], mayEnd: Bool = false) {
            for effect in effects {
                switch effect {
                case .synchronized(let identifier, _):
                    #expect(isEstablished.updateValue(true, forKey: identifier) == false)
                case .lost(let identifier): #expect(isEstablished.updateValue(false, forKey: identifier) == true)
                case .end(let identifier, let failure):
                    #expect(mayEnd, "a synchronization has ended that the controller did not refuse: \(failure)")
                    #expect(isEstablished.removeValue(forKey: identifier) != nil)
                case .ignore: break
                case .endUnusable: Issue.record("no subevents were requested")
                case .endTransferred, .transferred, .transferFailed, .endReception:
                    Issue.record("nothing was transferred")
                }
            }
        }

        private mutating func start() {
            count += 1
            let identifier = SynchronizationIdentifier(value: count)
            let address = GAPSample.address(UInt64.random(in: 1...5, using: &random))
            guard (try? plan.start(identifier, PeriodicTrainRequest(address: address, sid: 1))) != nil else { return }
            isEstablished[identifier] = false
        }

        private mutating func stop() {
            guard let entry = plan.entries.randomElement(using: &random) else { return }
            plan.stop(entry.identifier)
            isEstablished[entry.identifier] = nil
        }

        private mutating func send(mayRefuse: Bool) {
            _ = plan.requestRun()
            guard let next = plan.nextCommand(information, at: now) else { return }
            if mayRefuse, chance(8), next.command.opcode == LEPeriodicAdvertisingCreateSync.opcode {
                refused.insert(next.step)
                return messages.append(.reply(next.step, GAPSample.refusal(of: next.command)))
            }
            let status = controller.perform(next.command)
            let failure = status == .success ? nil : CommandFailure.status(status, next.command.opcode)
            messages.append(.reply(next.step, failure))
        }

        private mutating func receive() {
            guard !messages.isEmpty else { return }
            switch messages.removeFirst() {
            case .reply(let step, nil): perform(plan.finished(step))
            case .reply(let step, let failure?):
                perform(plan.failed(step, failure), mayEnd: refused.contains(step))
            case .established(let status, let handle):
                let event = LEPeriodicAdvertisingSyncEstablished(
                    status: status,
                    syncHandle: handle,
                    advertisingSID: 1,
                    advertiserAddress: PeerAddress(type: .random, value: 0),
                    advertiserPHY: .le1M,
                    periodicAdvertisingInterval: 80,
                    advertiserClockAccuracy: 0
                )
                perform(plan.established(.init(event)))
            case .lost(let handle): perform(plan.lost(handle))
            }
        }

        private mutating func endCreation(isFound: Bool, mayLoseEvent: Bool) {
            guard let (status, handle) = controller.endCreation(isFound: isFound) else { return }
            // The end of a cancelled creation may be lost.
            if mayLoseEvent, status == .operationCancelledByHost, chance(3) { return }
            messages.append(.established(status, handle))
        }

        private mutating func loseTrain() {
            guard let handle = controller.received.keys.sorted().randomElement(using: &random) else { return }
            controller.received[handle] = nil
            messages.append(.lost(handle))
        }

        private mutating func reset() {
            controller = Controller()
            messages = []
            perform(plan.controllerLost())
        }

        mutating func step() {
            switch Int.random(in: 0..<40, using: &random) {
            case 0..<4: start()
            case 4..<6: stop()
            case 6..<18: send(mayRefuse: true)
            case 18..<30: receive()
            case 30..<34: endCreation(isFound: chance(2), mayLoseEvent: true)
            case 34: loseTrain()
            case 35: if chance(4) { reset() }
            default: passTime()
            }
        }

        /// Packets do not take seconds. The end of a cancelled creation may be late, once.
        private mutating func passTime() {
            while !messages.isEmpty { receive() }
            if isEndLate { endCreation(isFound: false, mayLoseEvent: true) }
            isEndLate = controller.isEnding
            now = now + .milliseconds(Int.random(in: 1...4000, using: &random))
            _ = plan.advance(to: now)
        }

        /// Has the controller find all trains.
        mutating func settle() {
            for _ in 0..<1000 {
                send(mayRefuse: false)
                if !messages.isEmpty {
                    receive()
                } else if controller.sought != nil {
                    endCreation(isFound: true, mayLoseEvent: false)
                } else if let deadline = plan.deadline {
                    now = max(now, deadline)
                    _ = plan.advance(to: now)
                } else {
                    return
                }
            }
            Issue.record("the plan does not come to rest")
        }

        func check() {
            #expect(plan.entries.map(\.identifier.value).sorted() == isEstablished.keys.map(\.value).sorted())
            #expect(isEstablished.values.allSatisfy { $0 } && !plan.isSearching)
            for entry in plan.entries {
                guard case .established(let handle) = entry.state else { continue }
                #expect(controller.received[handle] == entry.request.address.value)
            }
            #expect(controller.received.count == plan.entries.count)
        }
    }

    @Test(arguments: 0..<20)
    func controllerReceivesWhatIsWanted(group: UInt64) {
        for seed in group * 20..<group * 20 + 20 {
            var model = Model(seed: seed)
            for _ in 0..<200 { model.step() }
            model.settle()
            model.check()
        }
    }
}
