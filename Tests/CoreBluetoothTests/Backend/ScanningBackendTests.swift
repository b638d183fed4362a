import BLE
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Testing

@testable import CoreBluetooth

@Suite("Scanning on a host")
struct ScanningBackendTests {
    @Test func deviceIsDiscoveredOncePerScanAndAgainInANewScan() throws {
        try World.run(seed: 1) { world in
            let pair = try await LampAndPhone(world)
            let phone = pair.phone
            phone.backend.scan(ScanRequest())
            try await world.sleep(for: .seconds(20))
            let discoveries = phone.events.waiting.discoveries
            // The advertisement contains everything: its scan response is empty and changes nothing.
            #expect(discoveries.count == 1)
            #expect(discoveries.first?.name == "lamp")
            #expect(discoveries.first?.content.data.localName == "lamp")
            #expect(discoveries.first?.content.data.serviceUUIDs == [Lamp.service])
            #expect(discoveries.first?.isConnectable == true)
            #expect(discoveries.first?.rssi != nil)
            phone.events.removeAll()
            phone.backend.scan(ScanRequest())
            #expect(await phone.discovery().identifier == discoveries.first?.identifier)
        }
    }

    @Test("A name in the scan response causes a second discovery with both")
    func nameInTheScanResponseCausesASecondDiscovery() throws {
        try World.run(seed: 2) { world in
            let pair = try await LampAndPhone(world)
            let services: [BluetoothUUID] = ["0001FFE0-0000-1000-8000-00805F9B34FA"]
            pair.lamp.backend.stopAdvertising()
            try await pair.lamp.advertise("a lamp in the hall", services)
            pair.phone.backend.scan(ScanRequest())
            try await world.sleep(for: .seconds(20))
            let discoveries = pair.phone.events.waiting.discoveries
            #expect(discoveries.map(\.content.data.localName) == [nil, "a lamp in the hall"])
            #expect(discoveries.map(\.content.data.serviceUUIDs) == [services, services])
            #expect(discoveries.map(\.name) == [nil, "a lamp in the hall"])
        }
    }

    @Test("A change of an advertiser causes a discovery, and the filter is applied again")
    func changeOfAnAdvertiserCausesADiscovery() throws {
        try World.run(seed: 3) { world in
            let pair = try await LampAndPhone(world)
            pair.phone.backend.scan(ScanRequest(services: ["AAAA"]))
            try await world.sleep(for: .seconds(5))
            #expect(pair.phone.events.waiting.isEmpty)
            pair.lamp.backend.stopAdvertising()
            try await pair.lamp.advertise("lamp", ["AAAA"])
            #expect(await pair.phone.discovery().content.data.serviceUUIDs == ["AAAA"])
            pair.lamp.backend.stopAdvertising()
            try await pair.lamp.advertise("lamp 2", ["AAAA"])
            #expect(await pair.phone.discovery().name == "lamp 2")
        }
    }

    @Test("A peripheral whose connection has ended is discovered again in the same scan", arguments: [true, false])
    func disconnectedPeripheralIsDiscoveredAgain(isEndedByPeer: Bool) throws {
        try World.run(seed: 6) { world in
            let pair = try await LampAndPhone(world)
            pair.phone.backend.scan(ScanRequest(services: [Lamp.service]))
            let peripheral = await pair.phone.discovery().identifier
            await pair.phone.connect(peripheral)
            try await world.sleep(for: .seconds(5))
            #expect(pair.phone.events.waiting.discoveries.isEmpty)
            if isEndedByPeer {
                pair.lamp.backend.disconnect(await pair.lamp.connected().identifier)
            } else {
                pair.phone.backend.cancelConnection(peripheral)
            }
            _ = await pair.phone.disconnected(peripheral)
            #expect(await pair.phone.discovery().identifier == peripheral)
            await pair.phone.connect(peripheral)
        }
    }

    @Test("A scan that the controller refuses is started again, unless the app has stopped it")
    func refusedScanIsStartedAgain() throws {
        try World.run(seed: 7) { world in
            let pair = try await LampAndPhone(world)
            let (backend, events) = (pair.phone.backend, pair.phone.events)
            pair.phoneDevice.device.faults.refusal = 1
            backend.scan(ScanRequest(), number: 1)
            try await world.sleep(for: .milliseconds(500))
            backend.stopScan()
            pair.phoneDevice.device.faults.refusal = 0
            try await world.sleep(for: .seconds(60))
            #expect(events.waiting.discoveries.isEmpty)

            pair.phoneDevice.device.faults.refusal = 1
            backend.scan(ScanRequest(services: [Lamp.service]), number: 2)
            try await world.sleep(for: .seconds(100))
            #expect(events.waiting.discoveries.isEmpty)
            pair.phoneDevice.device.faults.refusal = 0
            let start = world.elapsed
            #expect(await pair.phone.discovery().scanNumber == 2)
            #expect(world.elapsed - start <= HostCentral.Scan.longestRetryDelay + .seconds(5))
            backend.stopScan()
            try await world.sleep(for: .seconds(60))
            #expect(events.waiting.discoveries.isEmpty)
        }
    }

    @Test("If duplicates are allowed, each packet is a discovery")
    func eachPacketIsADiscoveryIfDuplicatesAreAllowed() throws {
        try World.run(seed: 4) { world in
            let pair = try await LampAndPhone(world)
            pair.phone.backend.scan(ScanRequest(allowsDuplicates: true))
            try await world.sleep(for: .seconds(10))
            let discoveries = pair.phone.events.waiting.discoveries
            #expect(discoveries.count > 50)
            #expect(Set(discoveries.map(\.identifier)).count == 1)
            #expect(zip(discoveries, discoveries.dropFirst()).allSatisfy { $0.time <= $1.time })
            pair.phone.backend.stopScan()
            try await world.sleep(for: .seconds(1))
            pair.phone.events.removeAll()
            try await world.sleep(for: .seconds(10))
            #expect(pair.phone.events.waiting.isEmpty)
        }
    }

    @Test(
        "A filter finds a service in any list, including solicited ones",
        arguments: [
            ([.serviceUUIDs(["180D"], isComplete: false)], ["180D"], [], true),
            ([.serviceUUIDs(["180D"], isComplete: true)], ["0000180D-0000-1000-8000-00805F9B34FB"], [], true),
            ([.serviceUUIDs(["0001180D"], isComplete: false)], ["0001180D"], [], true),
            (
                [.serviceUUIDs(["E20A39F4-73F5-4BC4-A12F-17D1AD07A961"], isComplete: false)],
                ["180D", "E20A39F4-73F5-4BC4-A12F-17D1AD07A961"], [], true
            ),
            ([.serviceUUIDs(["180D"], isComplete: true)], ["180F"], [], false),
            ([.serviceUUIDs(["180D"], isComplete: true)], [], ["180D"], true),
            ([.solicitedServiceUUIDs(["180D"])], [], ["180D"], true),
            ([.solicitedServiceUUIDs(["180D"])], ["180D"], [], false),
            ([.solicitedServiceUUIDs(["180D"])], ["180F"], ["180D"], true),
            ([.serviceUUIDs(["180D"], isComplete: true)], ["180F"], ["180D"], false),
            ([], [], [], true),
        ] as [([AdvertisingData.Structure], [BluetoothUUID], [BluetoothUUID], Bool)]
    )
    func filterFindsAServiceInAnyList(
        structures: [AdvertisingData.Structure],
        services: [BluetoothUUID],
        solicited: [BluetoothUUID],
        isFound: Bool
    ) {
        let filter = ScanFilter(ScanRequest(services: services, solicitedServices: solicited))
        #expect(filter.matches(AdvertisingData(structures)) == isFound)
    }

    @Test("Two managers scan independently, and identify a device by the same identifier")
    func managersScanIndependentlyWithTheSameIdentifiers() throws {
        try World.run(seed: 5) { world in
            let pair = try await LampAndPhone(world)
            let other = await pair.phoneDevice.central()
            pair.phone.backend.scan(ScanRequest(services: ["AAAA"]))
            let found = await other.find([Lamp.service])
            #expect(pair.phone.events.waiting.isEmpty)
            pair.phone.backend.scan(ScanRequest())
            #expect(await pair.phone.discovery().identifier == found.identifier)
            #expect(pair.phone.backend.knownPeripherals([found.identifier]).map(\.name) == ["lamp"])
        }
    }
}

extension [CentralEvent] {
    var discoveries: [Discovery] {
        compactMap { if case .discovered(let discovery) = $0 { discovery } else { nil } }
    }
}
