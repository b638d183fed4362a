import BluetoothTypes

/// The queues of the Link Layer procedures of one link, one for each kind.
///
/// Procedures of different kinds run at the same time.
struct LinkProcedures: Equatable {
    private var connectionUpdates = ProcedureQueue<LinkRequest>()
    private var phyUpdates = ProcedureQueue<LinkRequest>()
    private var featureExchanges = ProcedureQueue<LinkRequest>()
    private var subrateUpdates = ProcedureQueue<LinkRequest>()
    private var powerReads = ProcedureQueue<LinkRequest>()

    subscript(procedure: LinkProcedure) -> ProcedureQueue<LinkRequest> {
        get {
            switch procedure {
            case .connectionUpdate: connectionUpdates
            case .phyUpdate: phyUpdates
            case .featureExchange: featureExchanges
            case .subrateUpdate: subrateUpdates
            case .powerRead: powerReads
            }
        }
        _modify {
            switch procedure {
            case .connectionUpdate: yield &connectionUpdates
            case .phyUpdate: yield &phyUpdates
            case .featureExchange: yield &featureExchanges
            case .subrateUpdate: yield &subrateUpdates
            case .powerRead: yield &powerReads
            }
        }
    }

    /// When the first of the current procedures has taken too long; nil if none runs.
    var deadline: Instant? {
        LinkProcedure.allCases.reduce(nil) { earliest($0, self[$1].deadline) }
    }

    /// Forgets a suspended call. Its procedure continues if it has begun.
    mutating func remove(_ call: CallToken) {
        for procedure in LinkProcedure.allCases { self[procedure].remove(call) }
    }

    /// Removes all requests.
    ///
    /// - Returns: the calls, the oldest first of each kind.
    mutating func removeAll() -> [CallToken] {
        LinkProcedure.allCases.flatMap { self[$0].removeAll() }
    }
}
