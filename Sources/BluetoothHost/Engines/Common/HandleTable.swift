import BluetoothTypes

/// Values by attribute handles.
///
/// Each notification needs a lookup, and few attributes are notified. A binary search in an array then costs less than
/// a hash of the handle.
struct HandleTable<Value> {
    private struct Entry {
        let handle: AttributeHandle
        var value: Value
    }

    /// In the order of the handles.
    private var entries: [Entry] = []

    /// The values in the order of their handles.
    var values: some Sequence<Value> { entries.lazy.map(\.value) }

    subscript(handle: AttributeHandle) -> Value? {
        get {
            let index = firstIndex(atOrAfter: handle)
            return index < entries.count && entries[index].handle == handle ? entries[index].value : nil
        }
        set {
            let index = firstIndex(atOrAfter: handle)
            let isPresent = index < entries.count && entries[index].handle == handle
            if let newValue {
                if isPresent {
                    entries[index].value = newValue
                } else {
                    entries.insert(Entry(handle: handle, value: newValue), at: index)
                }
            } else if isPresent {
                entries.remove(at: index)
            }
        }
    }

    mutating func removeAll() {
        entries.removeAll(keepingCapacity: true)
    }

    private func firstIndex(atOrAfter handle: AttributeHandle) -> Int {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].handle < handle { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
