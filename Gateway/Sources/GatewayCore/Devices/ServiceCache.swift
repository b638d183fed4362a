import BLE
import DequeModule
import Synchronization

/// The services of devices that were discovered last, for clients that keep them as well.
final class ServiceCache: Sendable {
    private struct Entry {
        let services: [RemoteService]
        let attributeCount: Int
    }

    private struct State {
        var entries: [UInt64: Entry] = [:]
        /// The devices, in the order of their last discoveries.
        var order: Deque<UInt64> = []
        /// The number of attributes of all devices.
        var attributeCount = 0

        mutating func remove(_ address: UInt64) {
            guard let entry = entries.removeValue(forKey: address) else { return }
            order.removeAll { $0 == address }
            attributeCount -= entry.attributeCount
        }
    }

    /// Maximum number of devices.
    static let limit = 256
    /// Maximum number of attributes of all devices. A discovery ends at 2,000 attributes, so 16 devices always fit.
    static let attributeLimit = 32_768

    private let state = Mutex(State())

    func services(of address: UInt64) -> [RemoteService]? {
        state.withLock { $0.entries[address]?.services }
    }

    /// Keeps the services of a device. Beyond the limits, those of the device that was discovered least recently are
    /// forgotten.
    func set(_ services: [RemoteService], of address: UInt64) {
        let entry = Entry(services: services, attributeCount: services.reduce(0) { $0 + $1.attributeCount })
        state.withLock { state in
            state.remove(address)
            state.entries[address] = entry
            state.order.append(address)
            state.attributeCount += entry.attributeCount
            while state.order.count > Self.limit || state.attributeCount > Self.attributeLimit,
                let oldest = state.order.first
            {
                state.remove(oldest)
            }
        }
    }

    func remove(_ address: UInt64) {
        state.withLock { $0.remove(address) }
    }
}

extension RemoteService {
    /// The number of attributes of the service that are kept.
    fileprivate var attributeCount: Int {
        1 + includedServices.count + characteristics.reduce(0) { $0 + 1 + $1.descriptors.count }
    }
}
