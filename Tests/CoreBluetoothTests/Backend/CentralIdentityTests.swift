import BLE
import BLEGATT
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Identifiers of centrals")
struct CentralIdentityTests {
    /// A value that the app provides, on encrypted links only.
    private static let vault = ServiceDefinition(
        uuid: "FFB0",
        characteristics: [
            CharacteristicDefinition(
                uuid: "FFB1",
                properties: [.read],
                permissions: [.read, .readEncrypted],
                value: .handled
            )
        ]
    )

    /// Reads the lamp's vault, so that the devices pair, and answers the read.
    private func bond(_ pair: LampAndPhone, _ peripheral: UUID) async throws -> RemoteCentral {
        let handle = try await pair.lamp.publish(Self.vault).characteristics[0].valueHandle
        async let read = pair.phone.read(handle, of: peripheral)
        let (central, request) = await pair.lamp.access()
        pair.lamp.backend.answer(request.identifier, on: central.link, .success([1]))
        #expect(await read == .success([1]))
        // The last keys may still be on their way.
        while await pair.lampDevice.adapter.bonds().isEmpty { await Task.yield() }
        return central
    }

    @Test("A device with a bonded device's address has a separate identifier until it is verified")
    func unverifiedCentralHasIdentifierOfItsOwn() throws {
        try World.run(seed: 71) { world in
            let pair = try await LampAndPhone(world, isPhonePrivate: true)
            let phone = try await bond(pair, await pair.connect())
            let stranger = try await BackendDevice(
                "stranger",
                in: world,
                controller: { $0.address = pair.phoneDevice.device.address }
            )
            let peer = try await stranger.adapter.central.connect(to: pair.lampDevice.device.address)
            let host = pair.lampDevice.adapter.host
            let centrals = pair.lampDevice.open.centrals
            let link = try #require(await host.linkIdentifiers().last)
            #expect(link != phone.link)
            #expect(await host.identifier(on: phone.link, centrals) == phone.identifier)
            let identifier = try #require(await host.identifier(on: link, centrals))
            #expect(identifier != phone.identifier)
            #expect(await host.identityVerification(on: link) == .unverified)
            #expect(pair.lamp.backend.address(of: identifier) == stranger.device.address)
            await peer.disconnect()
            while await host.linkIdentifiers().contains(link) { try await world.sleep(for: .milliseconds(10)) }
            #expect(pair.lamp.backend.address(of: identifier) == nil)
        }
    }

    @Test(
        "Only an outbound or a verified link fulfills a connection to a bonded device",
        arguments: [true, false]
    )
    func unverifiedLinkFulfillsNoConnection(isOutbound: Bool) throws {
        try World.run(seed: 74) { world in
            let pair = try await LampAndPhone(world, isPhonePrivate: true)
            let peripheral = await pair.connect()
            let phone = try await bond(pair, peripheral)
            pair.phone.backend.cancelConnection(peripheral)
            _ = await pair.phone.disconnected(peripheral)
            await pair.lamp.events.next {
                if case .disconnected(let gone) = $0, gone.link == phone.link { () } else { nil }
            }
            let stranger = try await BackendDevice(
                "stranger",
                in: world,
                controller: { $0.address = pair.phoneDevice.device.address }
            )
            let claimant = try await stranger.adapter.central.connect(to: pair.lampDevice.device.address)
            let host = pair.lampDevice.adapter.host
            let claimed = try #require(await host.linkIdentifiers().last)
            #expect(await host.identityVerification(on: claimed) == .unverified)

            let lamp = await pair.lampDevice.central()
            lamp.backend.connect(phone.identifier, ConnectionRequest())
            try await world.sleep(for: .seconds(3))
            #expect(lamp.events.waiting.isEmpty)
            #expect(await host.linkIdentifiers() == [claimed])

            if isOutbound {
                try await pair.phoneDevice.peripheral().advertise("phone", [])
            } else {
                await pair.phone.connect(peripheral)
            }
            await lamp.connected(phone.identifier)
            let link = try await outcome { lamp.backend.readLink(of: phone.identifier, $0) }.get()
            #expect(link.identifier != claimed && link.isCentral == isOutbound)
            if !isOutbound { #expect(await host.identityVerification(on: link.identifier) == .verified) }
            withExtendedLifetime(claimant) {}
        }
    }

    @Test("A bonded central that returns is announced once, when encryption has verified it")
    func bondedCentralIsAnnouncedOnceVerified() throws {
        try World.run(seed: 72) { world in
            let pair = try await LampAndPhone(world, isPhonePrivate: true)
            let peripheral = await pair.connect()
            let phone = try await bond(pair, peripheral)
            pair.phone.backend.cancelConnection(peripheral)
            _ = await pair.phone.disconnected(peripheral)
            await pair.lamp.events.next {
                if case .disconnected(let gone) = $0, gone.link == phone.link { () } else { nil }
            }
            pair.lamp.events.removeAll()
            await pair.phone.connect(peripheral)
            let back = await pair.lamp.connected()
            #expect(back.identifier == phone.identifier && back.link != phone.link)
            let host = pair.lampDevice.adapter.host
            #expect(await host.identityVerification(on: back.link) == .verified)
            try await world.sleep(for: .seconds(5))
            for event in pair.lamp.events.waiting {
                if case .mtuChanged = event { continue }
                Issue.record("\(event)")
            }
        }
    }

    @Test("A central that reconnects before its old link times out loses no answers or subscriptions")
    func reconnectionBeforeTimeoutKeepsAnswersAndSubscriptions() throws {
        try World.run(seed: 73) { world in
            let pair = try await LampAndPhone(world, isPhonePrivate: true)
            let peripheral = await pair.connect()
            _ = try await bond(pair, peripheral)
            let brightness = try await pair.characteristics(of: peripheral)[0]
            _ = await pair.phone.configure(.notification, of: brightness, on: peripheral)
            let former = await pair.lamp.configured().0
            pair.phone.backend.read(brightness.valueHandle, of: peripheral) { _ in }
            let unanswered = await pair.lamp.access()
            #expect(unanswered.0.link == former.link)

            // The phone loses its power and returns at once: the lamp has not detected the end of the link yet.
            pair.phoneDevice.device.vanish()
            await pair.phone.events.next { if case .stateChanged(.resetting) = $0 { () } else { nil } }
            pair.phoneDevice.device.comeBack()
            await pair.phone.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
            await pair.phone.connect(peripheral)
            _ = await pair.phone.configure(.notification, of: brightness, on: peripheral)
            let present = await pair.lamp.configured().0
            #expect(present.identifier == former.identifier && present.link != former.link)
            #expect(!pair.lamp.events.waiting.contains { if case .disconnected = $0 { true } else { false } })

            // Both links use the same request numbers; each answer goes to its own link.
            async let read = pair.phone.read(brightness.valueHandle, of: peripheral)
            let (central, request) = await pair.lamp.access(by: present.link)
            pair.lamp.backend.answer(unanswered.1.identifier, on: former.link, .success([0xBA, 0xD0]))
            pair.lamp.backend.answer(request.identifier, on: central.link, .success([7]))
            #expect(await read == .success([7]))
            await pair.lamp.events.next {
                if case .disconnected(let gone) = $0, gone.link == former.link { () } else { nil }
            }
            pair.lamp.backend.update([9], of: brightness.valueHandle, to: [present.link]) { _ in }
            #expect(await pair.phone.value(of: brightness.valueHandle) == [9])
        }
    }
}

extension BluetoothHost {
    fileprivate func identifier(on link: LinkIdentifier, _ centrals: CentralIdentities) -> UUID? {
        centrals.central(on: link, self)?.identifier
    }
}
