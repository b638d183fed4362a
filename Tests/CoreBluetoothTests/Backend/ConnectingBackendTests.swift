import BLE
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Connecting on a host")
struct ConnectingBackendTests {
    @Test func connectionReportsItsMTUAndItsName() throws {
        try World.run(seed: 11) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.phone.find().identifier
            pair.phone.backend.connect(peripheral, ConnectionRequest())
            let mtu = await pair.phone.events.next {
                if case .connected(peripheral, let mtu, _) = $0 { mtu } else { nil }
            }
            #expect(mtu == 517)
            #expect(
                pair.phone.backend.connectedPeripherals(withServices: [Lamp.service]).map(\.identifier) == [peripheral]
            )
            #expect(pair.phone.backend.connectedPeripherals(withServices: ["AAAA"]).isEmpty)
            // The Device Name equals the advertised name. Objects of the app decide whether it has changed for them.
            try await world.sleep(for: .seconds(3))
            #expect(pair.phone.events.waiting.names == ["lamp"])
        }
    }

    @Test("A name that only the scan response contains is reported after connecting, to each manager on the link")
    func nameIsReportedToEachManagerOnTheLink() throws {
        try World.run(seed: 61) { world in
            let lamp = try await world.peripheral("lamp", services: [])
            let phone = try await BackendDevice("phone", in: world)
            let (first, second) = (await phone.central(), await phone.central())
            first.backend.scan(ScanRequest())
            let discovery = await first.discovery()
            #expect(discovery.name == nil)
            // The manager does not deliver this one if the app has stopped the scan.
            #expect(await first.discovery().name == "lamp")
            let peripheral = discovery.identifier
            await first.connect(peripheral)
            try await world.sleep(for: .seconds(3))
            #expect(first.events.waiting.names == ["lamp"])
            await second.connect(peripheral)
            try await world.sleep(for: .seconds(3))
            #expect(first.events.waiting.names == ["lamp"])
            #expect(second.events.waiting.names == ["lamp"])
            withExtendedLifetime(lamp) {}
        }
    }

    @Test("A Device Name that differs from the advertised one is reported and stored")
    func differentDeviceNameIsReportedAndStored() throws {
        try World.run(seed: 12) { world in
            let pair = try await LampAndPhone(world)
            pair.lamp.backend.stopAdvertising()
            try await pair.lamp.advertise("hall", [Lamp.service])
            let peripheral = await pair.phone.find().identifier
            pair.phone.backend.connect(peripheral, ConnectionRequest())
            let name = await pair.phone.events.next {
                if case .nameChanged(peripheral, let name) = $0 { name } else { nil }
            }
            #expect(name == "lamp")
            #expect(pair.phone.backend.knownPeripherals([peripheral]).map(\.name) == ["lamp"])
            pair.phone.backend.cancelConnection(peripheral)
            #expect(await pair.phone.disconnected(peripheral).error == nil)
            #expect(await pair.phone.find().name == "lamp")
        }
    }

    @Test("Connecting never times out, and several peripherals can be waited for at the same time")
    func connectingNeverTimesOutForSeveralPeripherals() throws {
        try World.run(seed: 13, limit: .seconds(20_000)) { world in
            let pair = try await LampAndPhone(world)
            let other = try await BackendDevice("other", in: world)
            let peripheral = await pair.phone.find().identifier
            let absent = pair.phoneDevice.open.peers.identifier(of: other.device.address)
            pair.lamp.backend.stopAdvertising()
            try await world.sleep(for: .seconds(1))
            pair.phone.backend.connect(peripheral, ConnectionRequest())
            pair.phone.backend.connect(absent, ConnectionRequest())
            try await world.sleep(for: .seconds(7200))
            #expect(pair.phone.events.waiting.isEmpty)
            try await other.peripheral().advertise("other", [])
            await pair.phone.connected(absent)
            try await pair.lamp.advertise("lamp", [])
            await pair.phone.connected(peripheral)
        }
    }

    @Test("A pending connection is cancelled with one disconnection without an error")
    func pendingConnectionIsCancelledWithoutAnError() throws {
        try World.run(seed: 14) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.phone.find().identifier
            pair.lamp.backend.stopAdvertising()
            try await world.sleep(for: .seconds(1))
            pair.phone.backend.connect(peripheral, ConnectionRequest())
            pair.phone.backend.cancelConnection(peripheral)
            pair.phone.backend.cancelConnection(peripheral)
            #expect(await pair.phone.disconnected(peripheral).error == nil)
            try await pair.lamp.advertise("lamp", [])
            try await world.sleep(for: .seconds(10))
            #expect(pair.phone.events.waiting.isEmpty)
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().isEmpty)
        }
    }

    @Test("A connection with a timeout fails at that time and leaves nothing behind")
    func connectionWithATimeoutFailsAndLeavesNothingBehind() throws {
        try World.run(seed: 51) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.phone.find().identifier
            pair.lamp.backend.stopAdvertising()
            try await world.sleep(for: .seconds(1))
            let start = world.elapsed
            pair.phone.backend.connect(peripheral, ConnectionRequest(timeout: .seconds(5)))
            let failure = await pair.phone.events.next { event in
                if case .connectionFailed(peripheral, let error) = event { error } else { nil }
            }
            #expect(failure == .core(.connectionTimeout) && world.elapsed - start == .seconds(5))
            try await pair.lamp.advertise("lamp", [])
            try await world.sleep(for: .seconds(10))
            #expect(pair.phone.events.waiting.isEmpty)
            pair.phone.backend.connect(peripheral, ConnectionRequest(timeout: .seconds(5)))
            await pair.phone.connected(peripheral)
            try await world.sleep(for: .seconds(10))
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().count == 1)
        }
    }

    @Test("The timeout of the last request counts, from that request", arguments: [nil, 2, 60] as [Int?])
    func timeoutOfTheLastRequestCounts(first: Int?) throws {
        try World.run(seed: 52) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.phone.find().identifier
            pair.lamp.backend.stopAdvertising()
            try await world.sleep(for: .seconds(1))
            pair.phone.backend.connect(peripheral, ConnectionRequest(timeout: first.map { .seconds($0) }))
            try await world.sleep(for: .seconds(1))
            let start = world.elapsed
            pair.phone.backend.connect(peripheral, ConnectionRequest(timeout: .seconds(5)))
            let failure = await pair.phone.events.next { event in
                if case .connectionFailed(peripheral, let error) = event { error } else { nil }
            }
            #expect(failure == .core(.connectionTimeout) && world.elapsed - start == .seconds(5))
        }
    }

    @Test("A request without a timeout removes that of an earlier request")
    func requestWithoutATimeoutRemovesAnEarlierOne() throws {
        try World.run(seed: 53) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.phone.find().identifier
            pair.lamp.backend.stopAdvertising()
            try await world.sleep(for: .seconds(1))
            pair.phone.backend.connect(peripheral, ConnectionRequest(timeout: .seconds(5)))
            try await world.sleep(for: .seconds(1))
            pair.phone.backend.connect(peripheral, ConnectionRequest())
            try await world.sleep(for: .seconds(100))
            #expect(pair.phone.events.waiting.isEmpty)
            try await pair.lamp.advertise("lamp", [Lamp.service])
            await pair.phone.connected(peripheral)
        }
    }

    @Test(
        "The release of an earlier connection does not end a later one to the same peripheral",
        arguments: [true, false]
    )
    func releaseOfAnEarlierConnectionDoesNotEndALaterOne(isConnected: Bool) throws {
        try World.run(seed: 54) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.phone.find().identifier
            let first = ConnectionIdentifier(peripheral: peripheral, number: 1)
            let second = ConnectionIdentifier(peripheral: peripheral, number: 2)
            pair.phone.backend.connect(first, ConnectionRequest())
            if isConnected { await pair.phone.connected(peripheral) }
            pair.phone.backend.connect(second, ConnectionRequest())
            pair.phone.backend.release(first)
            let connection = await pair.phone.events.next {
                if case .connected(let connection, _, _) = $0 { connection } else { nil }
            }
            #expect(connection == second)
            try await world.sleep(for: .seconds(5))
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().count == 1)
        }
    }

    @Test("A peer that does not answer delays the end of the connection by two seconds at most")
    func silentPeerDoesNotDelayTheEnd() throws {
        try World.run(seed: 55) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            try await world.sleep(for: .seconds(5))
            let backend = pair.phone.backend
            for _ in 1...2 { backend.read(pair.handle(0), of: peripheral) { _ in } }
            backend.writeWithoutResponse([1], to: pair.handle(0), of: peripheral) { _ in }
            _ = await pair.lamp.access()
            let start = world.elapsed
            backend.cancelConnection(peripheral)
            #expect(await pair.phone.disconnected(peripheral).error == nil)
            #expect(world.elapsed - start < .seconds(4))
        }
    }

    @Test("A connection with a delay starts after it")
    func connectionWithADelayStartsAfterIt() throws {
        try World.run(seed: 15) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.phone.find().identifier
            let start = world.elapsed
            pair.phone.backend.connect(peripheral, ConnectionRequest(delay: .seconds(5)))
            await pair.phone.connected(peripheral)
            #expect(world.elapsed - start >= .seconds(5))
            #expect(world.elapsed - start < .seconds(8))
        }
    }

    @Test("Connecting to an unknown peripheral fails; cancelling that is answered")
    func connectingToAnUnknownPeripheralFails() throws {
        try World.run(seed: 16) { world in
            let pair = try await LampAndPhone(world)
            let nobody = UUID()
            pair.phone.backend.connect(nobody, ConnectionRequest())
            pair.phone.backend.cancelConnection(nobody)
            let error = await pair.phone.events.next {
                if case .connectionFailed(nobody, let error) = $0 { error } else { nil }
            }
            #expect(error == .core(.unkownDevice))
            #expect(await pair.phone.disconnected(nobody).error == nil)
            #expect(pair.phone.backend.knownPeripherals([nobody]).isEmpty)
        }
    }

    @Test("Connecting to a connected peripheral is answered again")
    func connectingToAConnectedPeripheralIsAnsweredAgain() throws {
        try World.run(seed: 17) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            pair.phone.backend.connect(peripheral, ConnectionRequest())
            let mtu = await pair.phone.events.next {
                if case .connected(peripheral, let mtu, _) = $0 { mtu } else { nil }
            }
            #expect(mtu == 517)
        }
    }

    @Test("After a cancellation the peripheral is connected again once its link has ended")
    func cancelledPeripheralIsConnectedAgainOnceItsLinkHasEnded() throws {
        try World.run(seed: 18) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            pair.phone.backend.release(peripheral)
            pair.phone.backend.connect(peripheral, ConnectionRequest())
            await pair.phone.connected(peripheral)
            try await world.sleep(for: .seconds(10))
            #expect(pair.phone.events.waiting.allSatisfy { if case .disconnected = $0 { false } else { true } })
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().count == 1)
        }
    }

    @Test("Two managers share a link, which ends with the last of them")
    func sharedLinkEndsWithTheLastManager() throws {
        try World.run(seed: 19) { world in
            let pair = try await LampAndPhone(world)
            let other = await pair.phoneDevice.central()
            let peripheral = await pair.connect()
            other.backend.connect(peripheral, ConnectionRequest())
            await other.connected(peripheral)
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().count == 1)
            pair.phone.backend.cancelConnection(peripheral)
            #expect(await pair.phone.disconnected(peripheral).error == nil)
            try await world.sleep(for: .seconds(10))
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().count == 1)
            #expect(try await other.services(nil, of: peripheral).contains { $0.uuid == Lamp.service })
            let refused = await pair.phone.read(pair.handle(2), of: peripheral)
            #expect(refused == .failure(.core(.notConnected)))
            other.backend.stop()
            try await world.sleep(for: .seconds(10))
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().isEmpty)
            #expect(pair.phone.backend.connectedPeripherals(withServices: [Lamp.service]).isEmpty)
        }
    }

    @Test("A link that the peer initiated serves a connection to it, and stays when that is cancelled")
    func linkInitiatedByThePeerServesAConnection() throws {
        try World.run(seed: 25) { world in
            let pair = try await LampAndPhone(world)
            let phoneAddress = pair.phoneDevice.device.address
            _ = await pair.connect()
            let phone = pair.lampDevice.open.peers.identifier(of: phoneAddress)
            let back = await pair.lampDevice.central()
            back.backend.connect(phone, ConnectionRequest())
            await back.connected(phone)
            let services = try await back.services(nil, of: phone)
            #expect(services.map(\.uuid) == [.genericAccessService, .genericAttributeService])
            back.backend.cancelConnection(phone)
            #expect(await back.disconnected(phone).error == nil)
            try await world.sleep(for: .seconds(5))
            #expect(await pair.lampDevice.adapter.host.linkIdentifiers().count == 1)
        }
    }
}

extension [CentralEvent] {
    /// The names that are reported for connected peripherals.
    fileprivate var names: [String] {
        compactMap { if case .nameChanged(_, let name) = $0 { name } else { nil } }
    }
}
