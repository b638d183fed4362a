/// Where a connection comes from: a network address, and the network that the address is part of.
package struct ConnectionOrigin: Hashable, Sendable {
    private let address: String
    private let network: NetworkPrefix

    /// - Parameter address: a network address, or another text, which stands for itself.
    package init(_ address: String) {
        self.address = address
        network = NetworkPrefix(address)
    }

    /// Chooses the connection to close when there are too many: of the network with the most connections, and there of
    /// the address with the most, the oldest.
    ///
    /// All machines of a segment of an IPv6 network have the same prefix, so the address protects them from each other.
    /// The prefix comes first, because one machine can have any number of addresses in its network.
    ///
    /// - Parameter origins: the origins of the connections, the oldest first.
    /// - Returns: the position of the connection; nil if there is none.
    package static func displacedIndex(among origins: [ConnectionOrigin]) -> Int? {
        let networkCounts = origins.reduce(into: [:]) { $0[$1.network, default: 0] += 1 }
        let addressCounts = origins.reduce(into: [:]) { $0[$1, default: 0] += 1 }
        func counts(_ origin: ConnectionOrigin) -> (Int, Int) {
            (networkCounts[origin.network] ?? 0, addressCounts[origin] ?? 0)
        }
        guard let greatest = origins.map(counts).max(by: <) else { return nil }
        return origins.firstIndex { counts($0) == greatest }
    }
}
