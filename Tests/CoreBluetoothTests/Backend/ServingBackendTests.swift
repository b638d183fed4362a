import BLE
import BLEGATT
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Serving on a host")
struct ServingBackendTests {
    @Test("Values wait for room; each is reported when sent, and none is lost or overtaken")
    func valuesWaitForRoomAndNoneIsLostOrOvertaken() throws {
        try World.run(seed: 61) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let brightness = try await pair.characteristics(of: peripheral)[0]
            _ = await pair.phone.configure(.notification, of: brightness, on: peripheral)
            let (central, handle, _) = await pair.lamp.configured()
            let left = Mailroom<Int>()
            for number in 0..<300 {
                let value = [UInt8(truncatingIfNeeded: number), UInt8(number >> 8)]
                pair.lamp.backend.update(value, of: handle, to: [central.link]) { _ in left.post(number) }
            }
            try await world.sleep(for: .milliseconds(1))
            #expect(left.waiting.count < 300)
            for number in 0..<300 {
                #expect(await pair.phone.value(of: handle) == [UInt8(truncatingIfNeeded: number), UInt8(number >> 8)])
            }
            #expect(left.waiting == Array(0..<300))
        }
    }

    /// A lamp and two phones that subscribe to the same value. No packet reaches the second one any more.
    private struct LampAndTwoPhones {
        let pair: LampAndPhone
        let silentDevice: BackendDevice
        let silent: TestCentral
        /// The links to both phones.
        let links: [LinkIdentifier]

        init(_ world: World, _ index: Int, _ configuration: ClientConfiguration) async throws {
            pair = try await LampAndPhone(world)
            silentDevice = try await BackendDevice("silent", in: world)
            silent = await silentDevice.central()
            var links: [LinkIdentifier] = []
            for phone in [pair.phone, silent] {
                let peripheral = await phone.find([Lamp.service]).identifier
                await phone.connect(peripheral)
                let value = try await phone.characteristics(of: Lamp.service, on: peripheral)[index]
                try await phone.configure(configuration, of: value, on: peripheral).get()
                let interval = Duration.milliseconds(15)
                let parameters = ConnectionParameters(interval: interval...interval, supervisionTimeout: .seconds(32))
                try await outcome { phone.backend.updateParameters(parameters, of: peripheral, $0) }.get()
                links.append(await pair.lamp.configured().0.link)
            }
            self.links = links
            let conditions = RadioConditions(isDead: true)
            world.setConditions(conditions, between: pair.lampDevice.device, and: silentDevice.device)
        }
    }

    @Test(
        "A central that takes nothing delays another one once, by 10 s",
        arguments: [(0, .notification), (3, .indication)] as [(Int, ClientConfiguration)]
    )
    func centralThatTakesNothingDelaysAnotherOneOnce(index: Int, configuration: ClientConfiguration) throws {
        try World.run(seed: 70) { world in
            let fixture = try await LampAndTwoPhones(world, index, configuration)
            let (lamp, phone, handle) = (fixture.pair.lamp, fixture.pair.phone, fixture.pair.handle(index))
            let taken = Mailroom<UInt8>()
            for number in UInt8(0)..<100 {
                lamp.backend.update([number], of: handle, to: fixture.links) { _ in taken.post(number) }
            }
            for number in UInt8(0)..<100 { #expect(await phone.value(of: handle) == [number]) }
            #expect(taken.waiting.count < 100)
            try await world.sleep(for: .seconds(10))
            #expect(taken.waiting == Array(0..<100))
            lamp.backend.update([100], of: handle, to: fixture.links) { _ in taken.post(100) }
            #expect(await phone.value(of: handle) == [100])
            // The phone has confirmed an indication, but the lamp may not have received that.
            try await world.sleep(for: .seconds(1))
            #expect(taken.waiting == Array(0...100))
            #expect(await fixture.pair.lampDevice.adapter.host.linkIdentifiers().count == 2)
        }
    }

    @Test("Values wait for a central that is slower than another one, and none is lost")
    func valuesWaitForTheSlowerCentral() throws {
        try World.run(seed: 72) { world in
            let fixture = try await LampAndTwoPhones(world, 0, .notification)
            let (lamp, phone, handle) = (fixture.pair.lamp, fixture.pair.phone, fixture.pair.handle(0))
            let taken = Mailroom<UInt8>()
            for number in UInt8(0)..<100 {
                lamp.backend.update([number], of: handle, to: fixture.links) { _ in taken.post(number) }
            }
            for number in UInt8(0)..<100 { #expect(await phone.value(of: handle) == [number]) }
            #expect(taken.waiting.count < 100)
            world.setConditions(nil, between: fixture.pair.lampDevice.device, and: fixture.silentDevice.device)
            for number in UInt8(0)..<100 { #expect(await fixture.silent.value(of: handle) == [number]) }
            try await world.sleep(for: .milliseconds(500))
            #expect(taken.waiting == Array(0..<100))
        }
    }

    @Test("A central that is too far behind misses values to several centrals, and none to itself")
    func centralThatIsTooFarBehindMissesValuesToSeveralCentrals() throws {
        try World.run(seed: 71) { world in
            let fixture = try await LampAndTwoPhones(world, 0, .notification)
            let (lamp, phone, handle) = (fixture.pair.lamp, fixture.pair.phone, fixture.pair.handle(0))
            for number in UInt16(0)..<400 {
                let value = [UInt8(truncatingIfNeeded: number), UInt8(number >> 8)]
                lamp.backend.update(value, of: handle, to: fixture.links) { _ in }
                #expect(await phone.value(of: handle) == value)
            }
            lamp.backend.update([1], of: handle, to: [fixture.links[1]]) { _ in }
            world.setConditions(nil, between: fixture.pair.lampDevice.device, and: fixture.silentDevice.device)
            var receivedCount = 0
            while await fixture.silent.value(of: handle) != [1] { receivedCount += 1 }
            #expect((256..<400).contains(receivedCount))
        }
    }

    @Test("An update for a disconnected central, or for none, is done at once")
    func updateWithoutReceiversIsDone() throws {
        try World.run(seed: 62) { world in
            let pair = try await LampAndPhone(world)
            let backend = pair.lamp.backend
            #expect(await outcome { backend.update([1], of: pair.handle(0), to: [], $0) }.failure == nil)
            #expect(await outcome { backend.update([1], of: pair.handle(0), to: [.placeholder(9)], $0) }.failure == nil)
        }
    }

    @Test("The end of a central is reported, and one that returns has the same identifier")
    func returningCentralHasTheSameIdentifier() throws {
        try World.run(seed: 63) { world in
            let pair = try await LampAndPhone(world)
            var identifiers: Set<UUID> = []
            for _ in 1...2 {
                let peripheral = await pair.connect()
                let brightness = try await pair.characteristics(of: peripheral)[0]
                _ = await pair.phone.configure(.notification, of: brightness, on: peripheral)
                let central = await pair.lamp.configured().0.identifier
                identifiers.insert(central)
                pair.phone.backend.cancelConnection(peripheral)
                await pair.lamp.events.next {
                    if case .disconnected(let gone) = $0, gone.identifier == central { () } else { nil }
                }
                _ = await pair.phone.disconnected(peripheral)
            }
            #expect(identifiers.count == 1)
        }
    }

    @Test("Two managers on one host get only events of their own values")
    func managersGetOnlyEventsOfTheirOwnValues() throws {
        try World.run(seed: 64) { world in
            let pair = try await LampAndPhone(world)
            let other = await pair.lampDevice.peripheral()
            var definition = Lamp.definition
            definition.uuid = "FFD0"
            let published = try await other.publish(definition)
            let peripheral = await pair.connect()
            let mine = try await pair.phone.characteristics(of: "FFD0", on: peripheral)[0]
            _ = await pair.phone.configure(.notification, of: mine, on: peripheral)
            #expect(await other.configured().1 == published.characteristics[0].valueHandle)
            async let read = pair.phone.read(mine.valueHandle, of: peripheral)
            let (central, request) = await other.access()
            other.backend.answer(request.identifier, on: central.link, .success([5]))
            #expect(await read == .success([5]))
            let strangers = pair.lamp.events.waiting.filter { event in
                switch event {
                case .access, .configured: true
                default: false
                }
            }
            #expect(strangers.isEmpty)
            other.backend.stop()
            try await world.sleep(for: .seconds(3))
            #expect(try await pair.phone.services(["FFD0"], of: peripheral).isEmpty)
            #expect(try await pair.phone.services([Lamp.service], of: peripheral).count == 1)
        }
    }

    @Test("Requests that a released manager has not answered fail at once, and the link stays")
    func unansweredRequestsOfAReleasedManagerFail() throws {
        try World.run(seed: 68) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let (backend, handle) = (pair.phone.backend, pair.handle(0))
            let asked = world.elapsed
            async let read = outcome { backend.read(handle, of: peripheral, $0) }
            _ = await pair.lamp.access()
            pair.lamp.backend.stop()
            #expect(await read.failure != nil)
            #expect(world.elapsed - asked < .seconds(5))
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().count == 1)
        }
    }

    @Test("A missing included service, or a value that is too long, is refused")
    func missingIncludedServiceOrTooLongValueIsRefused() throws {
        try World.run(seed: 65) { world in
            let pair = try await LampAndPhone(world)
            let backend = pair.lamp.backend
            let dangling = ServiceDefinition(uuid: "FFD0", includes: [.handle(0x0F00)])
            #expect(await outcome { backend.publish(dangling, $0) }.failure == .core(.invalidParameters))
            let long = CharacteristicDefinition(
                uuid: "FFD1",
                properties: [.read],
                permissions: [.read],
                value: .stored([UInt8](repeating: 0, count: 513))
            )
            let service = ServiceDefinition(uuid: "FFD0", characteristics: [long])
            #expect(await outcome { backend.publish(service, $0) }.failure == .core(.invalidParameters))
        }
    }

    @Test("A service includes one that is published by the call before it, or is refused if that has failed")
    func serviceIncludesOneThatIsPublishedBeforeIt() throws {
        try World.run(seed: 69) { world in
            let pair = try await LampAndPhone(world)
            let backend = pair.lamp.backend
            let (battery, missing) = (LocalServiceHandle(), LocalServiceHandle())
            backend.publish(ServiceDefinition(uuid: "180F", isPrimary: false)) { result in
                if case .success(let published) = result { battery.set(published.handle) }
            }
            let outer = ServiceDefinition(uuid: "FFD0")
            let service = try await outcome { backend.publish(outer, including: [battery], $0) }.get()
            let refused = await outcome { backend.publish(outer, including: [battery, missing], $0) }
            #expect(refused.failure == .core(.invalidParameters))
            let peripheral = await pair.connect()
            let range = HandleRange(start: service.handle, end: service.endHandle)
            let phone = pair.phone.backend
            let included = try await outcome { phone.discoverIncludedServices(in: range, of: peripheral, $0) }.get()
            #expect(included.map(\.uuid) == ["180F"])
            #expect(included.map(\.handle) == [battery.value])
        }
    }

    @Test("Advertising continues while a central is connected, and ends when it is stopped")
    func advertisingContinuesDuringAConnectionUntilItIsStopped() throws {
        try World.run(seed: 66) { world in
            let pair = try await LampAndPhone(world)
            let scanner = try await BackendDevice("scanner", in: world)
            let watcher = await scanner.central()
            _ = await pair.connect()
            #expect(await watcher.find([Lamp.service]).name == "lamp")
            pair.lamp.backend.stopAdvertising()
            try await world.sleep(for: .seconds(1))
            watcher.events.removeAll()
            watcher.backend.scan(ScanRequest())
            try await world.sleep(for: .seconds(10))
            #expect(watcher.events.waiting.isEmpty)
        }
    }

    @Test("A failing controller ends advertising; services stay until they are removed")
    func failingControllerEndsAdvertisingAndServicesStay() throws {
        try World.run(seed: 67) { world in
            let pair = try await LampAndPhone(world)
            pair.lampDevice.device.vanish()
            await pair.lamp.events.next { if case .stateChanged(.resetting) = $0 { () } else { nil } }
            pair.lampDevice.device.comeBack()
            await pair.lamp.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
            pair.phone.backend.scan(ScanRequest())
            try await world.sleep(for: .seconds(10))
            #expect(pair.phone.events.waiting.isEmpty)
            try await pair.lamp.advertise("lamp", [Lamp.service])
            let peripheral = await pair.phone.discovery().identifier
            await pair.phone.connect(peripheral)
            #expect(try await pair.phone.services([Lamp.service], of: peripheral).count == 1)
        }
    }

    @Test(
        "The desired latency is requested from the central",
        arguments: [
            (CBPeripheralManagerConnectionLatency.low, Duration.milliseconds(15)...(.milliseconds(30))),
            (.medium, .milliseconds(60)...(.milliseconds(90))),
            (.high, .milliseconds(180)...(.milliseconds(240))),
        ]
    )
    func desiredLatencyIsRequestedFromTheCentral(
        latency: CBPeripheralManagerConnectionLatency,
        interval: ClosedRange<Duration>
    ) throws {
        try World.run(seed: 68) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            async let read = pair.phone.read(pair.handle(0), of: peripheral)
            let (central, request) = await pair.lamp.access()
            pair.lamp.backend.setLatency(latency, of: central.identifier)
            try await world.sleep(for: .seconds(3))
            pair.lamp.backend.answer(request.identifier, on: central.link, .success([]))
            _ = await read
            let host = pair.lampDevice.adapter.host
            let link = try #require(await host.linkIdentifiers().first)
            #expect(interval.contains(try await host.information(on: link).parameters.interval))
        }
    }
}
