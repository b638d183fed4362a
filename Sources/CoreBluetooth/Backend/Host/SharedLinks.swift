import BLEATT
import BLEGATT
import BLEHCITransport
import BluetoothHost
import BluetoothTypes
import Foundation

/// A manager's connection to a peripheral, as the user of a link. A manager may use a link under several identifiers of
/// the peripheral.
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
        /// The number of subscribers that the managers have at the host, by value handle. A manager that no longer
        /// wants a value keeps its subscriber until the server has answered.
        var subscriberCounts: [AttributeHandle: Int] = [:]
    }

    private struct Subscription {
        let descriptors: HandleRange
        /// The users that want the value now.
        var users: [LinkUser] = []
    }

    private final class State {
        var links: [LinkIdentifier: Shared] = [:]
        /// The backends of all central managers of the host.
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
            for central in state.centrals { central.peerConnected(peripheral, on: link) }
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
            where subscription.users.contains(user) {
                unsubscribe(user, from: handle, on: link)
                guard !isWanted(handle, on: link, host) else { continue }
                host.configurationWillBeCleared(of: handle, on: link)
                host.begin(
                    SetClientConfiguration([], inDescriptors: subscription.descriptors),
                    on: link,
                    endingOnChangeOf: HandleRange(start: handle, end: subscription.descriptors.end)
                ) { _ in }
            }
        }
        return ends
    }

    private func ended(_ link: LinkIdentifier) {
        guard let shared = state.links.removeValue(forKey: link) else { return }
        peers.setConnected(false, shared.peripheral)
        for central in state.centrals { central.peerDisconnected(shared.peripheral, from: link) }
    }

    /// Notifies the managers that services of a connected peripheral were discovered. An app may observe connections to
    /// peripherals with these services.
    func servicesDiscovered(on link: LinkIdentifier) {
        guard let peripheral = state.links[link]?.peripheral else { return }
        for central in state.centrals { central.servicesDiscovered(of: peripheral, on: link) }
    }

    // MARK: Subscriptions

    /// Adds a subscriber of a manager to a value.
    ///
    /// - Parameter deliver: called on the loop with each value.
    func addSubscriber(
        of handle: AttributeHandle,
        on link: LinkIdentifier,
        _ host: isolated BluetoothHost,
        deliver: @escaping @Sendable (HandleValue) -> Void
    ) throws(HostError) -> UInt64 {
        let subscriber = try host.addSubscriber(of: handle, on: link, deliver: deliver)
        state.links[link]?.subscriberCounts[handle, default: 0] += 1
        return subscriber
    }

    func removeSubscriber(
        _ subscriber: UInt64,
        of handle: AttributeHandle,
        on link: LinkIdentifier,
        _ host: isolated BluetoothHost
    ) {
        let rest = (state.links[link]?.subscriberCounts[handle] ?? 0) - 1
        state.links[link]?.subscriberCounts[handle] = rest > 0 ? rest : nil
        host.removeSubscriber(subscriber, of: handle, on: link)
    }

    /// Returns whether a manager or another user of the host wants a value.
    func isWanted(_ handle: AttributeHandle, on link: LinkIdentifier, _ host: isolated BluetoothHost) -> Bool {
        let shared = state.links[link]
        return shared?.subscriptions[handle] != nil
            || host.subscriberCount(of: handle, on: link) > shared?.subscriberCounts[handle] ?? 0
    }

    /// Notes that a user wants a value.
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

    /// Notes that a user no longer wants a value.
    func unsubscribe(_ user: LinkUser, from handle: AttributeHandle, on link: LinkIdentifier) {
        guard var subscription = state.links[link]?.subscriptions[handle] else { return }
        subscription.users.removeAll { $0 == user }
        state.links[link]?.subscriptions[handle] = subscription.users.isEmpty ? nil : subscription
    }

    // MARK: Preparation of a new link

    /// Reads the Device Name and subscribes to Service Changed, one request at a time. An app's request therefore waits
    /// for at most one of them.
    ///
    /// If the peer refuses a request because of insufficient security, the host does not pair: the app has not used a
    /// protected value.
    private func prepare(_ link: LinkIdentifier, _ peripheral: UUID, on host: isolated BluetoothHost) async {
        if let name = await readDeviceName(link, on: host) { peers.read(deviceName: name, of: peripheral) }
        state.links[link]?.isNameKnown = true
        sayName(to: state.links[link]?.users ?? [], on: link)
        guard
            let service = try? await host.perform(
                DiscoverServicesByUUID(uuid: .genericAttributeService),
                on: link,
                elevatesSecurity: false
            ).first,
            let characteristic = try? await host.perform(
                DiscoverCharacteristics(
                    range: HandleRange(start: service.handle, end: service.endHandle),
                    uuid: .serviceChanged
                ),
                on: link,
                elevatesSecurity: false
            ).first, let descriptors = characteristic.descriptorRange,
            (try? host.addSubscriber(of: characteristic.valueHandle, on: link) { [weak self, weak host] value in
                host?.assumeIsolated { self?.servicesChanged(value.value, on: link, $0) }
            }) != nil
        else { return }
        _ = try? await host.perform(
            SetClientConfiguration(.indication, inDescriptors: descriptors),
            on: link,
            elevatesSecurity: false
        )
    }

    /// Reports the name to users of a link, also if it is the same as before. The directory may have learned it without
    /// the objects of an app, for example from a packet that was received after the app's scan.
    private func sayName(to users: [LinkUser], on link: LinkIdentifier) {
        for user in users {
            guard let name = peers.name(of: user.peripheral) else { continue }
            user.central.sayChange(.nameChanged(user.peripheral, name), on: link)
        }
    }

    private func readDeviceName(_ link: LinkIdentifier, on host: isolated BluetoothHost) async -> String? {
        let read = ReadUsingUUID(uuid: .deviceName)
        guard let found = try? await host.perform(read, on: link, elevatesSecurity: false).first else { return nil }
        // The name may be longer than the response.
        let longRead = ReadLongValue(handle: found.handle)
        let value = (try? await host.perform(longRead, on: link, elevatesSecurity: false)) ?? found.value
        let name = String(decoding: value.prefix { $0 != 0 }, as: UTF8.self)
        return name.isEmpty ? nil : name
    }

    /// Handles a value of Service Changed: the first and the last affected handle (Vol 3, Part G, 7.1).
    private func servicesChanged(_ value: [UInt8], on link: LinkIdentifier, _ host: isolated BluetoothHost) {
        guard value.count == 4 else { return }
        let range = HandleRange(
            start: AttributeHandle(UInt16(value[0]) | UInt16(value[1]) << 8),
            end: AttributeHandle(UInt16(value[2]) | UInt16(value[3]) << 8)
        )
        guard range.isValid else { return }
        // Other attributes may have these handles now. The calls for the former ones end. A user that leaves must not
        // clear the configurations of the present ones.
        host.attributesChanged(in: range, on: link)
        if let subscriptions = state.links[link]?.subscriptions {
            state.links[link]?.subscriptions = subscriptions.filter { handle, subscription in
                !HandleRange(start: handle, end: subscription.descriptors.end).overlaps(range)
            }
        }
        for user in state.links[link]?.users ?? [] {
            user.central.servicesChanged(in: range, of: user.peripheral, on: link, host)
        }
    }
}
