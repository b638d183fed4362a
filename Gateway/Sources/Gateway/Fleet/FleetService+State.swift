import GatewayFleet

extension FleetService {
    /// What the threads of the service share.
    struct State {
        var consumer: FleetConsumer
        var journal: FleetJournal
        var lines: [FleetOutput.Line] = []
        /// Messages that are finished, but not stored as such.
        var finished: [UInt64] = []
        var isConnected = false
        var connectCount: UInt64 = 0
        var lastReason: String?
        /// The topics to which the broker has not answered yet, by the numbers of the subscriptions.
        var subscriptions: [Int32: String] = [:]
        var hasStoreFailure = false
    }
}
