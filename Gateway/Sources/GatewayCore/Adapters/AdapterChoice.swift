/// The choice of the adapter that connects to a device.
struct AdapterChoice {
    /// By how much each connection through an adapter reduces its score, in dB.
    private static let connectionCost = 3
    /// By how much a failed attempt reduces the score of an adapter for the next attempt, in dB.
    private static let failureCost = 20

    /// An adapter that can be used.
    struct Candidate {
        /// The position of the adapter among all.
        var index: Int
        /// The number of connections through it.
        var connectionCount: Int
        /// How strongly it receives the device, in dBm; nil if it has not lately.
        var rssi: Int?
        /// Whether the last attempt to connect to the device was made through it and has failed.
        var hasFailed = false
    }

    /// Returns the adapter with the strongest signal and the fewest connections, weighed against each other. Adapters
    /// that receive the device come first, and an adapter whose last attempt has failed comes after the others.
    static func best(of candidates: [Candidate]) -> Candidate? {
        candidates.max { order(of: $0) < order(of: $1) }
    }

    private static func order(of candidate: Candidate) -> (rank: Int, score: Int, precedence: Int) {
        let rank = (candidate.rssi == nil ? 0 : 1) + (candidate.hasFailed ? 0 : 1)
        return (rank, score(of: candidate), -candidate.index)
    }

    /// The signal, reduced by the connections and a failure. A device that is not received counts as very weak.
    private static func score(of candidate: Candidate) -> Int {
        (candidate.rssi ?? -100) - connectionCost * candidate.connectionCount
            - (candidate.hasFailed ? failureCost : 0)
    }
}
