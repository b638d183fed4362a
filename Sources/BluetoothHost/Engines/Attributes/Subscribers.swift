import BLEATT
import BluetoothTypes

/// The apps that take the values of a link's remote attributes.
struct Subscribers {
    typealias Delivery = @Sendable (HandleValue) -> Void

    struct Subscriber {
        let identifier: UInt64
        let deliver: Delivery
    }

    /// The subscribers of each attribute, in the order in which they were added.
    private var subscribers = HandleTable<[Subscriber]>()
    /// The configurations of the attributes whose values the peer may send because a subscription has configured it to.
    private var configurations: [AttributeHandle: AttributeHandle] = [:]
    /// The handle of the server's Service Changed, if an app has subscribed to it; otherwise nil. The link's client
    /// knows the handle only if it has learned the database, and so only if the server is bonded.
    var serviceChanged: AttributeHandle?

    var count: Int { subscribers.values.reduce(0) { $0 + $1.count } }

    mutating func add(_ identifier: UInt64, of handle: AttributeHandle, _ deliver: @escaping Delivery) {
        subscribers[handle] = self[handle] + [Subscriber(identifier: identifier, deliver: deliver)]
    }

    /// Removes a subscriber. A value that waits for its delivery does not reach it.
    ///
    /// - Returns: the subscribers before, with their closures. The caller releases them when this value is no longer
    ///   being accessed: a closure may hold the last reference to an object whose end calls the host.
    mutating func remove(_ identifier: UInt64, of handle: AttributeHandle) -> [Subscriber] {
        let before = self[handle]
        let rest = before.filter { $0.identifier != identifier }
        subscribers[handle] = rest.isEmpty ? nil : rest
        return before
    }

    /// The subscribers of an attribute.
    subscript(handle: AttributeHandle) -> [Subscriber] { subscribers[handle] ?? [] }

    /// Records that the peer may send the attribute's values.
    ///
    /// - Parameter configuration: the handle of the attribute's Client Characteristic Configuration.
    mutating func setConfigured(_ handle: AttributeHandle, by configuration: AttributeHandle) {
        configurations[handle] = configuration
    }

    /// Records that the attribute's configuration is being cleared, and need not be cleared again.
    mutating func forgetConfiguration(of handle: AttributeHandle) {
        configurations[handle] = nil
    }

    /// Forgets the configurations of attributes that the server has changed: other attributes may have their handles
    /// now.
    ///
    /// - Parameter range: the handles that were affected. It may be invalid.
    mutating func forgetConfigurations(in range: HandleRange) {
        guard !configurations.isEmpty else { return }
        configurations = configurations.filter { handle, configuration in
            (handle < range.start || handle > range.end)
                && (configuration < range.start || configuration > range.end)
        }
    }

    /// - Returns: the attribute's configuration, if it is to be cleared: the peer may send its values, but there is no
    ///   subscriber. Otherwise nil.
    mutating func removeConfiguration(of handle: AttributeHandle) -> AttributeHandle? {
        self[handle].isEmpty ? configurations.removeValue(forKey: handle) : nil
    }
}
