import BLEATT
import BLEGATT
import BluetoothHost
import BluetoothTypes
import Foundation
import Synchronization

/// The peripheral role: publishes services and advertises them.
///
/// The app may use the manager on any thread. The delegate is called on the given queue, one call at a time.
open class CBPeripheralManager: CBManager, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    enum Advertising {
        case off
        case starting
        case on
    }

    struct Content {
        /// Unsafe for the compiler, because delegates need not be `Sendable`. Only the manager's queue calls them.
        nonisolated(unsafe) weak var delegate: (any CBPeripheralManagerDelegate)?
        var advertising = Advertising.off
        /// Incremented on each start of advertising. The result of an earlier start is ignored.
        var advertisement: UInt64 = 0
        /// The starts that the app has requested while advertising was starting or on, and that are not reported yet.
        /// The oldest is first.
        var waitingStarts: [AdvertisementPayload] = []
        var database = LocalDatabase()
        var centrals: [UUID: Weak<CBCentral>] = [:]
        /// The number of entries in ``centrals`` at which those of released objects are removed.
        var sweepSize = 64
        /// The centrals, by their links.
        var remotes: [LinkIdentifier: RemoteCentral] = [:]
        /// The numbers of values in the host that wait for one of their links, by the links to which they are sent.
        var updatesInFlight: [LinkIdentifier: Int] = [:]
        /// Incremented when the manager is no longer powered on. The completions of earlier updates and of earlier
        /// channel services are ignored.
        var session: UInt64 = 0
        /// The links of each value that ``updateValue(_:for:onSubscribedCentrals:)`` has refused. The delegate is
        /// called when one of these links has space.
        var refusedUpdates: Set<Set<LinkIdentifier>> = []
    }

    /// Maximum number of values that wait in the host for one link. An update is refused if each of its links has as
    /// many.
    static let updateLimit = 16

    let backend: (any PeripheralBackend)?
    let content: Mutex<Content>
    let backlog = DeliveryBacklog<PeripheralEvent>()
    let centralChanges = Broadcast<CBCentralChange>()

    /// Creates a manager without a delegate that uses the main queue.
    public convenience init() {
        self.init(delegate: nil, queue: nil, options: nil)
    }

    /// Creates a manager without options; see ``init(delegate:queue:options:)``.
    public convenience init(delegate: (any CBPeripheralManagerDelegate)?, queue: DispatchQueue?) {
        self.init(delegate: delegate, queue: queue, options: nil)
    }

    /// Creates a manager. The delegate receives the state soon after.
    ///
    /// - Parameters:
    ///   - delegate: the object that receives the manager's events. The manager does not keep it.
    ///   - queue: the queue on which the delegate is called; nil for the main queue, which a command line program must
    ///     run.
    ///   - options: see `CBPeripheralManagerOptionRestoreIdentifierKey` and the other options.
    public init(
        delegate: (any CBPeripheralManagerDelegate)?,
        queue: DispatchQueue?,
        options: [String: Any]? = nil
    ) {
        backend = BackendFactory.makePeripheralBackend(options)
        content = Mutex(Content(delegate: delegate))
        super.init(deliveringOn: queue)
        begin(backend.map { $0.start })
    }

    init(delegate: (any CBPeripheralManagerDelegate)?, queue: DispatchQueue?, backend: (any PeripheralBackend)?) {
        self.backend = backend
        content = Mutex(Content(delegate: delegate))
        super.init(deliveringOn: queue)
        begin(backend.map { $0.start })
    }

    deinit {
        // Another manager may publish the services.
        content.withLock { $0.database.removeAll() }
        backend?.stop()
    }

    /// The object that receives the manager's events, held weakly. Another delegate receives the events from then on.
    open weak var delegate: (any CBPeripheralManagerDelegate)? {
        get { content.withLock { unsafe $0.delegate } }
        set { content.withLock { unsafe $0.delegate = newValue } }
    }

    /// Whether the manager advertises: true from the successful start until the app stops it or the manager is no
    /// longer powered on. It stays true while centrals are connected.
    open var isAdvertising: Bool { content.withLock { $0.advertising == .on } }

    /// Always `authorized`; see ``CBManager/authorization-swift.type.property``.
    @available(*, deprecated, message: "Use CBManager.authorization")
    open class func authorizationStatus() -> CBPeripheralManagerAuthorizationStatus { .authorized }

    // MARK: Advertising

    /// Advertises a local name and services, the only two supported keys; see
    /// ``CBPeripheralManagerDelegate/peripheralManagerDidStartAdvertising(_:error:)``.
    open func startAdvertising(_ advertisementData: [String: Any]?) {
        guard acceptsCommands() else { return }
        for key in (advertisementData ?? [:]).keys.sorted() where !AdvertisementPayload.keys.contains(key) {
            ProgrammerError.report("\(self) cannot advertise \(key)")
        }
        startAdvertising(AdvertisementPayload(dictionary: advertisementData))
    }

    func startAdvertising(_ payload: AdvertisementPayload) {
        let (before, advertisement) = content.withLock { content in
            let before = content.advertising
            switch before {
            case .off: beginAdvertising(payload, &content)
            case .starting, .on: content.waitingStarts.append(payload)
            }
            return (before, content.advertisement)
        }
        switch before {
        case .off: noteOmittedServices(of: payload)
        case .starting: break
        case .on:
            onQueue { manager in
                if manager.takeWaitingStart(during: advertisement) { manager.reportAlreadyAdvertising() }
            }
        }
    }

    /// Asks the backend to advertise. Called under the lock, so that starts and stops from several threads reach the
    /// backend in the order of the states.
    func beginAdvertising(_ payload: AdvertisementPayload, _ content: inout Content) {
        content.advertising = .starting
        content.advertisement += 1
        backend?.startAdvertising(payload) { [weak self, advertisement = content.advertisement] result in
            self?.onQueue { $0.startedAdvertising(result, advertisement) }
        }
    }

    /// Stops advertising. Starts that are not reported yet are not reported at all.
    open func stopAdvertising() {
        guard acceptsCommands() else { return }
        content.withLock { content in
            guard content.advertising != .off else { return }
            content.advertising = .off
            content.waitingStarts = []
            backend?.stopAdvertising()
        }
    }

    // MARK: Services

    /// Publishes a service, which cannot be changed from then on; see
    /// ``CBPeripheralManagerDelegate/peripheralManager(_:didAdd:error:)``.
    ///
    /// The services that it includes must have been added before. Their publication need not have been reported yet. If
    /// one of them cannot be published, the error is ``CBError/Code/invalidParameters``. A service that was added to
    /// this or another manager has the same error, until it is removed or that manager is released.
    ///
    /// - Precondition: characteristics that have a value are read-only, in their properties and their permissions.
    open func add(_ service: CBMutableService) {
        guard acceptsCommands() else { return }
        if service.hasCachedValueThatChanges {
            ProgrammerError.raise("Characteristics with cached values must be read-only")
        }
        guard let addition = content.withLock({ $0.database.add(service) }) else {
            ProgrammerError.report(
                "\(service) is published already by this or another manager, includes a service that was not added, "
                    + "or contains an object that is not local"
            )
            // The result follows those of earlier calls, which may be for the same service.
            backend?.completeInOrder { [weak self] _ in
                self?.onQueue { manager in
                    let error = CBError.described(.invalidParameters)
                    manager.delegate?.peripheralManager(manager, didAdd: service, error: error)
                }
            }
            return
        }
        backend?.publish(addition.definition, including: addition.included) { [weak self] result in
            // At once, because services that include this one may be published next.
            if case .success(let published) = result { addition.handle.set(published.handle) }
            self?.onQueue { $0.published(service, addition.number, result) }
        }
    }

    /// Removes a service, which can be changed again from then on.
    open func remove(_ service: CBMutableService) {
        guard acceptsCommands() else { return }
        let handle = content.withLock { content in
            defer { content.database.remove(service) }
            return content.database.handle(of: service)
        }
        if let handle { backend?.removeService(at: handle) }
    }

    /// Removes all services of this manager.
    open func removeAllServices() {
        guard acceptsCommands() else { return }
        removePublishedServices()
    }

    // MARK: Values

    /// Answers a request. If several requests arrived together, the first answer counts for all of them, and later
    /// answers are ignored. Answers to requests without a response are ignored too.
    ///
    /// - Parameters:
    ///   - request: a request that the delegate received.
    ///   - result: `success` or the error code for the Error Response. A code that is not a byte is a mistake of the
    ///     app; the peer receives `unlikelyError`.
    open func respond(to request: CBATTRequest, withResult result: CBATTError.Code) {
        guard acceptsCommands(), request.access.takeAnswer() else { return }
        let answer: Result<[UInt8], ATTErrorCode> =
            if result == .success {
                .success(request.access.kind == .read ? Array(request.value ?? Data()) : [])
            } else {
                .failure(errorCode(result))
            }
        backend?.answer(request.access.identifier, on: request.access.link, answer)
    }

    /// Returns the error code to send for `result`.
    private func errorCode(_ result: CBATTError.Code) -> ATTErrorCode {
        guard let code = UInt8(exactly: result.rawValue) else {
            ProgrammerError.report("\(result.rawValue) is not an ATT error code, which are 0 to 255")
            return .unlikelyError
        }
        return ATTErrorCode(rawValue: code)
    }

    /// Sends a value to those of `centrals` that subscribe to the characteristic; to all subscribers if `centrals` is
    /// nil.
    ///
    /// A value to several centrals waits until each of them has taken it, but at most 10 s, so that none can stop the
    /// others. If a central has not taken it by then, further values do not wait for this central until it has taken
    /// all values that wait for it. If 256 values wait for it, it misses the next values to several centrals. A value
    /// to one central is never left out.
    ///
    /// - Returns: false if, for each of these centrals, 16 earlier values still wait as described. Nothing was sent
    ///   then, and ``CBPeripheralManagerDelegate/peripheralManagerIsReady(toUpdateSubscribers:)`` is called when there
    ///   is space.
    @discardableResult
    open func updateValue(
        _ value: Data,
        for characteristic: CBMutableCharacteristic,
        onSubscribedCentrals centrals: [CBCentral]?
    ) -> Bool {
        guard acceptsCommands() else { return false }
        let (published, isPending) = content.withLock { content in
            let handle = content.database.handle(of: characteristic)
            return (handle, handle == nil && content.database.awaitsPublication(characteristic))
        }
        guard let handle = published else {
            if isPending { return true }
            ProgrammerError.report("\(characteristic) is not published by \(self)")
            return false
        }
        let wanted = centrals.map { Set($0.map(\.identifier)) }
        let targets = characteristic.subscriptions
            .filter { wanted?.contains($0.central.identifier) ?? true }
            .map(\.link)
        guard !targets.isEmpty else { return true }
        let session = content.withLock { content -> UInt64? in
            guard content.hasSpace(for: targets) else {
                content.refusedUpdates.insert(Set(targets))
                return nil
            }
            for link in targets { content.updatesInFlight[link, default: 0] += 1 }
            return content.session
        }
        guard let session else { return false }
        backend?.update(Array(value), of: handle, to: targets) { [weak self] _ in
            self?.onQueue { $0.updateHasLeft(to: targets, session) }
        }
        return true
    }

    // MARK: Connections

    /// Requests a shorter or longer latency of a central's connection. The central decides.
    open func setDesiredConnectionLatency(_ latency: CBPeripheralManagerConnectionLatency, for central: CBCentral) {
        guard acceptsCommands() else { return }
        backend?.setLatency(latency, of: central.identifier)
    }

    /// Publishes a service for L2CAP channels; see
    /// ``CBPeripheralManagerDelegate/peripheralManager(_:didPublishL2CAPChannel:error:)``. The service is removed when
    /// the manager is no longer powered on.
    open func publishL2CAPChannel(withEncryption encryptionRequired: Bool) {
        guard acceptsCommands() else { return }
        let session = content.withLock { $0.session }
        backend?.publishChannel(requiresEncryption: encryptionRequired) { [weak self] result in
            self?.onQueue { manager in
                // The service was removed when the manager was no longer powered on.
                guard manager.content.withLock({ $0.session }) == session else { return }
                let psm = (try? result.get()) ?? 0
                manager.delegate?.peripheralManager(manager, didPublishL2CAPChannel: psm, error: result.error)
            }
        }
    }

    /// Removes a service for L2CAP channels. Open channels stay open.
    open func unpublishL2CAPChannel(_ psm: CBL2CAPPSM) {
        guard acceptsCommands() else { return }
        backend?.unpublishChannel(psm) { [weak self] result in
            self?.onQueue { manager in
                manager.delegate?.peripheralManager(manager, didUnpublishL2CAPChannel: psm, error: result.error)
            }
        }
    }
}

extension Result where Failure == BackendError {
    /// The error that the app receives; nil for success.
    var error: (any Error)? {
        if case .failure(let error) = self { error.error } else { nil }
    }
}
