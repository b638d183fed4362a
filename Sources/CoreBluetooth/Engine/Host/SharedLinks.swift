import ATT
import BluetoothHost
import BluetoothTypes
import Foundation
import GATT

/// The links to peripherals that the central managers of a host share. A link that this host has made lasts until its
/// last user leaves. Used on the loop only.
final class SharedLinks: @unchecked Sendable {
    private struct Shared {
        let peripheral: UUID
        /// Whether this host has made the link. The host does not end a link that the peer has made.
        let isOurs: Bool
        var users: [HostCentral] = []
        /// Whether the users together have one hold on the link at the host.
        var isHeld = false
        /// The subscriptions by value handle.
        var subscriptions: [AttributeHandle: Subscription] = [:]
    }

    private struct Subscription {
        let descriptors: HandleRange
        var users: [HostCentral] = []
    }

    private var links: [LinkIdentifier: Shared] = [:]
    /// The engines of all central managers of the host.
    private var centrals: [HostCentral] = []
    private let peers: PeerDirectory

    init(peers: PeerDirectory) {
        self.peers = peers
    }

    func add(_ central: HostCentral) {
        centrals.append(central)
    }

    func remove(_ central: HostCentral) {
        centrals.removeAll { $0 === central }
    }

    // MARK: Use

    func join(_ link: LinkIdentifier, to peripheral: UUID, _ user: HostCentral, on host: isolated BluetoothHost) {
        if links[link] == nil {
            let isOurs = (try? host.information(on: link).isCentral) ?? true
            links[link] = Shared(peripheral: peripheral, isOurs: isOurs)
            peers.setConnected(true, peripheral)
            host.observeEnd(of: link) { [weak self] _ in self?.ended(link) }
            for central in centrals { central.connectionEvent(.peerConnected, peripheral) }
            host.spawn { await self.prepare(link, peripheral, on: $0) }
        }
        if links[link]?.isHeld == false { host.hold(link) }
        links[link]?.isHeld = true
        links[link]?.users.append(user)
    }

    /// Removes a user of a link. The last user ends the link after the values written on it have been sent, unless the
    /// peer has made the link or connections of the `BLE` module share it.
    ///
    /// - Returns: whether the link ends.
    func leave(_ link: LinkIdentifier, _ user: HostCentral, on host: isolated BluetoothHost) -> Bool {
        guard var shared = links[link] else { return false }
        shared.users.removeAll { $0 === user }
        var ends = false
        if shared.users.isEmpty, shared.isHeld {
            ends = shared.isOurs && !host.isShared(link)
            shared.isHeld = ends
            if !ends { host.discardHold(on: link) }
        }
        links[link] = shared
        if ends {
            host.disconnectAfterFlush(link)
        } else {
            for (handle, subscription) in shared.subscriptions.sorted(by: { $0.key < $1.key })
            where subscription.users.contains(where: { $0 === user }) && unsubscribe(user, from: handle, on: link)
                && host.subscriberCount(of: handle, on: link) == 0
            {
                host.begin(SetClientConfiguration([], inDescriptors: subscription.descriptors), on: link) { _ in }
            }
        }
        return ends
    }

    private func ended(_ link: LinkIdentifier) {
        guard let shared = links.removeValue(forKey: link) else { return }
        peers.setConnected(false, shared.peripheral)
        for central in centrals { central.connectionEvent(.peerDisconnected, shared.peripheral) }
    }

    // MARK: Subscriptions

    func subscribe(
        _ user: HostCentral,
        to handle: AttributeHandle,
        descriptors: HandleRange,
        on link: LinkIdentifier
    ) {
        var subscription = links[link]?.subscriptions[handle] ?? Subscription(descriptors: descriptors)
        if !subscription.users.contains(where: { $0 === user }) { subscription.users.append(user) }
        links[link]?.subscriptions[handle] = subscription
    }

    /// - Returns: whether no user is subscribed any more.
    func unsubscribe(_ user: HostCentral, from handle: AttributeHandle, on link: LinkIdentifier) -> Bool {
        guard var subscription = links[link]?.subscriptions[handle] else { return true }
        subscription.users.removeAll { $0 === user }
        links[link]?.subscriptions[handle] = subscription.users.isEmpty ? nil : subscription
        return subscription.users.isEmpty
    }

    // MARK: Preparation of a new link

    /// Reads the Device Name and subscribes to Service Changed, one request at a time. An app's request therefore waits
    /// for at most one of them.
    private func prepare(_ link: LinkIdentifier, _ peripheral: UUID, on host: isolated BluetoothHost) async {
        if let name = await readDeviceName(link, on: host), peers.read(deviceName: name, of: peripheral) {
            for user in links[link]?.users ?? [] { user.sayChange(.nameChanged(peripheral, name), on: link) }
        }
        guard
            let service = try? await host.perform(DiscoverServicesByUUID(uuid: .genericAttributeService), on: link)
                .first,
            let characteristic = try? await host.perform(
                DiscoverCharacteristics(
                    range: HandleRange(start: service.handle, end: service.endHandle),
                    uuid: .serviceChanged
                ),
                on: link
            ).first, let descriptors = characteristic.descriptorRange,
            (try? host.addSubscriber(of: characteristic.valueHandle, on: link) { [weak self] value in
                self?.servicesChanged(value.value, of: peripheral, on: link)
            }) != nil
        else { return }
        _ = try? await host.perform(SetClientConfiguration(.indication, inDescriptors: descriptors), on: link)
    }

    private func readDeviceName(_ link: LinkIdentifier, on host: isolated BluetoothHost) async -> String? {
        guard let found = try? await host.perform(ReadUsingUUID(uuid: .deviceName), on: link).first else { return nil }
        // The name may be longer than the response.
        let value = (try? await host.perform(ReadLongValue(handle: found.handle), on: link)) ?? found.value
        let name = String(decoding: value.prefix { $0 != 0 }, as: UTF8.self)
        return name.isEmpty ? nil : name
    }

    /// Handles a value of Service Changed: the first and the last affected handle (Vol 3, Part G, 7.1).
    private func servicesChanged(_ value: [UInt8], of peripheral: UUID, on link: LinkIdentifier) {
        guard value.count == 4 else { return }
        let range = HandleRange(
            start: AttributeHandle(UInt16(value[0]) | UInt16(value[1]) << 8),
            end: AttributeHandle(UInt16(value[2]) | UInt16(value[3]) << 8)
        )
        guard range.isValid else { return }
        for user in links[link]?.users ?? [] { user.sayChange(.servicesChanged(peripheral, range), on: link) }
    }
}
