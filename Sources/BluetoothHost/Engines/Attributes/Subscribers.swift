import BluetoothTypes
import OrderedCollections

/// The apps that take the values of a link's remote attributes.
struct Subscribers {
    typealias Delivery = @Sendable (HandleValue) -> Void
    /// The subscribers of one attribute by their identifiers, in the order in which they were added.
    typealias Deliveries = OrderedDictionary<UInt64, Delivery>

    private var deliveries: [AttributeHandle: Deliveries] = [:]
    /// The attributes whose values the peer may send because a subscription has configured it to.
    private var configured: Set<AttributeHandle> = []

    var count: Int { deliveries.values.reduce(0) { $0 + $1.count } }

    mutating func add(_ subscriber: UInt64, of handle: AttributeHandle, _ deliver: @escaping Delivery) {
        deliveries[handle, default: [:]][subscriber] = deliver
    }

    /// Removes a subscriber. A value that waits for its delivery does not reach it.
    mutating func remove(_ subscriber: UInt64, of handle: AttributeHandle) {
        deliveries[handle]?[subscriber] = nil
        if deliveries[handle]?.isEmpty == true { deliveries[handle] = nil }
    }

    /// The subscribers of an attribute; nil for none.
    subscript(handle: AttributeHandle) -> Deliveries? { deliveries[handle] }

    /// Records that the peer may send the attribute's values.
    mutating func setConfigured(_ handle: AttributeHandle) { configured.insert(handle) }

    /// - Returns: whether the attribute's configuration is to be cleared: the peer may send its values, but there is no
    ///   subscriber.
    mutating func removeConfiguration(of handle: AttributeHandle) -> Bool {
        deliveries[handle] == nil && configured.remove(handle) != nil
    }
}
