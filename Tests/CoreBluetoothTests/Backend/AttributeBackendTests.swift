import BLE
import BLEATT
import BLEGATT
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("GATT between two hosts")
struct AttributeBackendTests {
    // MARK: Discovery

    @Test("Services are discovered all or by type, and none if there are none")
    func servicesAreDiscoveredAllOrByType() throws {
        try World.run(seed: 31) { world in
            let pair = try await LampAndPhone(world)
            _ = try await pair.lamp.publish(ServiceDefinition(uuid: "FFD0"))
            let peripheral = await pair.connect()
            let all = try await pair.phone.services(nil, of: peripheral)
            #expect(all.map(\.uuid) == [.genericAccessService, .genericAttributeService, Lamp.service, "FFD0"])
            let some = try await pair.phone.services(["FFD0", "AAAA", Lamp.service], of: peripheral)
            #expect(some.map(\.uuid) == ["FFD0", Lamp.service])
            #expect(try await pair.phone.services(["AAAA"], of: peripheral).isEmpty)
        }
    }

    @Test("Included services and descriptors are discovered")
    func includedServicesAndDescriptorsAreDiscovered() throws {
        try World.run(seed: 32) { world in
            let pair = try await LampAndPhone(world)
            let battery = try await pair.lamp.publish(ServiceDefinition(uuid: "180F", isPrimary: false))
            _ = try await pair.lamp.publish(ServiceDefinition(uuid: "FFD0", includes: [.handle(battery.handle)]))
            let peripheral = await pair.connect()
            let service = try #require(try await pair.phone.services(["FFD0"], of: peripheral).first)
            let range = HandleRange(start: service.handle, end: service.endHandle)
            let backend = pair.phone.backend
            let included = try await outcome { backend.discoverIncludedServices(in: range, of: peripheral, $0) }.get()
            #expect(included.map(\.uuid) == ["180F"])
            #expect(included.map(\.handle) == [battery.handle])
            let characteristics = try await pair.characteristics(of: peripheral)
            #expect(characteristics.map(\.uuid) == [Lamp.brightness, Lamp.text, Lamp.version, Lamp.level])
            let descriptors = try #require(characteristics[0].descriptorRange)
            let found = try await outcome { backend.discoverDescriptors(in: descriptors, of: peripheral, $0) }.get()
            #expect(found.map(\.uuid) == [.clientCharacteristicConfiguration])
            #expect(characteristics[1].descriptorRange == nil)
        }
    }

    // MARK: Values

    @Test("The host answers reads of a stored value without the app; a write without permission is refused")
    func hostAnswersReadsOfAStoredValueWithoutTheApp() throws {
        try World.run(seed: 33) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            #expect(await pair.phone.read(pair.handle(2), of: peripheral) == .success(Array("1.0".utf8)))
            let refused = await pair.phone.write([1], to: pair.handle(2), of: peripheral)
            #expect(refused.failure == .attribute(.writeNotPermitted))
            #expect(pair.lamp.events.waiting.allSatisfy { if case .access = $0 { false } else { true } })
        }
    }

    @Test(arguments: [0, 1, 515, 516, 512])
    func valueThatFitsIsReadWithOneRequestAndFurtherAnswersAreIgnored(length: Int) throws {
        try World.run(seed: 34) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let value = (0..<min(length, 512)).map { UInt8(truncatingIfNeeded: $0) }
            async let read = pair.phone.read(pair.handle(0), of: peripheral)
            let (central, request) = await pair.lamp.access()
            #expect(central.mtu == 517)
            #expect(request.kind == .read(pair.handle(0), offset: 0))
            pair.lamp.backend.answer(request.identifier, on: central.link, .success(value))
            // Further answers are ignored.
            pair.lamp.backend.answer(request.identifier, on: central.link, .success([1]))
            #expect(await read == .success(value))
        }
    }

    @Test func longValueIsCutAt512BytesAndAnErrorOfTheAppEndsTheRead() throws {
        try World.run(seed: 35) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let value = [UInt8](repeating: 7, count: 600)
            async let read = pair.phone.read(pair.handle(0), of: peripheral)
            let (central, first) = await pair.lamp.access()
            pair.lamp.backend.answer(first.identifier, on: central.link, .success(value))
            // 516 bytes arrived; values end at 512.
            #expect(await read == .success(Array(value.prefix(512))))
            async let refused = pair.phone.read(pair.handle(0), of: peripheral)
            let (_, second) = await pair.lamp.access()
            pair.lamp.backend.answer(second.identifier, on: central.link, .failure(ATTErrorCode(rawValue: 0x80)))
            #expect(await refused == .failure(.attribute(ATTErrorCode(rawValue: 0x80))))
        }
    }

    @Test func writeIsOneAccessThatTheAppAnswersOrRefuses() throws {
        try World.run(seed: 36) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            async let short = pair.phone.write([1, 2], to: pair.handle(1), of: peripheral)
            let (central, request) = await pair.lamp.access()
            #expect(
                request.kind
                    == .write(AttributeWrite(handle: pair.handle(1), offset: 0, value: [1, 2]), isCommand: false)
            )
            pair.lamp.backend.answer(request.identifier, on: central.link, .success([]))
            #expect(await short.failure == nil)
            async let refused = pair.phone.write([3], to: pair.handle(1), of: peripheral)
            let (_, second) = await pair.lamp.access()
            pair.lamp.backend.answer(second.identifier, on: central.link, .failure(.invalidAttributeValueLength))
            #expect(await refused.failure == .attribute(.invalidAttributeValueLength))
        }
    }

    @Test("A value longer than the MTU is prepared and executed: one access with all parts")
    func valueLongerThanTheMTUIsPreparedAndExecuted() throws {
        try World.run(seed: 37) { world in
            let lampDevice = try await BackendDevice("lamp", in: world)
            let lamp = await lampDevice.peripheral()
            let published = try await lamp.publish(Lamp.definition)
            try await lamp.advertise("lamp", [Lamp.service])
            let device = world.device("phone")
            let adapter = try await device.openAdapter { $0.mtu = 64 }
            let phoneDevice = BackendDevice(device: device, adapter: adapter, in: world, store: .inMemory())
            let phone = await phoneDevice.central()
            let peripheral = await phone.find().identifier
            await phone.connect(peripheral)
            let value = (0..<300).map { UInt8(truncatingIfNeeded: $0) }
            let handle = published.characteristics[1].valueHandle
            async let written = phone.write(value, to: handle, of: peripheral)
            let (central, request) = await lamp.access()
            #expect(central.mtu == 64)
            guard case .execute(let parts) = request.kind else {
                Issue.record("\(request.kind)")
                return
            }
            #expect(AttributeWrite.joined(parts) == [AttributeWrite(handle: handle, offset: 0, value: value)])
            lamp.backend.answer(request.identifier, on: central.link, .success([]))
            #expect(await written.failure == nil)
            // A value longer than one response is read in parts.
            async let read = phone.read(handle, of: peripheral)
            for offset in [0, 63, 126, 189, 252] {
                let (_, part) = await lamp.access()
                #expect(part.kind == .read(handle, offset: offset))
                lamp.backend.answer(part.identifier, on: central.link, .success(Array(value[offset...])))
            }
            #expect(await read == .success(value))
        }
    }

    @Test("Writes without response arrive in order, and each reports when there is room for the next")
    func writesWithoutResponseArriveInOrderAndReportRoom() throws {
        try World.run(seed: 38) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let sent = Mailroom<Int>()
            for number in 0..<200 {
                pair.phone.backend.writeWithoutResponse(
                    [UInt8(number)],
                    to: pair.handle(0),
                    of: peripheral
                ) { result in
                    if case .success = result { sent.post(number) }
                }
            }
            for number in 0..<200 {
                let (_, request) = await pair.lamp.access()
                let write = AttributeWrite(handle: pair.handle(0), offset: 0, value: [UInt8(number)])
                #expect(request.kind == .write(write, isCommand: true))
            }
            #expect(sent.waiting == Array(0..<200))
        }
    }

    @Test("A write without response before a connection is cancelled still arrives")
    func writeWithoutResponseBeforeACancellationStillArrives() throws {
        try World.run(seed: 49) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            for number in 0..<100 {
                pair.phone.backend.writeWithoutResponse([UInt8(number)], to: pair.handle(0), of: peripheral) { _ in }
            }
            pair.phone.backend.cancelConnection(peripheral)
            #expect(await pair.phone.disconnected(peripheral).error == nil)
            let written = pair.lamp.events.waiting.compactMap { event -> UInt8? in
                guard case .access(_, let request) = event, case .write(let write, true) = request.kind else {
                    return nil
                }
                return write.value.first
            }
            #expect(written == Array(0..<100))
        }
    }

    @Test("Requests are answered in their order")
    func requestsAreAnsweredInTheirOrder() throws {
        try World.run(seed: 39) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let answers = Mailroom<Int>()
            for number in 0..<20 {
                pair.phone.backend.read(pair.handle(2), of: peripheral) { _ in answers.post(number) }
            }
            for number in 0..<20 { #expect(await answers.next { $0 } == number) }
        }
    }

    @Test("A request that the app does not answer ends the link after 30 s; a late answer is ignored")
    func unansweredRequestEndsTheLinkAfter30Seconds() throws {
        try World.run(seed: 40) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let start = world.elapsed
            pair.phone.backend.read(pair.handle(0), of: peripheral) { _ in }
            let (central, request) = await pair.lamp.access()
            let disconnection = await pair.phone.disconnected(peripheral)
            #expect(disconnection.error == .core(.connectionTimeout))
            #expect(world.elapsed - start >= .seconds(30))
            await pair.lamp.events.next {
                if case .disconnected(let gone) = $0, gone.link == central.link { () } else { nil }
            }
            pair.lamp.backend.answer(request.identifier, on: central.link, .success([]))
        }
    }

    // MARK: Notifications

    @Test("A subscription that starts before the end of the last one is answered stays")
    func subscribingAgainBeforeUnsubscribingIsAnsweredStays() throws {
        try World.run(seed: 45) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let brightness = try await pair.characteristics(of: peripheral)[0]
            _ = await pair.phone.configure(.notification, of: brightness, on: peripheral)
            let (central, handle, _) = await pair.lamp.configured()
            async let end = pair.phone.configure([], of: brightness, on: peripheral)
            async let again = pair.phone.configure(.notification, of: brightness, on: peripheral)
            #expect(await end.failure == nil)
            #expect(await again.failure == nil)
            pair.lamp.backend.update([5], of: handle, to: [central.link]) { _ in }
            #expect(await pair.phone.value(of: handle) == [5])
        }
    }

    @Test("Notifications arrive in order, from the start of the subscription to its end")
    func notificationsArriveInOrderUntilTheEndOfTheSubscription() throws {
        try World.run(seed: 41) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let brightness = try await pair.characteristics(of: peripheral)[0]
            #expect(await pair.phone.configure(.notification, of: brightness, on: peripheral).failure == nil)
            let (central, handle, configuration) = await pair.lamp.configured()
            #expect(handle == brightness.valueHandle && configuration == .notification)
            for number in 0..<100 {
                pair.lamp.backend.update([UInt8(number)], of: handle, to: [central.link]) { _ in }
            }
            for number in 0..<100 { #expect(await pair.phone.value(of: handle) == [UInt8(number)]) }
            #expect(await pair.phone.configure([], of: brightness, on: peripheral).failure == nil)
            #expect(await pair.lamp.configured().2 == [])
            pair.lamp.backend.update([1], of: handle, to: [central.link]) { _ in }
            try await world.sleep(for: .seconds(5))
            #expect(pair.phone.events.waiting.allSatisfy { if case .valueReceived = $0 { false } else { true } })
        }
    }

    @Test("A write right after a subscription is sent after it")
    func writeRightAfterASubscriptionIsSentAfterIt() throws {
        try World.run(seed: 42) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let characteristics = try await pair.characteristics(of: peripheral)
            pair.lamp.events.removeAll()
            pair.phone.backend.setConfiguration(.notification, of: characteristics[0], on: peripheral) { _ in }
            pair.phone.backend.write([1], to: pair.handle(1), of: peripheral) { _ in }
            _ = await pair.lamp.access()
            #expect(pair.lamp.events.waiting.contains { if case .configured = $0 { true } else { false } })
        }
    }

    @Test("Indications are confirmed one after the other; a value longer than 512 bytes is truncated")
    func indicationsAreConfirmedOneAfterTheOther() throws {
        try World.run(seed: 43) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let level = try await pair.characteristics(of: peripheral)[3]
            #expect(await pair.phone.configure(.indication, of: level, on: peripheral).failure == nil)
            let (central, handle, configuration) = await pair.lamp.configured()
            #expect(configuration == .indication)
            let values = (1...3).map { [UInt8](repeating: $0, count: 600) }
            for value in values { pair.lamp.backend.update(value, of: handle, to: [central.link]) { _ in } }
            for value in values { #expect(await pair.phone.value(of: handle) == Array(value.prefix(512))) }
        }
    }

    @Test("A value without Client Characteristic Configuration cannot be subscribed to")
    func valueWithoutAClientConfigurationCannotBeSubscribedTo() throws {
        try World.run(seed: 44) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let text = try await pair.characteristics(of: peripheral)[1]
            let result = await pair.phone.configure(.notification, of: text, on: peripheral)
            #expect(result.failure == .attribute(.attributeNotFound))
        }
    }

    @Test("Two managers subscribe to one value, which is notified until both have unsubscribed")
    func sharedValueIsNotifiedUntilBothHaveUnsubscribed() throws {
        try World.run(seed: 45) { world in
            let pair = try await LampAndPhone(world)
            let other = await pair.phoneDevice.central()
            let peripheral = await pair.connect()
            other.backend.connect(peripheral, ConnectionRequest())
            await other.connected(peripheral)
            let brightness = try await pair.characteristics(of: peripheral)[0]
            for phone in [pair.phone, other] {
                #expect(await phone.configure(.notification, of: brightness, on: peripheral).failure == nil)
            }
            let (central, handle, _) = await pair.lamp.configured()
            #expect(await pair.phone.configure([], of: brightness, on: peripheral).failure == nil)
            pair.lamp.backend.update([9], of: handle, to: [central.link]) { _ in }
            #expect(await other.value(of: handle) == [9])
            #expect(pair.phone.events.waiting.allSatisfy { if case .valueReceived = $0 { false } else { true } })
            other.backend.cancelConnection(peripheral)
            #expect(await pair.lamp.configured().2 == [])
        }
    }

    @Test("A change of the service ends a subscription: values of the next service reach its own subscribers only")
    func changeOfTheServiceEndsASubscription() throws {
        try World.run(seed: 48) { world in
            let pair = try await LampAndPhone(world)
            let other = await pair.phoneDevice.central()
            let peripheral = await pair.connect()
            await other.connect(peripheral)
            try await world.sleep(for: .seconds(3))
            let former = try await pair.characteristics(of: peripheral)[0]
            #expect(await pair.phone.configure(.notification, of: former, on: peripheral).failure == nil)
            pair.lamp.backend.removeService(at: pair.published.handle)
            for phone in [pair.phone, other] { _ = await phone.changedServices(of: peripheral) }
            var definition = Lamp.definition
            definition.handle = pair.published.handle
            _ = try await pair.lamp.publish(definition)
            for phone in [pair.phone, other] { _ = await phone.changedServices(of: peripheral) }
            let present = try await other.characteristics(of: Lamp.service, on: peripheral)[0]
            #expect(present == former)
            pair.lamp.events.removeAll()
            #expect(await other.configure(.notification, of: present, on: peripheral).failure == nil)
            let (central, handle, _) = await pair.lamp.configured()
            pair.lamp.backend.update([9], of: handle, to: [central.link]) { _ in }
            #expect(await other.value(of: handle) == [9])
            #expect(pair.phone.events.waiting.allSatisfy { if case .valueReceived = $0 { false } else { true } })
        }
    }

    // MARK: The rest

    @Test("Services that change are reported with their handles")
    func changedServicesAreReportedWithTheirHandles() throws {
        try World.run(seed: 46) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            try await world.sleep(for: .seconds(3))
            let added = try await pair.lamp.publish(ServiceDefinition(uuid: "FFD0"))
            let range = await pair.phone.changedServices(of: peripheral)
            #expect(range == HandleRange(start: added.handle, end: added.endHandle))
            pair.lamp.backend.removeService(at: added.handle)
            #expect(await pair.phone.changedServices(of: peripheral) == range)
        }
    }

    @Test("The signal strength is read while connected, and only then")
    func signalStrengthIsReadOnlyWhileConnected() throws {
        try World.run(seed: 47) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let backend = pair.phone.backend
            let rssi = try await outcome { backend.readRSSI(of: peripheral, $0) }.get()
            #expect(rssi != nil)
            backend.cancelConnection(peripheral)
            _ = await pair.phone.disconnected(peripheral)
            #expect(await outcome { backend.readRSSI(of: peripheral, $0) } == .failure(.core(.notConnected)))
        }
    }
}

extension Result {
    var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
