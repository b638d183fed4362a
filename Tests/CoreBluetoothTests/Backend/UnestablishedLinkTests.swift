import BLE
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Links that are not established, on a host")
struct UnestablishedLinkTests {
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
}
