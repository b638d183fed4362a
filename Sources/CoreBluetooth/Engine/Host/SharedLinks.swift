import BLEATT
import BLEGATT
import BLEHCITransport
import BluetoothHost
import BluetoothTypes
import Foundation

/// A manager's connection to a peripheral, as the user of a link. A manager may use a link under several identifiers of the
/// peripheral.
struct LinkUser: Equatable {
    let central: HostCentral
    let peripheral: UUID

    static func == (left: LinkUser, right: LinkUser) -> Bool {
        left.central === right.central && left.peripheral == right.peripheral
    }
}

/// The links to peripherals that the central managers of a host share. A link that this host has made lasts until its
/// last user leaves. Used on the loop only.
final class SharedLinks: Sendable {
    private struct Shared {
        let peripheral: UUID
        /// Whether this host has made the link. The host does not end a link that the peer has made.
        let isOurs: Bool
        var users: [LinkUser] = []
        /// Whether the Device Name was read, or could not be read.
        var isNameKnown = false
        /// Whether the users together have one hold on the link at the host.
        var isHeld = false
        /// The subscriptions by value handle.
        var subscriptions: [AttributeHandle: Subscription] = [:]
    }

    private struct Subscription {
        let descriptors: HandleRange
        var users: [LinkUser] = []
    }

    private final class State {
        var links: [LinkIdentifier: Shared] = [:]
        /// The engines of all central managers of the host.
        var centrals: [HostCentral] = []
    }

    private let confined: LoopConfined<State>
    private var state: State { confined.value }
    private let peers: PeerDirectory

    init(peers: PeerDirectory, loop: any EventLoop) {
        self.peers = peers
        confined = LoopConfined(State(), to: loop)
    }

    func add(_ central: HostCentral) {
        state.centrals.append(central)
    }

    func remove(_ central: HostCentral) {
        state.centrals.removeAll { $0 === central }
    }

    // MARK: Use

    func join(_ link: LinkIdentifier, _ user: LinkUser, on host: isolated BluetoothHost) {
        let peripheral = user.peripheral
        if state.links[link] == nil {
            let isOurs = (try? host.information(on: link).isCentral) ?? true
            state.links[link] = Shared(peripheral: peripheral, isOurs: isOurs)
            peers.setConnected(true, peripheral)
            host.observeEnd(of: link) { [weak self] _ in self?.ended(link) }
            for central in state.centrals { central.connectionEvent(.peerConnected, peripheral) }
            host.spawn { await self.prepare(link, peripheral, on: $0) }
        }
        if state.links[link]?.isHeld == false { host.hold(link) }
        state.links[link]?.isHeld = true
        state.links[link]?.users.append(user)
        if state.links[link]?.isNameKnown == true { sayName(to: [user], on: link) }
    }

    /// Removes a user of a link. The last user ends the link after the values written on it have been sent, unless the
    /// peer has made the link or connections of the `BLE` module share it.
    ///
    /// - Returns: whether the link ends.
    func leave(_ link: LinkIdentifier, _ user: LinkUser, on host: isolated BluetoothHost) -> Bool {
        guard var shared = state.links[link] else { return false }
        shared.users.removeAll { $0 == user }
        var ends = false
        if shared.users.isEmpty, shared.isHeld {
            ends = shared.isOurs && !host.isShared(link)
            shared.isHeld = ends
            if !ends { host.discardHold(on: link) }
        }
        state.links[link] = shared
        if ends {
            host.disconnectAfterFlush(link)
        } else {
            for (handle, subscription) in shared.subscriptions.sorted(by: { $0.key < $1.key })
            where subscription.users.contains(user) && unsubscribe(user, from: handle, on: link)
                && host.subscriberCount(of: handle, on: link) == 0
            {
                host.begin(SetClientConfiguration([], inDescriptors: subscription.descriptors), on: link) { _ in }
            }
        }
        return ends
    }

    private func ended(_ link: LinkIdentifier) {
        guard let shared = state.links.removeValue(forKey: link) else { return }
        peers.setConnected(false, shared.peripheral)
        for central in state.centrals { central.connectionEvent(.peerDisconnected, shared.peripheral) }
    }

    // MARK: Subscriptions

    func subscribe(
        _ user: LinkUser,
        to handle: AttributeHandle,
        descriptors: HandleRange,
        on link: LinkIdentifier
    ) {
        var subscription = state.links[link]?.subscriptions[handle] ?? Subscription(descriptors: descriptors)
        if !subscription.users.contains(user) { subscription.users.append(user) }
        state.links[link]?.subscriptions[handle] = subscription
    }

    /// - Returns: whether no user is subscribed any more.
    func unsubscribe(_ user: LinkUser, from handle: AttributeHandle, on link: LinkIdentifier) -> Bool {
        guard var subscription = state.links[link]?.subscriptions[handle] else { return true }
        subscription.users.removeAll { $0 == user }
        state.links[link]?.subscriptions[handle] = subscription.users.isEmpty ? nil : subscription
        return subscription.users.isEmpty
    }

    // MARK: Preparation of a new link

    /// Reads the Device Name and subscribes to Service Changed, one request at a time. An app's request therefore waits
    /// for at most one of them.
    private func prepare(_ link: LinkIdentifier, _ peripheral: UUID, on host: isolated BluetoothHost) async {
        if let name = await readDeviceName(link, on: host) { peers.read(deviceName: name, of: peripheral) }
        state.links[link]?.isNameKnown = true
        sayName(to: state.links[link]?.users ?? [], on: link)
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
                self?.servicesChanged(value.value, on: link)
            }) != nil
        else { return }
        _ = try? await host.perform(SetClientConfiguration(.indication, inDescriptors: descriptors), on: link)
    }

    /// Reports the name to users of a link, also if it is the same as before. The directory may have learned it without the
    /// objects of an app, for example from a packet that was received after the app's scan.
    private func sayName(to users: [LinkUser], on link: LinkIdentifier) {
        for user in users {
            guard let name = peers.name(of: user.peripheral) else { continue }
            user.central.sayChange(.nameChanged(user.peripheral, name), on: link)
        }
    }

    private func readDeviceName(_ link: LinkIdentifier, on host: isolated BluetoothHost) async -> String? {
        guard let found = try? await host.perform(ReadUsingUUID(uuid: .deviceName), on: link).first else { return nil }
        // The name may be longer than the response.
        let value = (try? await host.perform(ReadLongValue(handle: found.handle), on: link)) ?? found.value
        let name = String(decoding: value.prefix { $0 != 0 }, as: UTF8.self)
        return name.isEmpty ? nil : name
    }

    /// Handles a value of Service Changed: the first and the last affected handle (Vol 3, Part G, 7.1).
    private func servicesChanged(_ value: [UInt8], on link: LinkIdentifier) {
        guard value.count == 4 else { return }
        let range = HandleRange(
            start: AttributeHandle(UInt16(value[0]) | UInt16(value[1]) << 8),
            end: AttributeHandle(UInt16(value[2]) | UInt16(value[3]) << 8)
        )
        guard range.isValid else { return }
        for user in state.links[link]?.users ?? [] {
            user.central.sayChange(.servicesChanged(user.peripheral, range), on: link)
        }
    }
}
