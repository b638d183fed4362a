import BLEATT
import BLEByteCoding
import BluetoothTypes

/// The state of the client's cache of the server's database.
enum DatabaseState {
    /// There is no cache: the server's identity is not verified, or its database could not be discovered.
    case none
    /// The client is validating its cache or discovering the database. `serviceChanged` is the handle of Service
    /// Changed, if an earlier connection discovered it.
    case validating(isOutdated: Bool, serviceChanged: AttributeHandle?)
    /// The cache is the server's database.
    case valid(DatabaseCache)
}

/// The indications that a client has confirmed while it did not know the handle of Service Changed. That is so before
/// the server's identity is verified, and while the client discovers the database for the first time. One of them may
/// have been Service Changed. The server does not repeat it.
struct EarlyIndications {
    /// Maximum number of handles. Beyond it, each handle counts as indicated.
    private static let limit = 8

    private var handles: [AttributeHandle] = []
    private var isFull = false

    mutating func add(_ handle: AttributeHandle) {
        guard !contains(handle) else { return }
        if handles.count < EarlyIndications.limit { handles.append(handle) } else { isFull = true }
    }

    func contains(_ handle: AttributeHandle) -> Bool { isFull || handles.contains(handle) }
}

extension Client {
    /// The services of the server, if they need not be discovered.
    var knownServices: [DiscoveredService]? {
        if case .valid(let cache) = databaseState { cache.services } else { nil }
    }

    /// Starts to validate `cache`, or to discover the server's database.
    ///
    /// The caller calls this once the server is a bonded device and its link is encrypted with the bond's key. If the
    /// cache of an earlier connection is still valid, the client uses it. Otherwise the client discovers the database
    /// again.
    ///
    /// A cache without a hash is dropped if the client has already confirmed an indication of its Service Changed: only
    /// this indication reports that the database has changed.
    ///
    /// The call has no effect if the cache is valid or being validated. The owner then calls
    /// ``nextRequest(mtu:into:)`` if the bearer is free.
    ///
    /// - Parameter cache: the cache of an earlier connection; nil if there is none.
    public func validate(_ cache: DatabaseCache?) {
        guard case .none = databaseState else { return }
        let serviceChanged = cache?.genericAttribute(.serviceChanged)?.valueHandle
        let isOutdated = if let cache { hasConfirmedChange(of: cache) } else { false }
        if isOutdated { return drop(serviceChanged: serviceChanged) }
        startValidation(cache, serviceChanged: serviceChanged)
    }

    /// Whether the client has confirmed the only indication that a cache without a hash is not valid any more, while it
    /// did not know the handle of Service Changed. The server does not repeat that indication.
    ///
    /// ``validate(_:)`` drops such a cache. If the link ends before that, the owner deletes the stored cache.
    package func hasConfirmedChange(of cache: DatabaseCache) -> Bool {
        guard cache.hash == nil, let serviceChanged = cache.genericAttribute(.serviceChanged) else { return false }
        return earlyIndications.contains(serviceChanged.valueHandle)
    }

    /// Whether the client is validating its cache or discovering the database.
    package var isValidatingDatabase: Bool {
        if case .validating = databaseState { true } else { false }
    }

    /// Whether an attribute is the server's Service Changed, as far as the client knows. The client then needs its
    /// indications to keep its cache valid.
    package func isServiceChanged(_ handle: AttributeHandle) -> Bool {
        switch databaseState {
        case .none: false
        case .validating(_, let serviceChanged): serviceChanged == handle
        case .valid(let cache): cache.genericAttribute(.serviceChanged)?.valueHandle == handle
        }
    }

    /// Takes an indication. If it is the server's Service Changed, the client drops its cache and discovers the
    /// database again (Vol 3, Part G, 7.1). The owner then calls ``nextRequest(mtu:into:)`` if the bearer is free.
    public func indicationReceived(from handle: AttributeHandle) {
        switch databaseState {
        case .none: earlyIndications.add(handle)
        case .validating(_, handle): validateAgain(serviceChanged: handle)
        case .validating(_, nil): earlyIndications.add(handle)
        case .validating: break
        case .valid(let cache):
            guard cache.genericAttribute(.serviceChanged)?.valueHandle == handle else { return }
            drop(serviceChanged: handle)
        }
    }

    /// Drops what is known of the server's database, because the app wants it to be discovered again. The owner then
    /// calls ``nextRequest(mtu:into:)`` if the bearer is free.
    public func discardDatabase() {
        switch databaseState {
        case .none: break
        case .validating(_, let serviceChanged): validateAgain(serviceChanged: serviceChanged)
        case .valid: outOfSync()
        }
    }

    /// Makes the client discover the database again at the end of the background procedure. A procedure that has not
    /// started, and has no cache to validate, discovers the present database anyway.
    private func validateAgain(serviceChanged: AttributeHandle?) {
        let isOutdated = validation.map { $0.procedure.hasStarted || $0.procedure.known != nil } ?? true
        databaseState = .validating(isOutdated: isOutdated, serviceChanged: serviceChanged)
        cacheChanged(nil)
    }

    /// Forgets the server's database, because another device may be the server now. ``validate(_:)`` may follow.
    public func forgetDatabase() {
        if let validation { cancel(validation) }
        databaseState = .none
        earlyIndications = EarlyIndications()
        acceptedWrites = [:]
    }

    /// Drops the cache: the server has answered Database Out Of Sync.
    func outOfSync() {
        guard case .valid(let cache) = databaseState else { return }
        drop(serviceChanged: cache.genericAttribute(.serviceChanged)?.valueHandle)
    }

    private func drop(serviceChanged: AttributeHandle?) {
        cacheChanged(nil)
        startValidation(nil, serviceChanged: serviceChanged)
    }

    private func startValidation(_ cache: DatabaseCache?, serviceChanged: AttributeHandle?) {
        // They say nothing about a cache that the client makes from now on.
        earlyIndications = EarlyIndications()
        databaseState = .validating(isOutdated: false, serviceChanged: serviceChanged)
        performInBackground(
            DatabaseCacheValidation(known: cache, supportedFeatures: supportedFeatures, acceptedWrites: acceptedWrites)
        )
    }

    /// Handles the result of the background procedure.
    func databaseValidationEnded(_ run: TypedProcedureRun<DatabaseCacheValidation>) {
        acceptedWrites = run.procedure.acceptedWrites
        guard case .validating(let isOutdated, let serviceChanged) = databaseState else { return }
        do throws(ClientError) {
            let validated = try run.output()
            if isOutdated { return startValidation(nil, serviceChanged: serviceChanged) }
            if serviceChanged == nil, hasConfirmedChange(of: validated) {
                // Once more at most: the handle is known then.
                return startValidation(nil, serviceChanged: validated.genericAttribute(.serviceChanged)?.valueHandle)
            }
            earlyIndications = EarlyIndications()
            databaseState = .valid(validated)
            if validated != run.procedure.known { cacheChanged(validated) }
        } catch {
            databaseState = .none
        }
    }
}
