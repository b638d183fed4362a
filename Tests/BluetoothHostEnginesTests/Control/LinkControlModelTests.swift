import BLEHCI
import BLEL2CAP
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// Random requests, replies and events, compared with a simple model of the controller and the peer.
@Suite("Link Layer procedures under random changes")
struct LinkControlModelTests {
    private struct Model {
        private typealias Fixture = LinkControlFixture

        var random: SeededGenerator
        var link: LinkControlFixture
        let role: SignalingChannel.Role
        /// The calls that wait for an outcome, in their order.
        var waiting: [LinkProcedure: [CallToken]] = [:]
        /// The procedures whose requests are in flight: their numbers, and when they have taken too long.
        var running: [LinkProcedure: (number: UInt32, deadline: Instant)] = [:]
        /// The commands without an answer.
        var commands: [ControlStep] = []
        /// Whether a request of this peripheral waits for its answer.
        var isRequestPending = false
        var isDisconnecting = false
        var nextCall: UInt32 = 0
        /// The observers that have not ended, with what they want.
        var observers: [(LinkObservation, LinkEventRequest)] = []
        /// The command for reports that has no answer.
        var reportStep: LinkReportStep?
        /// What the controller reports.
        var reportsTransmitPower = false
        var reportsPathLoss = false

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            role = Bool.random(using: &random) ? .central : .peripheral
            link = LinkControlFixture(role)
        }

        private func queue(_ procedure: LinkProcedure) -> ProcedureQueue<LinkRequest> {
            link.control.procedures[procedure]
        }

        private mutating func start(_ procedure: LinkProcedure, limit: Duration = .seconds(40)) {
            #expect(running[procedure] == nil, "two requests of one kind are in flight")
            running[procedure] = (queue(procedure).number, link.context.now + limit)
        }

        private mutating func perform(_ effects: [ControlEffect]) {
            for effect in effects {
                switch effect {
                case .command(_, let step):
                    if case .reports = step {} else { commands.append(step) }
                    switch step {
                    case .procedure(let procedure, let number):
                        start(procedure)
                        #expect(running[procedure]?.number == number)
                    case .disconnection:
                        #expect(!isDisconnecting)
                        isDisconnecting = true
                    case .phyRead, .unawaited: break
                    case .reports(let step):
                        #expect(reportStep == nil, "two commands for reports are in flight")
                        reportStep = step
                    }
                case .requestBySignaling:
                    #expect(role == .peripheral)
                    if isRequestPending {
                        #expect(running[.connectionUpdate] == nil)
                        perform(link.control.signalingRefused(.requestPending, link.context))
                    } else {
                        isRequestPending = true
                        start(.connectionUpdate)
                    }
                case .finish(let call, _): finish(call)
                case .finishPowerRead(let call, _):
                    #expect(waiting[.powerRead]?.first == call)
                    finish(call)
                case .report: break
                case .endObservation(let observation, _): endObservation(observation)
                case .notEnding: #expect(isDisconnecting)
                case .hasEnded: Issue.record("no controller forgets the link")
                }
            }
        }

        /// Each call is finished once, and in the order of its kind.
        private mutating func finish(_ call: CallToken) {
            for procedure in LinkProcedure.allCases where waiting[procedure]?.first == call {
                waiting[procedure]?.removeFirst()
                return
            }
            Issue.record("a call was finished twice, out of order or after its cancellation")
        }

        private mutating func request(_ request: LinkRequest) {
            nextCall += 1
            let call = CallToken(index: nextCall, generation: 0)
            waiting[request.procedure, default: []].append(call)
            perform(link.control.request(request, for: call, link.context))
        }

        private mutating func answerCommand() {
            guard let index = commands.indices.randomElement(using: &random) else { return }
            let step = commands.remove(at: index)
            guard Bool.random(using: &random) else { return }
            if case .procedure(let procedure, let number) = step, running[procedure]?.number == number {
                running[procedure] = nil
            }
            perform(link.control.commandFailed(step, .status(.commandDisallowed, Reset.opcode), link.context))
        }

        private mutating func answerRequest() {
            guard isRequestPending else { return }
            isRequestPending = false
            let isAccepted = Bool.random(using: &random)
            var changesNothing = false
            if isAccepted, case .parameters(let wanted)? = queue(.connectionUpdate).current {
                changesNothing = link.control.parameters.satisfy(wanted)
            }
            if !isAccepted || changesNothing { running[.connectionUpdate] = nil }
            perform(link.control.signalingFinished(isAccepted ? .accepted : nil, link.context))
            guard isAccepted else { return }
            if running[.connectionUpdate] != nil {
                running[.connectionUpdate]?.deadline = link.context.now + .seconds(40)
            } else {
                let interval = link.control.parameters.interval
                start(.connectionUpdate, limit: changesNothing ? .seconds(2) + interval * 10 : .seconds(40))
            }
        }

        private mutating func endObservation(_ observation: LinkObservation) {
            guard let index = observers.firstIndex(where: { $0.0 == observation }) else {
                Issue.record("an observer ended twice, or after it was removed")
                return
            }
            observers.remove(at: index)
        }

        private mutating func observe() {
            nextCall += 1
            let observation = LinkObservation(
                value: UInt64(nextCall),
                link: LinkIdentifier(handle: LinkControlFixture.handle, serial: 1)
            )
            let request = LinkEventRequest(
                transmitPower: Bool.random(using: &random),
                pathLoss: Bool.random(using: &random) ? PathLossThresholds(low: 50, high: 70) : nil
            )
            guard observers.count < LinkReports.limit else { return }
            observers.append((observation, request))
            do throws(HostError) {
                perform(try link.control.observe(observation, request))
            } catch {
                Issue.record("\(error)")
            }
        }

        private mutating func answerReports() {
            guard let step = reportStep else { return }
            reportStep = nil
            guard Int.random(in: 0..<4, using: &random) > 0 else {
                switch step {
                case .disableTransmitPower: reportsTransmitPower = false
                case .disablePathLoss: reportsPathLoss = false
                default: break
                }
                return perform(
                    link.control.commandFailed(
                        .reports(step),
                        .status(.commandDisallowed, LESetPathLossReportingEnable.opcode),
                        link.context
                    )
                )
            }
            switch step {
            case .enableTransmitPower: reportsTransmitPower = true
            case .disableTransmitPower: reportsTransmitPower = false
            case .enablePathLoss: reportsPathLoss = true
            case .disablePathLoss: reportsPathLoss = false
            case .setPathLossThresholds: break
            }
            perform(link.control.reportsChanged(step))
        }

        /// Answers all commands for reports. Then the controller reports what the observers want.
        mutating func settleReports() {
            while reportStep != nil { answerReports() }
            #expect(reportsTransmitPower == observers.contains { $0.1.transmitPower })
            #expect(reportsPathLoss == observers.contains { $0.1.pathLoss != nil })
        }

        private mutating func advance() {
            link.context.now = link.context.now + .milliseconds(Int.random(in: 0...30_000, using: &random))
            for procedure in LinkProcedure.allCases {
                if let due = running[procedure]?.deadline, due <= link.context.now { running[procedure] = nil }
            }
            perform(link.control.advance(link.context))
        }

        private mutating func cancel() {
            guard let procedure = LinkProcedure.allCases.randomElement(using: &random),
                let call = waiting[procedure]?.randomElement(using: &random)
            else { return }
            waiting[procedure]?.removeAll { $0 == call }
            link.control.cancel(call)
        }

        mutating func change() {
            let status: HCIErrorCode = Bool.random(using: &random) ? .success : .connectionTimeout
            switch Int.random(in: 0..<40, using: &random) {
            case 0..<4: request(Fixture.request(50))
            case 4..<7: request(Fixture.phys)
            case 7: perform(link.control.requestUnawaited(Fixture.parameters(100), link.context))
            case 8 where role == .central:
                perform(link.control.peerRequested(Fixture.peerRequest(40), link.context))
            case 9..<12: cancel()
            case 12..<15: answerCommand()
            case 15..<17: answerRequest()
            case 17..<20:
                running[.connectionUpdate] = nil
                perform(link.control.received(Fixture.updated(40, status), link.context))
            case 20..<22:
                running[.phyUpdate] = nil
                perform(link.control.received(Fixture.physUpdated(status), link.context))
            case 23..<25: request(.features)
            case 25..<27:
                running[.featureExchange] = nil
                perform(link.control.received(Fixture.featuresRead(status), link.context))
            case 28..<30: request(Fixture.subrate)
            case 30..<32:
                running[.subrateUpdate] = nil
                perform(link.control.received(Fixture.subrated(3, status), link.context))
            case 32: request(.peerPower(.le1M))
            case 33:
                running[.powerRead] = nil
                perform(link.control.received(Fixture.power(.remoteRead, -4, status: status), link.context))
            case 34: observe()
            case 35:
                guard let index = observers.indices.randomElement(using: &random) else { break }
                perform(link.control.removeObservation(observers.remove(at: index).0))
            case 36..<39: answerReports()
            case 22 where Int.random(in: 0..<20, using: &random) == 0:
                perform(link.control.disconnect(nil, link.context))
            default: advance()
            }
            for procedure in LinkProcedure.allCases {
                #expect(queue(procedure).isRunning == (running[procedure] != nil))
                #expect(queue(procedure).deadline == running[procedure]?.deadline)
                if queue(procedure).isPostponed { #expect(procedure == .connectionUpdate && isRequestPending) }
            }
        }

        mutating func end() {
            settleReports()
            perform(link.control.linkEnded(.controller(.connectionTimeout)))
            #expect(waiting.values.joined().isEmpty && observers.isEmpty)
            running = [:]
            request(Fixture.phys)
            #expect(waiting.values.joined().isEmpty)
            #expect(link.control.deadline == nil)
        }
    }

    @Test("No two requests of a kind are in flight, and each call ends once, in order", arguments: 1...60)
    func eachCallEndsOnce(seed: UInt64) {
        var model = Model(seed: seed)
        for _ in 0..<400 { model.change() }
        model.end()
    }
}
