import BLESMP

/// The signing keys of peers that no bond has any more, with their counters.
///
/// A peer may use its signing key again when it pairs again, for example under another identity, or after a pairing
/// without this key. The counter then continues. Otherwise recorded signed writes would be accepted again (Vol 3,
/// Part H, 2.4.5).
package struct RetiredSigningKeys: Hashable, Sendable {
    /// Maximum number of keys. Beyond it, the key that was retired first is forgotten.
    package static let limit = 128

    /// The keys, the last one to be retired at the end.
    package private(set) var keys: [SigningKey] = []

    package init(_ keys: [SigningKey] = []) {
        for key in keys { add(key) }
    }

    /// Adds a key. If no counter of the key was used, nothing can be recorded and the key is not added.
    package mutating func add(_ key: SigningKey?) {
        guard var key, key.nextCounter > 0 else { return }
        if let index = keys.firstIndex(where: { $0.value == key.value }) {
            key.nextCounter = max(key.nextCounter, keys.remove(at: index).nextCounter)
        } else if keys.count >= RetiredSigningKeys.limit {
            keys.removeFirst()
        }
        keys.append(key)
    }

    /// The retired key with this value; nil if there is none.
    package subscript(value: UInt128) -> SigningKey? { keys.first { $0.value == value } }
}

extension HostSecurityState {
    /// Keeps the counters of peers' signing keys after bonds were added or removed outside a host.
    ///
    /// The counter of a key does not decrease, whichever bonds have the key. A key that no bond has any more is
    /// retired.
    ///
    /// - Parameter earlier: the state before the change.
    package mutating func keepPeerCounters(of earlier: HostSecurityState) {
        var counters: [UInt128: SigningKey] = [:]
        for record in earlier.bonds + bonds {
            guard let key = record.bond.peerSigningKey else { continue }
            if key.nextCounter >= counters[key.value]?.nextCounter ?? 0 { counters[key.value] = key }
        }
        for index in bonds.indices {
            guard let value = bonds[index].bond.peerSigningKey?.value else { continue }
            bonds[index].bond.raisePeerCounter(to: counters[value])
            bonds[index].bond.raisePeerCounter(to: retiredSigningKeys[value])
        }
        let present = Set(bonds.compactMap { $0.bond.peerSigningKey?.value })
        for record in earlier.bonds {
            guard let key = record.bond.peerSigningKey, !present.contains(key.value) else { continue }
            retiredSigningKeys.add(key)
        }
    }
}
