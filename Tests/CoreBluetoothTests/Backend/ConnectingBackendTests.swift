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

    // MARK: Links that are not established

    /// Waits until the phone has a link, and lets nothing through between it and the lamp from then on: the lamp never
    /// answers the request for the connection.
    private static func loseNextRequest(of pair: LampAndPhone, in world: World) async throws {
        while await pair.phoneDevice.adapter.host.linkIdentifiers().isEmpty {
            try await world.sleep(for: .microseconds(100))
        }
        let conditions = RadioConditions(isDead: true)
        world.setConditions(conditions, between: pair.lampDevice.device, and: pair.phoneDevice.device)
    }

    private static func waitForEnd(of pair: LampAndPhone, in world: World) async throws {
        while await !pair.phoneDevice.adapter.host.linkIdentifiers().isEmpty {
            try await world.sleep(for: .milliseconds(1))
        }
        world.setConditions(nil, between: pair.lampDevice.device, and: pair.phoneDevice.device)
    }

    @Test("A link that is not established is made again; the app is only told of the one that is")
    func lostRequestIsRepeated() throws {
        try World.run(seed: 56) { world in
            let pair = try await LampAndPhone(world)
            let other = await pair.phoneDevice.central()
            other.backend.registerForConnectionEvents(ConnectionEventFilter())
            let peripheral = await pair.phone.find().identifier
            for central in [pair.phone, other] { central.backend.connect(peripheral, ConnectionRequest()) }
            for _ in 1...HostCentral.retryLimit {
                try await Self.loseNextRequest(of: pair, in: world)
                try await Self.waitForEnd(of: pair, in: world)
            }
            for central in [pair.phone, other] { await central.connected(peripheral) }
            let events = await other.events.next {
                if case .connectionEvent(_, let event) = $0 { event } else { nil }
            }
            #expect(events == .peerConnected)
            try await world.sleep(for: .seconds(10))
            for central in [pair.phone, other] {
                let ends = central.events.waiting.filter { event in
                    switch event {
                    case .connected, .disconnected, .connectionFailed, .connectionEvent: true
                    default: false
                    }
                }
                #expect(ends.isEmpty)
            }
            pair.phone.backend.cancelConnection(peripheral)
            _ = await pair.phone.disconnected(peripheral)
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().count == 1)
            other.backend.cancelConnection(peripheral)
            _ = await other.disconnected(peripheral)
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().isEmpty)
        }
    }

    @Test("After three retries of a link that is not established, the attempt has failed")
    func retriesAreLimited() throws {
        try World.run(seed: 57) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.phone.find().identifier
            pair.phone.backend.connect(peripheral, ConnectionRequest(reconnects: true))
            for _ in 0...HostCentral.retryLimit {
                try await Self.loseNextRequest(of: pair, in: world)
                try await Self.waitForEnd(of: pair, in: world)
            }
            let failure = await pair.phone.events.next {
                if case .connectionFailed(peripheral, let error) = $0 { error } else { nil }
            }
            #expect(failure == .core(.connectionFailed))
            try await world.sleep(for: .seconds(10))
            #expect(pair.phone.events.waiting.isEmpty)
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().isEmpty)
            await pair.phone.connect(peripheral)
        }
    }

    @Test("Automatic reconnection continues, however often a link is not established")
    func reconnectionHasNoLimit() throws {
        try World.run(seed: 60) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect(ConnectionRequest(reconnects: true))
            let host = pair.lampDevice.adapter.host
            for link in await host.linkIdentifiers() { await host.disconnect(link) }
            #expect(await pair.phone.disconnected(peripheral).isReconnecting)
            for _ in 0...HostCentral.retryLimit {
                try await Self.loseNextRequest(of: pair, in: world)
                try await Self.waitForEnd(of: pair, in: world)
            }
            await pair.phone.connected(peripheral)
        }
    }

    @Test("An attempt ends while its link is not established yet", arguments: [true, false])
    func attemptEndsBeforeItsLinkIsEstablished(isCancelled: Bool) throws {
        try World.run(seed: 58) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.phone.find().identifier
            pair.phone.backend.connect(peripheral, ConnectionRequest())
            try await Self.loseNextRequest(of: pair, in: world)
            if isCancelled {
                pair.phone.backend.cancelConnection(peripheral)
                #expect(await pair.phone.disconnected(peripheral).error == nil)
            } else {
                pair.phone.backend.connect(peripheral, ConnectionRequest(timeout: .milliseconds(50)))
                let failure = await pair.phone.events.next {
                    if case .connectionFailed(peripheral, let error) = $0 { error } else { nil }
                }
                #expect(failure == .core(.connectionTimeout))
            }
            world.setConditions(nil, between: pair.lampDevice.device, and: pair.phoneDevice.device)
            try await world.sleep(for: .seconds(10))
            #expect(pair.phone.events.waiting.allSatisfy { if case .connected = $0 { false } else { true } })
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().isEmpty)
        }
    }

    @Test("The timeout of an attempt that was cancelled does not replace the report of the cancellation")
    func timeoutAfterACancellationIsNotReported() throws {
        try World.run(seed: 63) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.phone.find().identifier
            pair.phone.backend.connect(peripheral, ConnectionRequest())
            try await Self.loseNextRequest(of: pair, in: world)
            let start = world.elapsed
            pair.phone.backend.connect(peripheral, ConnectionRequest(timeout: .milliseconds(1)))
            pair.phone.backend.cancelConnection(peripheral)
            let isReported = await pair.phone.events.next { event -> Bool? in
                switch event {
                case .disconnected(peripheral, let disconnection): return disconnection.error == nil
                case .connectionFailed(peripheral, _): return false
                default: return nil
                }
            }
            #expect(isReported)
            // The link ends after the timeout.
            #expect(world.elapsed - start > .milliseconds(1))
            world.setConditions(nil, between: pair.lampDevice.device, and: pair.phoneDevice.device)
            try await world.sleep(for: .seconds(10))
            #expect(pair.phone.events.waiting.allSatisfy { if case .connectionFailed = $0 { false } else { true } })
            await pair.phone.connect(peripheral)
        }
    }

    @Test("A link whose peer does not answer the request for a longer MTU is reported all the same")
    func peerWithoutAnAnswerIsConnected() throws {
        try World.run(seed: 59) { world in
            let phone = try await BackendDevice("phone", in: world, configure: { $0.requestsMTU = false })
            let lamp = try await world.peripheral("lamp", services: [])
            let central = await phone.central()
            let peripheral = await central.find().identifier
            central.backend.connect(peripheral, ConnectionRequest())
            await central.connected(peripheral)
            central.backend.cancelConnection(peripheral)
            #expect(await central.disconnected(peripheral).error == nil)
            withExtendedLifetime(lamp) {}
        }
    }

    // MARK: Ends

    @Test("A peer that vanishes causes a connection timeout; waiting calls are answered after it")
    func vanishedPeerCausesAConnectionTimeout() throws {
        try World.run(seed: 20) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let (backend, events) = (pair.phone.backend, pair.phone.events)
            pair.lampDevice.device.vanish()
            let isAfterEnd = await withCheckedContinuation { continuation in
                backend.read(pair.handle(2), of: peripheral) { result in
                    #expect(result == .failure(.core(.connectionTimeout)))
                    let isAfterEnd = events.waiting.contains { if case .disconnected = $0 { true } else { false } }
                    continuation.resume(returning: isAfterEnd)
                }
            }
            #expect(isAfterEnd)
            let disconnection = await pair.phone.disconnected(peripheral)
            #expect(disconnection.error == .core(.connectionTimeout))
            #expect(!disconnection.isReconnecting)
            #expect(disconnection.time > 600_000_000)
        }
    }

    @Test("A disconnection by the peer is reported as such")
    func disconnectionByThePeerIsReportedAsSuch() throws {
        try World.run(seed: 21) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let host = pair.lampDevice.adapter.host
            for link in await host.linkIdentifiers() { await host.disconnect(link) }
            #expect(await pair.phone.disconnected(peripheral).error == .core(.peripheralDisconnected))
        }
    }

    @Test("A connection that is to be made again is, until the app cancels it")
    func connectionIsMadeAgainUntilTheAppCancelsIt() throws {
        try World.run(seed: 22) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect(ConnectionRequest(reconnects: true))
            for _ in 1...3 {
                let host = pair.lampDevice.adapter.host
                for link in await host.linkIdentifiers() { await host.disconnect(link) }
                let disconnection = await pair.phone.disconnected(peripheral)
                #expect(disconnection.error == .core(.peripheralDisconnected))
                #expect(disconnection.isReconnecting)
                await pair.phone.connected(peripheral)
            }
            pair.phone.backend.cancelConnection(peripheral)
            let last = await pair.phone.disconnected(peripheral)
            #expect(last.error == nil && !last.isReconnecting)
            pair.phone.events.removeAll()
            try await world.sleep(for: .seconds(10))
            #expect(pair.phone.events.waiting.isEmpty)
        }
    }

    @Test("A command for a link that has ended is not carried out on the link of the reconnection")
    func commandForAnEndedLinkIsNotCarriedOutOnTheNext() throws {
        try World.run(seed: 62) { world in
            let pair = try await LampAndPhone(world)
            let backend = pair.phone.backend
            let peripheral = await pair.phone.find([Lamp.service]).identifier
            backend.connect(peripheral, ConnectionRequest(reconnects: true))
            let former = ConnectedPeripheral(identifier: peripheral, link: await pair.phone.connected(peripheral))
            let brightness = try await pair.characteristics(of: peripheral)[0]
            let host = pair.lampDevice.adapter.host
            for link in await host.linkIdentifiers() { await host.disconnect(link) }
            #expect(await pair.phone.disconnected(peripheral).isReconnecting)
            let present = ConnectedPeripheral(identifier: peripheral, link: await pair.phone.connected(peripheral))
            pair.lamp.events.removeAll()

            let handle = brightness.valueHandle
            var failures: [BackendError?] = []
            failures.append(await outcome { backend.discoverServices(nil, of: former, $0) }.failure)
            failures.append(await outcome { backend.read(pair.handle(2), of: former, $0) }.failure)
            failures.append(await outcome { backend.write([1], to: handle, of: former, $0) }.failure)
            failures.append(await outcome { backend.writeWithoutResponse([1], to: handle, of: former, $0) }.failure)
            failures.append(
                await outcome { backend.setConfiguration(.notification, of: brightness, on: former, $0) }.failure
            )
            failures.append(await outcome { backend.readRSSI(of: former, $0) }.failure)
            failures.append(await outcome { backend.openChannel(0x80, to: former, $0) }.failure)
            #expect(failures.count == 7 && failures.allSatisfy { $0 == .core(.notConnected) })
            let version = await outcome { backend.read(pair.handle(2), of: present, $0) }
            #expect(version == .success(Array("1.0".utf8)))
            let reached = pair.lamp.events.waiting.filter { event in
                switch event {
                case .access, .configured: true
                default: false
                }
            }
            #expect(reached.isEmpty)
        }
    }

    @Test("A failing controller: disconnections, resetting, poweredOn; nothing is resumed")
    func failingControllerResumesNothing() throws {
        try World.run(seed: 23) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect(ConnectionRequest(reconnects: true))
            pair.phone.backend.scan(ScanRequest())
            _ = await pair.phone.discovery()
            pair.phoneDevice.device.vanish()
            #expect(await pair.phone.disconnected(peripheral).error == .core(.connectionFailed))
            await pair.phone.events.next { if case .stateChanged(.resetting) = $0 { () } else { nil } }
            pair.phone.events.removeAll()
            pair.phoneDevice.device.comeBack()
            await pair.phone.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
            try await world.sleep(for: .seconds(10))
            #expect(pair.phone.events.waiting.isEmpty)
            await pair.phone.connect(peripheral)
        }
    }

    @Test func connectionEventsReportConnectionsToPeersWithTheService() throws {
        try World.run(seed: 24) { world in
            let pair = try await LampAndPhone(world)
            let watcher = await pair.phoneDevice.central()
            let stranger = await pair.phoneDevice.central()
            watcher.backend.registerForConnectionEvents(ConnectionEventFilter(services: [Lamp.service]))
            stranger.backend.registerForConnectionEvents(
                ConnectionEventFilter(services: ["AAAA"], peripherals: [UUID()])
            )
            let peripheral = await pair.connect()
            pair.phone.backend.cancelConnection(peripheral)
            _ = await pair.phone.disconnected(peripheral)
            for expected in [CBConnectionEvent.peerConnected, .peerDisconnected] {
                let (known, event) = await watcher.events.next {
                    if case .connectionEvent(let known, let event) = $0 { (known, event) } else { nil }
                }
                #expect(known.identifier == peripheral)
                #expect(event == expected)
            }
            #expect(stranger.events.waiting.isEmpty)
        }
    }

    @Test("A connection is reported when discovery has found a service that the peripheral does not advertise")
    func connectionEventsReportDiscoveredServices() throws {
        try World.run(seed: 25) { world in
            let pair = try await LampAndPhone(world)
            _ = try await pair.lamp.publish(ServiceDefinition(uuid: "FFD0"))
            let watcher = await pair.phoneDevice.central()
            let stranger = await pair.phoneDevice.central()
            watcher.backend.registerForConnectionEvents(ConnectionEventFilter(services: ["FFD0"]))
            stranger.backend.registerForConnectionEvents(ConnectionEventFilter(services: ["AAAA"]))
            let peripheral = await pair.connect()
            #expect(watcher.events.waiting.isEmpty)
            for _ in 1...2 { #expect(try await pair.phone.services(["FFD0"], of: peripheral).count == 1) }
            // Another app begins to observe while the peripheral is connected.
            let late = await pair.phoneDevice.central()
            late.backend.registerForConnectionEvents(ConnectionEventFilter(services: ["FFD0"]))
            pair.phone.backend.cancelConnection(peripheral)
            _ = await pair.phone.disconnected(peripheral)
            #expect(await nextConnectionEvent(of: watcher) == .peerConnected)
            #expect(await nextConnectionEvent(of: watcher) == .peerDisconnected)
            #expect(await nextConnectionEvent(of: late) == .peerDisconnected)
            for central in [watcher, late, stranger] { #expect(central.events.waiting.isEmpty) }
        }
    }

    private func nextConnectionEvent(of central: TestCentral) async -> CBConnectionEvent {
        await central.events.next { if case .connectionEvent(_, let event) = $0 { event } else { nil } }
    }
}

extension [CentralEvent] {
    /// The names that are reported for connected peripherals.
    fileprivate var names: [String] {
        compactMap { if case .nameChanged(_, let name) = $0 { name } else { nil } }
    }
}
