import BLEATT
import BLEByteCoding
import BluetoothTypes

/// The client's knowledge of the server's database.
enum DatabaseKnowledge {
    /// No certain knowledge: the server is not trusted, or its database could not be learned.
    case none
    /// The client is validating its cache or discovering the database. `serviceChanged` is the handle of Service
    /// Changed, if an earlier connection discovered it.
    case learning(isOutdated: Bool, serviceChanged: AttributeHandle?)
    case certain(DatabaseCache)
}

/// The indications that a client has confirmed while it did not know the handle of Service Changed. That is so before the
/// server's identity is verified, and while the client learns the database for the first time. One of them may have been
/// Service Changed. The server does not repeat it.
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
        if case .certain(let cache) = knowledge { cache.services } else { nil }
    }

    /// Starts to validate `cache`, or to learn the server's database.
    ///
    /// The caller calls this once the server is a bonded device and its link is encrypted with the bond's key. If the
    /// cache of an earlier connection is still valid, the client uses it. Otherwise the client discovers the database
    /// again.
    ///
    /// A cache without a hash is dropped if the client has already confirmed an indication of its Service Changed: only
    /// this indication reports that the database has changed.
    ///
    /// The call has no effect if the database is known or being learned. The owner then calls
    /// ``nextRequest(mtu:into:)`` if the bearer is free.
    ///
    /// - Parameter cache: the cache of an earlier connection; nil if there is none.
    public func trust(_ cache: DatabaseCache?) {
        guard case .none = knowledge else { return }
        let serviceChanged = cache?.genericAttribute(.serviceChanged)?.valueHandle
        let isOutdated = if let cache { hasConfirmedChange(of: cache) } else { false }
        if isOutdated { return drop(serviceChanged: serviceChanged) }
        learn(cache, serviceChanged: serviceChanged)
    }

    /// Whether the client has confirmed the only indication that a cache without a hash is not valid any more, while it
    /// did not know the handle of Service Changed. The server does not repeat that indication.
    ///
    /// ``trust(_:)`` drops such a cache. If the link ends before that, the owner deletes the stored cache.
    package func hasConfirmedChange(of cache: DatabaseCache) -> Bool {
        guard cache.hash == nil, let serviceChanged = cache.genericAttribute(.serviceChanged) else { return false }
        return earlyIndications.contains(serviceChanged.valueHandle)
    }

    /// Whether the client is validating its cache or discovering the database.
    package var isLearningDatabase: Bool {
        if case .learning = knowledge { true } else { false }
    }

    /// Whether an attribute is the server's Service Changed, as far as the client knows. The client then needs its
    /// indications to keep its cache valid.
    package func isServiceChanged(_ handle: AttributeHandle) -> Bool {
        switch knowledge {
        case .none: false
        case .learning(_, let serviceChanged): serviceChanged == handle
        case .certain(let cache): cache.genericAttribute(.serviceChanged)?.valueHandle == handle
        }
    }

    /// Takes an indication. If it is the server's Service Changed, the client drops its cache and learns the database
    /// again (Vol 3, Part G, 7.1). The owner then calls ``nextRequest(mtu:into:)`` if the bearer is free.
    public func indicationReceived(from handle: AttributeHandle) {
        switch knowledge {
        case .none: earlyIndications.add(handle)
        case .learning(_, handle): learnAgain(serviceChanged: handle)
        case .learning(_, nil): earlyIndications.add(handle)
        case .learning: break
        case .certain(let cache):
            guard cache.genericAttribute(.serviceChanged)?.valueHandle == handle else { return }
            drop(serviceChanged: handle)
        }
    }

    /// Drops what is known of the server's database, because the app wants it to be discovered again. The owner then
    /// calls ``nextRequest(mtu:into:)`` if the bearer is free.
    public func discardDatabase() {
        switch knowledge {
        case .none: break
        case .learning(_, let serviceChanged): learnAgain(serviceChanged: serviceChanged)
        case .certain: outOfSync()
        }
    }

    /// Makes the client learn the database again at the end of the background procedure. A procedure that has not
    /// started, and has no cache to validate, learns the present database anyway.
    private func learnAgain(serviceChanged: AttributeHandle?) {
        let isOutdated = learning.map { $0.procedure.hasStarted || $0.procedure.known != nil } ?? true
        knowledge = .learning(isOutdated: isOutdated, serviceChanged: serviceChanged)
        cacheChanged(nil)
    }

    /// Forgets the server's database, because another device may be the server now. ``trust(_:)`` may
    /// follow.
    public func forgetDatabase() {
        if let learning { cancel(learning) }
        knowledge = .none
        earlyIndications = EarlyIndications()
        acceptedWrites = [:]
    }

    /// Drops the cache: the server has answered Database Out Of Sync.
    func outOfSync() {
        guard case .certain(let cache) = knowledge else { return }
        drop(serviceChanged: cache.genericAttribute(.serviceChanged)?.valueHandle)
    }

    private func drop(serviceChanged: AttributeHandle?) {
        cacheChanged(nil)
        learn(nil, serviceChanged: serviceChanged)
    }

    private func learn(_ cache: DatabaseCache?, serviceChanged: AttributeHandle?) {
        // They say nothing about a cache that the client makes from now on.
        earlyIndications = EarlyIndications()
        knowledge = .learning(isOutdated: false, serviceChanged: serviceChanged)
        performInBackground(
            LearnDatabase(known: cache, supportedFeatures: supportedFeatures, acceptedWrites: acceptedWrites)
        )
    }

    /// Handles the result of the background procedure.
    func databaseLearnt(_ run: TypedProcedureRun<LearnDatabase>) {
        acceptedWrites = run.procedure.acceptedWrites
        guard case .learning(let isOutdated, let serviceChanged) = knowledge else { return }
        do throws(ClientError) {
            let learnt = try run.output()
            if isOutdated { return learn(nil, serviceChanged: serviceChanged) }
            if serviceChanged == nil, hasConfirmedChange(of: learnt) {
                // Once more at most: the handle is known then.
                return learn(nil, serviceChanged: learnt.genericAttribute(.serviceChanged)?.valueHandle)
            }
            earlyIndications = EarlyIndications()
            knowledge = .certain(learnt)
            if learnt != run.procedure.known { cacheChanged(learnt) }
        } catch {
            knowledge = .none
        }
    }
}
