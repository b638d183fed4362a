import BLEGATT
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// Random calls, answers and cancellations, compared with a simple model.
@Suite("A router under random calls")
struct ATTRouterModelTests {
    private enum Kind { case read, write, channel, notification, indication, answer }

    private struct Call: Equatable {
        let kind: Kind
        let number: UInt8
        let order: Int

        var name: String {
            switch kind {
            case .read: "read \(number)"
            case .write: "write \(number)"
            case .channel: "request \(number)"
            case .notification: "notification \(number)"
            case .indication: "indication \(number)"
            case .answer: "answer"
            }
        }

        var pdu: [UInt8] {
            switch kind {
            case .read: [0x0A, number, 0]
            case .write: [0x52, 9, 0, number]
            case .channel: [0x14, number]
            case .notification: [0x1B, 3, 0, number]
            case .indication: [0x1D, 3, 0, number]
            case .answer: [0x0B, number]
            }
        }
    }

    private struct Model {
        var client: [Call] = []
        var server: [Call] = []
        /// The procedures that have left their lane and are not sent yet.
        var procedures: [Call] = []
        var running: Call?
        var isRunningCancelled = false
        var indication: Call?
        var isAppAsked = false
        var room = 1000
        var isGateOpen = true
        var sent: [[UInt8]] = []
        var ended: [String] = []
        private var lastOrder = 0

        mutating func submit(_ kind: Kind, _ number: UInt8) {
            lastOrder += 1
            let call = Call(kind: kind, number: number, order: lastOrder)
            switch kind {
            case .read, .write, .channel: client.append(call)
            case .notification, .indication, .answer: server.append(call)
            }
            pump()
        }

        private func canSend(_ call: Call) -> Bool {
            switch call.kind {
            case .read: isGateOpen
            case .write: isGateOpen && room > 0 && procedures.isEmpty
            case .channel: isGateOpen && procedures.isEmpty
            case .notification: room > 0
            case .indication: indication == nil
            case .answer: true
            }
        }

        mutating func pump() {
            startNext()
            while true {
                let heads = [client.first, server.first].compactMap { $0 }.filter(canSend)
                if let next = heads.min(by: { $0.order < $1.order }) {
                    if client.first == next { client.removeFirst() } else { server.removeFirst() }
                    send(next)
                } else if server.first?.kind == .indication, indication != nil,
                    let index = server.firstIndex(where: { $0.kind == .answer })
                {
                    send(server.remove(at: index))
                } else {
                    return
                }
            }
        }

        private mutating func send(_ call: Call) {
            if call.kind == .read {
                procedures.append(call)
                return startNext()
            }
            sent.append(call.pdu)
            if call.kind != .answer, call.kind != .channel { room -= 1 }
            switch call.kind {
            case .write, .channel, .notification: ended.append(call.name)
            case .indication: indication = call
            case .answer: isAppAsked = false
            case .read: break
            }
        }

        private mutating func startNext() {
            guard running == nil, isGateOpen, !procedures.isEmpty else { return }
            let next = procedures.removeFirst()
            running = next
            isRunningCancelled = false
            sent.append(next.pdu)
            room -= 1
        }

        mutating func respond() {
            if let run = running.take(), !isRunningCancelled { ended.append(run.name) }
            pump()
        }

        mutating func confirm() {
            if let call = indication.take() { ended.append(call.name) }
            pump()
        }

        mutating func cancelRead(_ number: UInt8) {
            client.removeAll { $0.kind == .read && $0.number == number }
            procedures.removeAll { $0.number == number }
            if running?.number == number { isRunningCancelled = true }
            ended.append("failed read \(number)")
            pump()
        }

        mutating func removeValue(_ number: UInt8) {
            client.removeAll { $0.kind == .write && $0.number == number }
            server.removeAll { ($0.kind == .notification || $0.kind == .indication) && $0.number == number }
            pump()
        }

        /// - Returns: whether the request was in its lane.
        mutating func removeRequest(_ number: UInt8) -> Bool {
            let count = client.count
            client.removeAll { $0.kind == .channel && $0.number == number }
            defer { pump() }
            return client.count < count
        }

        mutating func failVerification() {
            ended += client.map { "failed \($0.name)" }
            client = []
            pump()
        }

        mutating func end() {
            if let run = running.take(), !isRunningCancelled { ended.append("failed \(run.name)") }
            ended += procedures.map { "failed \($0.name)" }
            ended += (client + server).sorted { $0.order < $1.order }.map { "failed \($0.name)" }
            if let call = indication.take() { ended.append("failed \(call.name)") }
            (client, server, procedures) = ([], [], [])
        }
    }

    private struct Run {
        var random: SeededGenerator
        let fixture: ATTRouterFixture
        var model = Model()
        var number: UInt8 = 9
        var reads: [UInt8: ProcedureRun] = [:]
        var values: [UInt8: CallToken] = [:]
        var requests: [UInt8] = []
        var callCount: UInt32 = 0

        mutating func nextNumber() -> UInt8 {
            number = number == 255 ? 10 : number + 1
            return number
        }

        mutating func step() {
            switch Int.random(in: 0..<27, using: &random) {
            case 0..<3: submit(.read)
            case 3..<6: submit(.write)
            case 6..<9: submit(.notification)
            case 9..<11: submit(.indication)
            case 11..<13: askOrAnswer()
            case 13..<16: respond()
            case 16..<18:
                fixture.receive([0x1E])
                model.confirm()
            case 18..<20: changeRoom()
            case 20: changeGate()
            case 21: endVerification()
            case 22: cancelRead()
            case 23..<25: submit(.channel)
            case 25: removeRequest()
            default: removeValue()
            }
        }

        private mutating func submit(_ kind: Kind) {
            let number = nextNumber()
            let call = CallToken(index: UInt32(number), generation: callCount)
            callCount += 1
            if kind == .channel { requests.append(number) } else { values[number] = call }
            switch kind {
            case .read: reads[number] = fixture.read(number)
            case .write: fixture.write(number, caller: .task(call))
            case .channel: fixture.openChannels(number)
            case .notification: fixture.notify(number, caller: .task(call))
            case .indication: fixture.indicate(number, caller: .task(call))
            case .answer: fixture.answer(number)
            }
            model.submit(kind, number)
        }

        private mutating func askOrAnswer() {
            if !fixture.accesses.isEmpty {
                submit(.answer)
            } else if !model.isAppAsked {
                fixture.receive([0x0A, 3, 0])
                model.isAppAsked = true
            }
        }

        private mutating func respond() {
            guard model.isGateOpen else { return }
            fixture.receive([0x0B, 7])
            if model.running != nil { model.respond() }
        }

        private mutating func changeRoom() {
            let room = Bool.random(using: &random) ? 0 : Int.random(in: 1...4, using: &random)
            fixture.room = room
            fixture.pump()
            model.room = room
            model.pump()
        }

        private mutating func changeGate() {
            guard model.running == nil else { return }
            model.isGateOpen.toggle()
            fixture.isGateOpen = model.isGateOpen
            fixture.pumpClient()
            fixture.pump()
            model.pump()
        }

        private mutating func endVerification() {
            guard fixture.router.isVerifying else { return }
            fixture.verificationEnded(isVerified: model.isGateOpen)
            if !model.isGateOpen { model.failVerification() }
        }

        private mutating func cancelRead() {
            guard let number = reads.keys.sorted().randomElement(using: &random), let run = reads[number] else {
                return
            }
            reads[number] = nil
            guard !run.hasEnded else { return }
            let waits = (model.client + model.procedures).contains { $0.kind == .read && $0.number == number }
            guard waits || (model.running?.number == number && !model.isRunningCancelled) else { return }
            fixture.cancel(run)
            model.cancelRead(number)
        }

        private mutating func removeRequest() {
            guard let index = requests.indices.randomElement(using: &random) else { return }
            let number = requests.remove(at: index)
            let isRemoved = fixture.removeRequest(for: number)
            #expect(isRemoved == model.removeRequest(number))
        }

        private mutating func removeValue() {
            guard let number = values.keys.sorted().randomElement(using: &random), let call = values[number] else {
                return
            }
            values[number] = nil
            let waits = (model.client + model.server).contains {
                $0.number == number && $0.kind != .read && $0.kind != .answer
            }
            #expect(fixture.router.remove(call) == waits)
            fixture.pump()
            model.removeValue(number)
        }

        func check() -> Bool {
            let isEqual =
                fixture.sent == model.sent && fixture.ended == model.ended
                && fixture.router.lanes.count == model.client.count + model.server.count
                && fixture.router.indicationInFlight?.value.first == model.indication?.number
            #expect(isEqual)
            #expect(fixture.router.hasSendableCall(fixture.conditions) == false)
            return isEqual
        }
    }

    @Test(arguments: 0..<200 as Range<UInt64>) func routerDoesWhatTheModelDoes(seed: UInt64) throws {
        var run = Run(random: SeededGenerator(seed: seed), fixture: try ATTRouterFixture())
        for _ in 0..<400 {
            run.step()
            guard run.check() else { return }
        }
        run.fixture.endLink()
        run.model.end()
        #expect(run.fixture.ended == run.model.ended)
        #expect(run.fixture.router.lanes.isEmpty && run.fixture.router.client.isIdle)
    }
}
