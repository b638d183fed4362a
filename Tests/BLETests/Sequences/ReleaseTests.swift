import BLE
import BLEHCITransport
import BluetoothHost
import BluetoothTesting
import Synchronization
import Testing

@Suite("Objects that outlive their adapter")
struct ReleaseTests {
    /// Objects of an app, and their hosts.
    private struct Survivors: Sendable {
        let objects: LoopConfined<[Any]>
        let hosts: [WeakHost]
    }

    private struct WeakHost: Sendable {
        weak let host: BluetoothHost?
    }

    /// A pairing delegate that holds its adapter.
    private final class Delegate: PairingDelegate {
        private let adapter = Mutex<Adapter?>(nil)

        func hold(_ adapter: Adapter) { self.adapter.withLock { $0 = adapter } }

        func answer(_ inquiry: PairingInquiry) async -> PairingAnswer { .accept }
    }

    private struct WeakDelegate: Sendable {
        weak let delegate: Delegate?
    }

    /// How an adapter gets its pairing delegate.
    private enum Delegation: CaseIterable {
        case configuration
        case call
        case callAfterClose
    }

    @Test("Objects that are released after the end of the world do not keep its hosts")
    func lateReleaseFreesTheHost() throws {
        let world = World(seed: 1)
        var survivors: Survivors? = try world.run {
            let lamp = try await world.peripheral(
                "lamp",
                services: [
                    ScriptedService("A800", [ScriptedCharacteristic("A801", properties: [.notify], value: [7])])
                ]
            )
            let adapter = try await world.device("gateway").openAdapter()
            let advertising = try await adapter.peripheral.startAdvertising(AdvertisementConfiguration())
            let peer = try await adapter.central.connect(to: lamp.address)
            let characteristics = try await peer.discoverAll().flatMap(\.characteristics)
            let notified = try #require(characteristics.first { $0.uuid == "A801" })
            let subscription = try await peer.subscribe(to: notified)
            let listener = try await adapter.peripheral.publishChannel()
            let events = await adapter.events()
            let scan = adapter.central.scan().makeAsyncIterator()
            return Survivors(
                objects: LoopConfined([advertising, peer, subscription, listener, events, scan], to: world.loop),
                hosts: [WeakHost(host: adapter.host)]
            )
        }
        world.close()
        let hosts = try #require(survivors).hosts
        #expect(hosts.allSatisfy { $0.host != nil })
        survivors = nil
        #expect(hosts.allSatisfy { $0.host == nil })
    }

    @Test("A closed adapter does not keep its pairing delegate", arguments: Delegation.allCases)
    private func closedAdapterReleasesItsPairingDelegate(_ delegation: Delegation) throws {
        let world = World(seed: 1)
        let released: WeakDelegate = try world.run {
            let delegate = Delegate()
            let adapter = try await world.device("gateway").openAdapter {
                if delegation == .configuration { $0.pairingDelegate = delegate }
            }
            delegate.hold(adapter)
            if delegation == .call { await adapter.setPairingDelegate(delegate) }
            await adapter.close()
            if delegation == .callAfterClose { await adapter.setPairingDelegate(delegate) }
            return WeakDelegate(delegate: delegate)
        }
        world.close()
        #expect(released.delegate == nil)
    }

    @Test("A closed adapter does not keep its authorizer", arguments: [false, true])
    func closedAdapterReleasesItsAuthorizer(isSetAfterClose: Bool) throws {
        let world = World(seed: 1)
        let released: WeakDelegate = try world.run {
            let delegate = Delegate()
            let adapter = try await world.device("gateway").openAdapter()
            delegate.hold(adapter)
            let decide: @Sendable (ClientID, AuthorizationRequest) async -> Bool = { _, _ in
                withExtendedLifetime(delegate) { true }
            }
            if !isSetAfterClose { await adapter.peripheral.setAuthorizer(decide) }
            await adapter.close()
            if isSetAfterClose { await adapter.peripheral.setAuthorizer(decide) }
            return WeakDelegate(delegate: delegate)
        }
        world.close()
        #expect(released.delegate == nil)
    }
}
