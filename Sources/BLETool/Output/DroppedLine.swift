import BLEProfiles

/// The line about elements that were dropped before the next one, because the output is read too slowly.
struct DroppedLine: Hashable, Sendable {
    enum Kind: String, Hashable, Sendable {
        case advertisement
        case value
    }

    let count: Int
    let kind: Kind

    var text: String { "\(count) \(kind.rawValue)\(count == 1 ? " was" : "s were") dropped" }

    var json: JSON { ["event": "eventsDropped", "count": .integer(count)] }
}
