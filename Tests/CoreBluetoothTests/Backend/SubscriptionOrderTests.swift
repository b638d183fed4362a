import BLEATT
import BLEGATT
import BluetoothTesting
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Subscriptions of managers that share a link")
struct SubscriptionOrderTests {
    /// Two managers that are connected to the lamp, and the value that they subscribe to.
    private struct Fixture {
        let pair: LampAndPhone
        let first: TestCentral
        let second: TestCentral
        let peripheral: UUID
        let brightness: DiscoveredCharacteristic

        init(_ world: World) async throws {
            pair = try await LampAndPhone(world)
            first = pair.phone
            second = await pair.phoneDevice.central()
            peripheral = await pair.connect()
            await second.connect(peripheral)
            brightness = try await pair.characteristics(of: peripheral)[0]
        }

        /// Subscribes a manager, and waits for the answer.
        func subscribe(_ central: TestCentral) async {
            let result = await central.configure(.notification, of: brightness, on: peripheral)
            #expect(result.failure == nil)
        }

        /// Sets the configuration of a manager, and reports the answer as `name`.
        func configure(
            _ configuration: ClientConfiguration,
            of central: TestCentral,
            _ answers: Mailroom<String>,
            _ name: String
        ) {
            central.backend.setConfiguration(configuration, of: brightness, on: peripheral) { result in
                answers.post(result.failure == nil ? name : "\(name) failed")
            }
        }

        /// The configurations that the lamp has received since the last use, in their order.
        func takeConfigurations() -> [ClientConfiguration] {
            let configurations = pair.lamp.events.waiting.compactMap { event -> ClientConfiguration? in
                if case .configured(_, _, let configuration) = event { configuration } else { nil }
            }
            pair.lamp.events.removeAll()
            return configurations
        }
    }

    @Test("The calls of a manager complete in order while another manager wants the value")
    func callsOfAManagerCompleteInOrder() throws {
        try World.run(seed: 141) { world in
            let fixture = try await Fixture(world)
            await fixture.subscribe(fixture.second)
            let (central, handle, _) = await fixture.pair.lamp.configured()
            let answers = Mailroom<String>()
            fixture.configure(.notification, of: fixture.first, answers, "on")
            fixture.configure([], of: fixture.first, answers, "off")
            #expect(await answers.next { $0 } == "on")
            #expect(await answers.next { $0 } == "off")
            fixture.configure([], of: fixture.first, answers, "off again")
            #expect(await answers.next { $0 } == "off again")
            fixture.pair.lamp.backend.update([7], of: handle, to: [central.link]) { _ in }
            #expect(await fixture.second.value(of: handle) == [7])
            #expect(fixture.first.events.waiting.allSatisfy { if case .valueReceived = $0 { false } else { true } })
        }
    }

    @Test("A manager that subscribes and unsubscribes while the last subscription ends leaves none at the server")
    func subscriptionDuringTheEndOfTheLastOneEnds() throws {
        try World.run(seed: 142) { world in
            let fixture = try await Fixture(world)
            await fixture.subscribe(fixture.first)
            let answers = Mailroom<String>()
            fixture.configure([], of: fixture.first, answers, "first off")
            fixture.configure(.notification, of: fixture.second, answers, "second on")
            fixture.configure([], of: fixture.second, answers, "second off")
            for answer in ["first off", "second on", "second off"] { #expect(await answers.next { $0 } == answer) }
            try await world.sleep(for: .seconds(1))
            #expect(fixture.takeConfigurations() == [.notification, [], .notification, []])
        }
    }

    @Test("A manager that subscribes and disconnects while the last subscription ends leaves none at the server")
    func disconnectionDuringTheEndOfTheLastSubscription() throws {
        try World.run(seed: 143) { world in
            let fixture = try await Fixture(world)
            await fixture.subscribe(fixture.first)
            let answers = Mailroom<String>()
            fixture.configure([], of: fixture.first, answers, "first off")
            fixture.configure(.notification, of: fixture.second, answers, "second on")
            fixture.second.backend.cancelConnection(fixture.peripheral)
            #expect(await answers.next { $0 } == "first off")
            try await world.sleep(for: .seconds(2))
            #expect(fixture.takeConfigurations() == [.notification, [], .notification, []])
            #expect(await fixture.pair.phoneDevice.adapter.host.linkIdentifiers().count == 1)
        }
    }

    @Test("A manager that wants the value when another one ends its subscription keeps it")
    func otherSubscriptionStays() throws {
        try World.run(seed: 144) { world in
            let fixture = try await Fixture(world)
            await fixture.subscribe(fixture.first)
            let (central, handle, _) = await fixture.pair.lamp.configured()
            let answers = Mailroom<String>()
            fixture.configure(.notification, of: fixture.second, answers, "second on")
            fixture.configure([], of: fixture.first, answers, "first off")
            for _ in 1...2 { await answers.next { $0 } }
            fixture.pair.lamp.backend.update([8], of: handle, to: [central.link]) { _ in }
            #expect(await fixture.second.value(of: handle) == [8])
        }
    }
}
