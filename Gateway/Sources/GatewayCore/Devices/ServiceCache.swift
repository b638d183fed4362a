import BLE
import DequeModule
import Synchronization

/// The services of devices that were discovered last, for clients that keep them as well.
final class ServiceCache: Sendable {
    private struct State {
        var services: [UInt64: [RemoteService]] = [:]
        /// The devices, in the order of their first discoveries.
        var order: Deque<UInt64> = []
    }

    /// The greatest number of devices.
    private static let limit = 256

    private let state = Mutex(State())

    func services(of address: UInt64) -> [RemoteService]? {
        state.withLock { $0.services[address] }
    }

    func set(_ services: [RemoteService], of address: UInt64) {
        state.withLock { state in
            if state.services.updateValue(services, forKey: address) == nil { state.order.append(address) }
            if state.order.count > Self.limit, let oldest = state.order.popFirst() { state.services[oldest] = nil }
        }
    }

    func remove(_ address: UInt64) {
        state.withLock { state in
            guard state.services.removeValue(forKey: address) != nil else { return }
            state.order.removeAll { $0 == address }
        }
    }
}
