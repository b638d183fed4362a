import BLEATT
import BLEGATT
import BLEHCITransport
import BluetoothHost
import BluetoothTypes
import Foundation

/// The backend of a peripheral manager on a host of this process.
///
/// Calls are submitted to the host's loop, to which the state is confined.
final class HostPeripheral: PeripheralBackend, HostMember {
    /// A link from a central to this host.
    fileprivate struct Client {
        /// The hold keeps the central in the directory while it is connected.
        var peer: HeldPeer
        /// Whether the link was reported to the manager.
        var isAnnounced = false
        /// Whether the link is being ended, because the manager did not take an event that must not be dropped. From
        /// then on, only the end of the link is delivered.
        var isEnding = false
        /// Whether the app has ended the link. What it calls for the client afterwards has no effect.
        var isReleased = false
        /// The number of commands that the manager did not take.
        var droppedCommands = 0

        var central: UUID { peer.identifier }
    }

    let shared: SharedHost
    let options: HostOptions
    private let restoreIdentifier: String?
    /// Receives the events. A closure stored bare under the lock would be wrapped once more at each access.
    private struct Listener {
        let deliver: @Sendable (PeripheralEvent) -> Bool
    }

    private let listener = Guarded<Listener?>(nil)

    final class State {
        fileprivate(set) var open: OpenHost?
        fileprivate var observers: [UInt64] = []
        /// The state that was last reported of the open host.
        fileprivate var reported = CBManagerState.unknown
        fileprivate var clients: [LinkIdentifier: Client] = [:]
        /// The published services, in the order of publication.
        fileprivate var services: [PublishedService] = []
        fileprivate var values: Set<AttributeHandle> = []
        /// The PSMs of the published channel services.
        var channelServices: Set<CBL2CAPPSM> = []
        fileprivate var advertisement: AdvertisementIdentifier?
        /// Incremented by each start and each end of advertising.
        fileprivate var advertisingNumber: UInt64 = 0
    }

    private let loop = HostLoop()
    private let confined: LoopConfined<State>
    var state: State { confined.value }
    var open: OpenHost? { state.open }
    /// The starts and stops of advertising, in order.
    private let advertising = SerialTaskQueue()

    init(_ shared: SharedHost, options: HostOptions = HostOptions(), restoreIdentifier: String? = nil) {
        self.shared = shared
        self.options = options
        self.restoreIdentifier = restoreIdentifier
        confined = LoopConfined(State(), to: loop)
    }

    // MARK: Life

    func start(_ deliver: @escaping @Sendable (PeripheralEvent) -> Bool) {
        listener.withLock { $0 = Listener(deliver: deliver) }
        shared.join(self)
    }

    func stop() {
        listener.withLock { $0 = nil }
        shared.leave(self) { host, open in
            for observer in self.state.observers { host.removeObserver(observer) }
            self.endAdvertising(on: host)
            // The last service first, because later services may include earlier ones.
            for service in self.state.services.reversed() { host.removeService(at: service.handle) }
            self.state.services = []
            self.state.values = []
            self.endChannelServices(on: host)
            self.state.open = nil
        }
    }

    func begin(with open: OpenHost, on host: isolated BluetoothHost) {
        loop.set(host.loop)
        state.open = open
        state.observers = [
            host.observe { [weak self] event in self?.hostEvent(event) },
            host.observeReopening { [weak self] error in self?.reopeningFailed(error) },
            host.observeServer { [weak self] event in self?.serverEvent(event) },
            host.observeSecurity { [weak self] event in self?.securityEvent(event) },
        ]
        if let identifier = restoreIdentifier, let record = open.restoration.advertisement(identifier) {
            // Delivered once. From now on, the activity of this manager is saved.
            open.restoration.set(nil as Restoration.Advertisement?, for: identifier)
            deliver(
                .restored(
                    RestoredPeripheral(
                        localName: record.localName,
                        services: record.services.compactMap { BluetoothUUID($0) }
                    )
                )
            )
        }
        report(open.managerState(on: host))
        for link in host.linkIdentifiers() where (try? host.information(on: link).isCentral) == false {
            register(link, host)
        }
    }

    func fail(_ failure: OpeningFailure) {
        deliver(.stateChanged(failure.state))
    }

    /// Passes an event to the manager.
    ///
    /// - Returns: false if the manager does not take the event, because the app does not keep up with this peer.
    @discardableResult
    func deliver(_ event: PeripheralEvent) -> Bool {
        listener.withLock { $0 }?.deliver(event) ?? true
    }

    private func hostEvent(_ event: HostEvent) {
        switch event {
        case .poweredOn: report(.poweredOn)
        case .resetting:
            open?.host.assumeIsolated { endAdvertising(on: $0) }
            report(.resetting)
        case .closed: report(.unsupported)
        // Sequences of the app report these: see `HostEvents`.
        case .scanRestarted, .stateUnavailable, .eventsDropped: break
        }
    }

    /// Handles a failure to reach the lost controller again. Called on the loop.
    private func reopeningFailed(_ error: TransportError) {
        let now = OpenHost.state(ofRecovery: error)
        if open != nil, now != state.reported { report(now) }
    }

    private func report(_ now: CBManagerState) {
        state.reported = now
        deliver(.stateChanged(now))
    }

    // MARK: Centrals

    private func serverEvent(_ event: ServerRoleEvent) {
        open?.host.assumeIsolated { host in
            switch event {
            case .connected(let link, _): register(link, host)
            case .mtuChanged(let link, _):
                guard state.clients[link]?.isAnnounced == true, let central = remote(on: link, host) else { return }
                if !deliver(.mtuChanged(central)) { end(link, host) }
            case .access(let link, .configured(let handle, _, let configuration)):
                guard state.values.contains(handle), let central = remote(on: link, host) else { return }
                if !deliver(.configured(central, handle, configuration)) { end(link, host) }
            case .access, .disconnected: break
            }
        }
    }

    /// Checks the identities again, after the event has been handled everywhere in the host.
    private func securityEvent(_ event: SecurityEvent) {
        switch event {
        case .encryptionChanged, .paired, .bondAdded, .bondRemoved:
            open?.run { [weak self] host, _ in
                for link in host.linkIdentifiers() { self?.identify(link, host) }
            }
        default: break
        }
    }

    /// Registers a new link. The link is reported to the manager at once, unless the central is not verified yet.
    private func register(_ link: LinkIdentifier, _ host: isolated BluetoothHost) {
        guard state.clients[link] == nil, let open, let central = open.centrals.central(on: link, host) else { return }
        state.clients[link] = Client(peer: central)
        host.observeEnd(of: link) { [weak self] _ in self?.linkEnded(link) }
        if host.identityVerification(on: link) != .unverified { _ = announced(link, host) }
    }

    /// Returns the central on a link, and reports the link to the manager if that was not done yet. Nil if the link is
    /// ending or has ended.
    func remote(on link: LinkIdentifier, _ host: isolated BluetoothHost) -> RemoteCentral? {
        register(link, host)
        identify(link, host)
        return announced(link, host)
    }

    /// Reports a link to the manager, once. If the manager does not take it, because too many wait for the app, the
    /// link is ended.
    private func announced(_ link: LinkIdentifier, _ host: isolated BluetoothHost) -> RemoteCentral? {
        guard let client = state.clients[link], !client.isEnding, let mtu = try? host.information(on: link).mtu else {
            return nil
        }
        let remote = RemoteCentral(link: link, identifier: client.central, mtu: mtu)
        if !client.isAnnounced {
            guard deliver(.connected(remote)) else {
                end(link, host)
                return nil
            }
            state.clients[link]?.isAnnounced = true
        }
        return remote
    }

    /// Updates the identifier of the central on a link.
    private func identify(_ link: LinkIdentifier, _ host: isolated BluetoothHost) {
        guard let open, let client = state.clients[link], !client.isEnding,
            let central = open.centrals.central(on: link, host)
        else { return }
        if central.identifier != client.central {
            state.clients[link]?.peer = central
            if client.isAnnounced, let remote = announced(link, host),
                !deliver(.identified(remote, before: client.central))
            {
                // The manager does not know the new identifier.
                state.clients[link]?.peer = client.peer
                return end(link, host)
            }
        }
        if host.identityVerification(on: link) != .unverified { _ = announced(link, host) }
    }

    /// Ends the link of a client that causes more events than the manager takes.
    private func end(_ link: LinkIdentifier, _ host: isolated BluetoothHost) {
        state.clients[link]?.isEnding = true
        host.disconnectFlooding(link)
    }

    private func linkEnded(_ link: LinkIdentifier) {
        guard let client = state.clients.removeValue(forKey: link), client.isAnnounced else { return }
        deliver(.disconnected(RemoteCentral(link: link, identifier: client.central, mtu: BLEATT.Bearer.defaultMTU)))
    }

    /// Returns the links of a central that the app has not ended, oldest first.
    private func links(of central: UUID, _ host: isolated BluetoothHost) -> [LinkIdentifier] {
        host.linkIdentifiers().filter {
            state.clients[$0]?.central == central && state.clients[$0]?.isReleased == false
        }
    }

    func address(of central: UUID) -> DeviceAddress? { shared.open?.centrals.address(of: central) }

    func disconnect(_ central: UUID) {
        submit { host, _ in
            for link in self.links(of: central, host) {
                self.state.clients[link]?.isReleased = true
                host.disconnectAfterFlush(link, isServer: true)
            }
        }
    }

    func setLatency(_ latency: CBPeripheralManagerConnectionLatency, of central: UUID) {
        submit { host, _ in
            for link in self.links(of: central, host) {
                // Best effort: the central decides.
                host.beginUpdatingParameters(latency.parameters, of: link)
            }
        }
    }

    // MARK: Services

    func publish(
        _ service: ServiceDefinition,
        including included: [LocalServiceHandle],
        _ completion: @escaping Completion<PublishedService>
    ) {
        submit(completion) { host, _ in
            let handles = included.compactMap(\.value)
            guard handles.count == included.count else { return completion(.failure(.core(.invalidParameters))) }
            var definition = service
            definition.includes += handles.map(ServiceDefinition.Include.handle)
            do throws(DatabaseError) {
                let owner = ObjectIdentifier(self)
                let published = try host.publish([definition], owner: owner) { [weak self] link, request in
                    self?.accessed(on: link, request)
                }
                guard let service = published.first else { return completion(.failure(.core(.unknown))) }
                self.state.services.append(service)
                self.state.values.formUnion(service.characteristics.map(\.valueHandle))
                completion(.success(service))
            } catch {
                completion(.failure(BackendError(error)))
            }
        }
    }

    func completeInOrder(_ completion: @escaping Completion<Void>) {
        submit(completion, call: nil) { _, _ in completion(.success(())) }
    }

    func removeService(at handle: AttributeHandle) {
        submit { host, _ in
            guard let index = self.state.services.firstIndex(where: { $0.handle == handle }) else { return }
            let service = self.state.services.remove(at: index)
            self.state.values.subtract(service.characteristics.map(\.valueHandle))
            host.removeService(at: handle)
        }
    }

    private func accessed(on link: LinkIdentifier, _ request: AccessRequest) {
        open?.host.assumeIsolated { host in
            guard let central = remote(on: link, host), !deliver(.access(central, request)) else { return }
            // The manager refuses only commands.
            let droppedBefore = state.clients[link]?.droppedCommands ?? 0
            state.clients[link]?.droppedCommands += 1
            host.commandWasDropped(from: link, droppedBefore: droppedBefore)
        }
    }

    func answer(_ access: UInt64, on link: LinkIdentifier, _ result: Result<[UInt8], ATTErrorCode>) {
        submit { host, _ in
            guard self.state.clients[link]?.isReleased != true else { return }
            host.answer(access, on: link, with: result)
        }
    }

    // MARK: Values

    func update(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to links: [LinkIdentifier],
        _ completion: @escaping Completion<Void>
    ) {
        submit(completion) { host, _ in
            let clients = links.filter { self.state.clients[$0]?.isReleased != true }
            // A failure means that the central has disconnected, and its subscription with it.
            host.beginSending(value, of: handle, to: clients) { _ in completion(.success(())) }
        }
    }

    // MARK: Advertising

    func startAdvertising(_ payload: AdvertisementPayload, _ completion: @escaping Completion<Void>) {
        let configuration = AdvertisementConfiguration(
            // Extended advertisements are connectable or scannable, not both (Vol 4, Part E, 7.8.53).
            isScannable: payload.advertisingData.length <= AdvertisementPayload.capacity,
            interval: payload.interval ?? AdvertisementConfiguration().interval,
            advertisingData: payload.advertisingData,
            scanResponseData: payload.scanResponseData
        )
        submit(completion) { host, open in
            self.endAdvertising(on: host)
            let services = payload.services.map { "\($0)" }
            self.save(Restoration.Advertisement(localName: payload.localName, services: services), open)
            let number = self.state.advertisingNumber
            self.advertising.add(on: host) { host in
                do throws(HostError) {
                    self.state.advertisement = try await host.startAdvertising(configuration)
                    completion(.success(()))
                } catch {
                    // A later start has saved its own advertisement.
                    if self.state.advertisingNumber == number { self.save(nil, open) }
                    completion(.failure(BackendError(error)))
                }
            }
        }
    }

    func stopAdvertising() {
        submit { host, _ in self.endAdvertising(on: host) }
    }

    /// Saves the advertisement for the next process, if the manager has a restore identifier.
    private func save(_ advertisement: Restoration.Advertisement?, _ open: OpenHost?) {
        if let restoreIdentifier { open?.restoration.set(advertisement, for: restoreIdentifier) }
    }

    private func endAdvertising(on host: isolated BluetoothHost) {
        state.advertisingNumber += 1
        save(nil, open)
        advertising.add(on: host) { host in
            guard let advertisement = self.state.advertisement else { return }
            self.state.advertisement = nil
            await host.stopAdvertising(advertisement)
        }
    }
}
