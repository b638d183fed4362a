import BluetoothTypes

/// The values of one client's Client Characteristic Configuration descriptors, in rising order of their handles.
struct ClientConfigurations: Hashable, Sendable {
    struct Entry: Hashable, Sendable {
        /// The descriptor's handle.
        let handle: AttributeHandle
        var configuration: ClientConfiguration
    }

    private(set) var entries: [Entry] = []

    /// The value of the descriptor at a handle; nil if it was never written.
    func value(at handle: AttributeHandle) -> ClientConfiguration? {
        let index = firstIndex(atOrAfter: handle)
        return index < entries.count && entries[index].handle == handle ? entries[index].configuration : nil
    }

    /// Sets a value and returns the previous one.
    mutating func set(_ configuration: ClientConfiguration, at handle: AttributeHandle) -> ClientConfiguration {
        let index = firstIndex(atOrAfter: handle)
        guard index < entries.count, entries[index].handle == handle else {
            entries.insert(Entry(handle: handle, configuration: configuration), at: index)
            return []
        }
        defer { entries[index].configuration = configuration }
        return entries[index].configuration
    }

    mutating func remove(in range: ClosedRange<AttributeHandle>) {
        entries.removeAll { range.contains($0.handle) }
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
