import BluetoothTypes
import SMP

/// The sign counters that may be used: those that will not be used again after a restart, since it is kept that they are
/// taken (Vol 3, Part H, 2.4.5).
///
/// They are taken several at a time, so that not each write waits for the store.
struct SignCounters {
    /// How many are taken at a time.
    static let step: UInt32 = 16

    private struct Reserved {
        let key: UInt128
        var counters: Range<UInt32>
    }

    /// One for each bond at the most.
    private var reserved: [DeviceAddress: Reserved] = [:]

    /// The next counter for a key; nil where some must be reserved first.
    mutating func take(for key: SigningKey, of identity: DeviceAddress) -> UInt32? {
        // Another pairing has made another key, which counts anew.
        guard let held = reserved[identity], held.key == key.value, let next = held.counters.first else { return nil }
        reserved[identity]?.counters.removeFirst()
        return next
    }

    /// Counters of a key that it is kept that they are taken. Those below others that are in use already are let go: counters
    /// must rise.
    mutating func add(_ counters: Range<UInt32>, for key: SigningKey, of identity: DeviceAddress) {
        if let held = reserved[identity], held.key == key.value, held.counters.lowerBound >= counters.lowerBound {
            return
        }
        reserved[identity] = Reserved(key: key.value, counters: counters)
    }
}

extension SigningKey {
    /// Takes counters out of those that have not been used; nil where there are none left.
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
