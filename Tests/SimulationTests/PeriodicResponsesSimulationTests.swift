import BLE
import BluetoothTesting
import Synchronization
import Testing

/// One advertiser and six responders on software controllers, whose packets are lost and whose controllers fail.
private struct ResponderWorld {
    static let responderCount = 6
    private static let company = CompanyIdentifier(rawValue: 0xFFFF)

    /// What was sent and received.
    final class Log: Sendable {
        struct State {
            /// The number of the newest data that was given to the advertiser, by subevent.
            var sent: [UInt8: UInt16] = [:]
            /// The number that each responder has received, and that the advertiser has received from it.
            var received: [Int: UInt16] = [:]
            var answered: [Int: UInt16] = [:]
            var answerCount = 0
            var lossCount = 0
        }

        let state = Mutex(State())
    }

    let world: World
    let advertiser: Device
    let responders: [Device]
    let dice: Dice
    let log = Log()

    init(world: World) {
        self.world = world
        dice = Dice(world.makeGenerator())
        advertiser = world.device("advertiser")
        responders = (0..<Self.responderCount).map { world.device("responder \($0)") }
    }

    /// Two responders share a subevent.
    private static func place(of responder: Int) -> (subevent: UInt8, slot: UInt8) {
        (UInt8(responder / 2), UInt8(responder % 2))
    }

    private static func data(_ values: [UInt8]) -> AdvertisingData {
        AdvertisingData([.manufacturerData(company, values)])
    }

    private static func values(_ data: AdvertisingData) -> [UInt8]? {
        data.manufacturerData.first.map { Array($0.data) }
    }

    private static func number(_ values: ArraySlice<UInt8>) -> UInt16 {
        values.reversed().reduce(0) { $0 << 8 | UInt16($1) }
    }

    // MARK: Apps

    private func respond(_ responder: Int, _ central: Central, _ address: DeviceAddress) async {
        let (subevent, slot) = Self.place(of: responder)
        let request = PeriodicTrainRequest(address: address, sid: 0, timeout: .seconds(1), subevents: [subevent])
        do throws(BLEError) {
            for try await event in central.periodicAdvertising(request) {
                switch event {
                case .synchronized, .missed: break
                case .lost: log.state.withLock { $0.lossCount += 1 }
                case .eventsDropped: Issue.record("responder \(responder): \(event)")
                case .received(let packet):
                    #expect(packet.place?.subevent == subevent)
                    guard let values = Self.values(packet.data) else { continue }
                    let number = Self.number(values[0..<2])
                    log.state.withLock { state in
                        #expect(number >= state.received[responder] ?? 0 && number <= state.sent[subevent] ?? 0)
                        state.received[responder] = number
                    }
                    // Refused while the controller is being reset, or if the packet is from before a reset.
                    try? await central.respond(Self.data([UInt8(responder)] + values), to: packet, slot: slot)
                }
            }
        } catch {
            if error != .cancelled { Issue.record("responder \(responder): \(error)") }
        }
    }

    private func advertise(_ advertising: AdvertisingSet) async throws {
        for await event in try await advertising.subeventEvents() {
            switch event {
            case .dataRequested(let subevents):
                let packets = subevents.map { subevent in
                    let number = log.state.withLock { state in
                        state.sent[subevent, default: 0] += 1
                        return state.sent[subevent, default: 0]
                    }
                    return PeriodicSubeventData(
                        Self.data([UInt8(number & 0xFF), UInt8(number >> 8)]),
                        subevent: subevent,
                        responseSlots: 0..<2
                    )
                }
                try await advertising.send(packets)
            case .response(let response):
                guard response.outcome == .received, let values = Self.values(response.data) else { continue }
                let responder = Int(values[0])
                #expect(Self.place(of: responder) == (response.subevent, response.slot))
                let number = Self.number(values[1...])
                log.state.withLock { state in
                    #expect(number >= state.answered[responder] ?? 0 && number <= state.received[responder] ?? 0)
                    state.answered[responder] = number
                    state.answerCount += 1
                }
            case .notSent, .eventsDropped: Issue.record("\(event)")
            }
        }
    }

    /// Lets controllers fail, and changes the loss of packets, at random times.
    private func cause(faults: Int) async throws {
        let devices = responders + [advertiser]
        for _ in 0..<faults {
            try await world.sleep(for: .milliseconds(dice.number(in: 10...2000)))
            guard let device = dice.pick(devices) else { return }
            switch dice.number(in: 0...3) {
            case 0: device.failWithHardwareError()
            case 1:
                device.vanish()
                try await world.sleep(for: .milliseconds(dice.number(in: 0...1500)))
                device.comeBack()
            default: world.conditions = RadioConditions(loss: Double(dice.number(in: 0...9)) / 10)
            }
        }
        world.conditions = .perfect
    }

    /// Runs the apps during faults, and until each responder has answered after them.
    func run(faults: Int) async throws -> Log.State {
        let sender = try await advertiser.openAdapter()
        let timing = PeriodicSubeventConfiguration(count: Self.responderCount / 2, responseSlotCount: 2)
        let advertising = try await sender.peripheral.startAdvertising(
            AdvertisementConfiguration(
                isConnectable: false,
                isScannable: false,
                periodic: PeriodicAdvertisingConfiguration(interval: .milliseconds(100), subevents: timing)
            )
        )
        let address = try await sender.information.identityAddress
        var adapters = [sender]
        for device in responders { adapters.append(try await device.openAdapter()) }
        let centrals = adapters.dropFirst().map(\.central)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (responder, central) in centrals.enumerated() {
                group.addTask { await respond(responder, central, address) }
            }
            group.addTask {
                do {
                    try await advertise(advertising)
                } catch {
                    if error as? BLEError != .cancelled { Issue.record("the advertiser: \(error)") }
                }
            }
            try await world.sleep(for: .seconds(2))
            try await cause(faults: faults)
            log.state.withLock { $0.answered = [:] }
            while log.state.withLock({ $0.answered.count }) < Self.responderCount {
                try await world.sleep(for: .milliseconds(100))
            }
            group.cancelAll()
        }
        await advertising.stop()
        for adapter in adapters { await adapter.close() }
        return log.state.withLock { $0 }
    }
}

@Suite("Periodic advertising with responses, with faults")
struct PeriodicResponsesSimulationTests {
    @Test("All responders answer again after faults; data keeps its order, and nothing remains", arguments: 1...8)
    func respondersAnswerAgainAfterFaults(seed: Int) throws {
        let state = try LeakCheck.run(seed: UInt64(seed)) { world in
            try await ResponderWorld(world: world).run(faults: 25)
        }
        #expect(state.lossCount > 0 && state.answerCount > 6)
    }
}
