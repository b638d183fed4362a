import ATT
import BluetoothTypes
import ByteCoding

/// What a client knows of the server's database.
enum DatabaseKnowledge {
    /// Nothing that would be certain: the server is not trusted, or could not be learnt of.
    case none
    /// It is being made sure of; the handle of Service Changed, where an earlier connection has learnt it.
    case learning(isOutdated: Bool, serviceChanged: AttributeHandle?)
    case certain(DatabaseCache)
}

extension Client {
    /// The services of the server, where they need not be discovered.
    var knownServices: [DiscoveredService]? {
        if case .certain(let cache) = knowledge { cache.services } else { nil }
    }

    /// The server is one that this device is bonded to, and its link is encrypted with the bond's key: what an earlier
    /// connection has learnt of its database is used where it still holds, and learnt anew where it does not.
    ///
    /// Nothing happens where the database is known or being learnt. The owner then calls ``nextRequest(mtu:into:)`` where
    /// the bearer is free.
    public func trust(_ cache: DatabaseCache?) {
        guard case .none = knowledge else { return }
        learn(cache, serviceChanged: cache?.genericAttribute(.serviceChanged)?.valueHandle)
    }

    /// Takes an indication. Where it is the server's Service Changed, what is known of its database is dropped and learnt
    /// anew (Vol 3, Part G, 7.1); the owner then calls ``nextRequest(mtu:into:)`` where the bearer is free.
    public func indicationReceived(from handle: AttributeHandle) {
        switch knowledge {
        case .none: break
        case .learning(_, handle):
            knowledge = .learning(isOutdated: true, serviceChanged: handle)
            cacheChanged(nil)
        case .learning: break
        case .certain(let cache):
            guard cache.genericAttribute(.serviceChanged)?.valueHandle == handle else { return }
            drop(serviceChanged: handle)
        }
    }

    /// The server says that its database is not the one that this client knows.
    func outOfSync() {
        guard case .certain(let cache) = knowledge else { return }
        drop(serviceChanged: cache.genericAttribute(.serviceChanged)?.valueHandle)
    }

    private func drop(serviceChanged: AttributeHandle?) {
        cacheChanged(nil)
        learn(nil, serviceChanged: serviceChanged)
    }

    private func learn(_ cache: DatabaseCache?, serviceChanged: AttributeHandle?) {
        knowledge = .learning(isOutdated: false, serviceChanged: serviceChanged)
        performInBackground(LearnDatabase(known: cache))
    }

    /// Takes what the background procedure has learnt.
    func databaseLearnt(_ run: TypedProcedureRun<LearnDatabase>) {
        guard case .learning(let isOutdated, let serviceChanged) = knowledge else { return }
        do throws(ClientError) {
            let learnt = try run.output()
            if isOutdated { return learn(nil, serviceChanged: serviceChanged) }
            knowledge = .certain(learnt)
            if learnt != run.procedure.known { cacheChanged(learnt) }
        } catch {
            knowledge = .none
        }
    }
}
