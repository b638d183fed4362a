import BLE
import BluetoothTesting
import Synchronization
import Testing

/// A shop with one advertiser and 1,000 labels. Each is a whole host with a software controller of its own.
///
/// The labels are divided into 32 subevents with 32 response slots each. The data of a subevent has a record for each
/// of its labels: the slot and a price. A label shows its price, and answers with its number and the price.
private struct Shop {
    static let labelCount = 1000
    static let slotCount = 32
    static let subeventCount = (labelCount + slotCount - 1) / slotCount
    private static let company = CompanyIdentifier(rawValue: 0xFFFF)

    /// What the labels show and the advertiser knows.
    final class State: Sendable {
        /// The prices that labels show, by their numbers.
        let shown = Mutex<[Int: UInt32]>([:])
        let synchronized = Atomic(0)
        let lateResponses = Atomic(0)
    }

    let world: World
    let advertising: AdvertisingSet
    let centrals: [Central]
    let request: PeriodicTrainRequest
    let state = State()

    static func make(in world: World) async throws -> Shop {
        let advertiser = try await world.device("access point").openAdapter()
        let timing = PeriodicSubeventConfiguration(
            count: subeventCount,
            interval: .milliseconds(50),
            responseSlotCount: slotCount,
            responseSlotDelay: .milliseconds(10),
            responseSlotSpacing: .microseconds(1250)
        )
        let advertising = try await advertiser.peripheral.startAdvertising(
            AdvertisementConfiguration(
                isConnectable: false,
                isScannable: false,
                interval: .seconds(1),
                periodic: PeriodicAdvertisingConfiguration(
                    interval: timing.interval * subeventCount,
                    subevents: timing
                )
            )
        )
        var centrals: [Central] = []
        for number in 0..<labelCount {
            centrals.append(try await world.device("label \(number)").openAdapter().central)
        }
        let address = try await advertiser.information.identityAddress
        return Shop(
            world: world,
            advertising: advertising,
            centrals: centrals,
            request: PeriodicTrainRequest(address: address, sid: 0, timeout: .seconds(30))
        )
    }

    static func price(of label: Int, version: UInt32) -> UInt32 { UInt32(label) * 7919 + version }

    private static func bytes(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    private static func number(_ bytes: some Sequence<UInt8>) -> UInt32 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func place(of label: Int) -> (subevent: UInt8, slot: UInt8) {
        (UInt8(label / slotCount), UInt8(label % slotCount))
    }

    // MARK: A label

    /// Receives the subevent of a label until the task is cancelled.
    private func runLabel(_ number: Int) async throws {
        let (subevent, slot) = Self.place(of: number)
        var request = request
        request.subevents = [subevent]
        for try await event in centrals[number].periodicAdvertising(request) {
            switch event {
            case .synchronized: state.synchronized.add(1, ordering: .relaxed)
            case .received(let packet):
                let value = Array(packet.data.manufacturerData.first?.data ?? [])
                let records = stride(from: 0, to: value.count - 4, by: 5)
                guard let record = records.first(where: { value[$0] == slot }) else { continue }
                let price = Self.number(value[(record + 1)...].prefix(4))
                state.shown.withLock { $0[number] = price }
                let answer = AdvertisingData([
                    .manufacturerData(Self.company, [UInt8(number & 0xFF), UInt8(number >> 8)] + Self.bytes(price))
                ])
                try await centrals[number].respond(answer, to: packet, slot: slot)
            case .missed: break
            case .lost, .eventsDropped: Issue.record("label \(number): \(event)")
            }
        }
    }

    // MARK: The advertiser

    /// Sends prices of a version until all labels have answered.
    ///
    /// - Returns: the greatest number of times that a label was sent its price.
    private func update(_ version: UInt32) async throws -> Int {
        var waiting = Set(0..<Self.labelCount)
        var sendings = [Int](repeating: 0, count: Self.labelCount)
        for await event in try await advertising.subeventEvents() {
            switch event {
            case .dataRequested(let subevents):
                var packets: [PeriodicSubeventData] = []
                for subevent in subevents {
                    let first = Int(subevent) * Self.slotCount
                    let labels = (first..<(first + Self.slotCount)).filter(waiting.contains)
                    guard !labels.isEmpty else { continue }
                    for label in labels { sendings[label] += 1 }
                    let records = labels.flatMap { label in
                        [Self.place(of: label).slot] + Self.bytes(Self.price(of: label, version: version))
                    }
                    packets.append(
                        PeriodicSubeventData(
                            AdvertisingData([.manufacturerData(Self.company, records)]),
                            subevent: subevent,
                            responseSlots: 0..<UInt8(Self.slotCount)
                        )
                    )
                }
                if !packets.isEmpty { try await advertising.send(packets) }
            case .response(let response):
                guard response.outcome == .received, let value = response.data.manufacturerData.first?.data else {
                    continue
                }
                let label = Int(Self.number(value.prefix(2)))
                #expect(Self.place(of: label) == (response.subevent, response.slot))
                // An answer to an earlier version may still be on its way.
                guard Self.number(value.dropFirst(2)) == Self.price(of: label, version: version) else { continue }
                waiting.remove(label)
                if waiting.isEmpty { return sendings.max() ?? 0 }
            case .notSent, .eventsDropped: Issue.record("\(event)")
            }
        }
        throw BLEError.closed
    }

    /// Lets all labels find the train, and sends two versions of prices: the first without loss, the second with it.
    ///
    /// - Returns: the greatest number of times that a label was sent its price, for each version.
    func run(loss: Double) async throws -> [Int] {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<Self.labelCount { group.addTask { try await runLabel(number) } }
            while state.synchronized.load(ordering: .relaxed) < Self.labelCount {
                try await world.sleep(for: .milliseconds(100))
            }
            var sendings: [Int] = []
            for (version, loss) in [(UInt32(1), 0), (2, loss)] {
                world.conditions = RadioConditions(loss: loss)
                sendings.append(try await update(version))
                let shown = state.shown.withLock { $0 }
                for label in 0..<Self.labelCount { #expect(shown[label] == Self.price(of: label, version: version)) }
            }
            world.conditions = .perfect
            group.cancelAll()
            while let result = await group.nextResult() {
                if case .failure(let error) = result { #expect(error as? BLEError == .cancelled) }
            }
            await advertising.stop()
            return sendings
        }
    }
}

@Suite("Electronic shelf labels")
struct ElectronicShelfLabelTests {
    @Test("1,000 labels each get their own price and confirm it; repetitions make up for lost packets")
    func thousandLabelsConfirmTheirPrices() throws {
        let sendings = try World.run(seed: 7) { world in
            try await Shop.make(in: world).run(loss: 0.2)
        }
        // The controller requests the next data of some subevents before the answers of their last event.
        #expect(sendings[0] <= 2)
        // With 1,000 labels, some lose the packet or the answer several times.
        #expect(sendings[1] > 2)
    }
}
