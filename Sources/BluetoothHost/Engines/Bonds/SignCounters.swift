import BLESMP
import BluetoothTypes

/// The sign counters that may be used. Their reservation is saved before, so no counter is used again after a restart
/// (Vol 3, Part H, 2.4.5).
///
/// Several counters are reserved at a time, so most writes need not wait for the store.
struct SignCounters {
    /// The number of counters that are reserved at a time.
    static let step: UInt32 = 16

    /// Counters of one key that are taken.
    struct Reservation {
        let identity: DeviceAddress
        let key: SigningKey
        let counters: Range<UInt32>
    }

    private struct Reserved {
        let key: UInt128
        var counters: Range<UInt32>
    }

    /// By bonded peer: ``BondDatabase`` forgets the counters of a bond that ends.
    private var reserved: [DeviceAddress: Reserved] = [:]

    /// The number of peers with counters.
    var count: Int { reserved.count }

    /// Takes the next counter for a key; nil if some must be reserved first.
    mutating func take(for key: SigningKey, of identity: DeviceAddress) -> UInt32? {
        // Another pairing has made another key, which has counters of its own.
        guard let held = reserved[identity], held.key == key.value, let next = held.counters.first else { return nil }
        reserved[identity]?.counters.removeFirst()
        return next
    }

    /// Adds counters whose reservation is saved. Those below others that are in use already are dropped, because
    /// counters must rise.
    mutating func add(_ reservation: Reservation) {
        let (identity, key, counters) = (reservation.identity, reservation.key.value, reservation.counters)
        if let held = reserved[identity], held.key == key, held.counters.lowerBound > counters.lowerBound { return }
        reserved[identity] = Reserved(key: key, counters: counters)
    }

    /// Forgets the counters of a peer, unless they are those of `key`.
    ///
    /// - Parameter key: the peer's present key; nil if it has none.
    mutating func forget(_ identity: DeviceAddress, unlessOf key: SigningKey?) {
        if reserved[identity]?.key != key?.value { reserved[identity] = nil }
    }
}

extension SigningKey {
    /// Takes counters out of those that have not been used; nil if there are none left.
    mutating func takeCounters() -> Range<UInt32>? {
        guard nextCounter < .max else { return nil }
        let start = nextCounter
        nextCounter = min(.max - SignCounters.step, start) + SignCounters.step
        return start..<nextCounter
    }
}

extension SignCounters: CustomReflectable {
    var customMirror: Mirror { Mirror(self, children: ["peers": Array(reserved.keys)], displayStyle: .struct) }
}
