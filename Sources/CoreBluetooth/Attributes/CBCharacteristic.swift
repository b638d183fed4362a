import BLEGATT
import BluetoothHost
import BluetoothTypes
import Foundation
import Synchronization

/// A characteristic of a service, with its discovered descriptors and its last value.
open class CBCharacteristic: CBAttribute, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    struct Content {
        weak var service: CBService?
        var properties: CBCharacteristicProperties
        var permissions: CBAttributePermissions = []
        /// The last value of a remote characteristic. For a local one, the declared value; nil if the app answers
        /// requests.
        var value: Data?
        /// The value that the app stores in a published characteristic for which it answers requests.
        var keptValue: Data?
        /// Whether the local characteristic was published without a value. The app then answers requests after each
        /// later publication too.
        var isAnsweredByApp = false
        var descriptors: [CBDescriptor]?
        var isNotifying = false
        var subscriptions: [Subscription] = []
        var publication = Publication.none
    }

    /// A subscribed link, and the central on it.
    struct Subscription {
        let link: LinkIdentifier
        let central: CBCentral
    }

    /// The publication of a local characteristic, which decides whether it can be changed.
    enum Publication {
        case none
        /// The app answers requests for the value, and may store a value of its own in the object.
        case answeredByApp
        /// The characteristic had a value when its service was published. The host answers with the value, which is
        /// final.
        case answeredByHost
    }

    /// The position of a remote characteristic in its server's database.
    let discovered: DiscoveredCharacteristic?
    let content: Mutex<Content>

    init(uuid: CBUUID, content: Content, discovered: DiscoveredCharacteristic?) {
        self.content = Mutex(content)
        self.discovered = discovered
        super.init(uuid: uuid)
    }

    /// The service that contains the characteristic.
    open var service: CBService? { content.withLock { $0.service } }

    /// The supported uses of the value.
    open var properties: CBCharacteristicProperties { content.withLock { $0.properties } }

    /// The value that was last read, notified or indicated.
    open var value: Data? { content.withLock { $0.value } }

    /// The discovered descriptors; nil before discovery.
    open var descriptors: [CBDescriptor]? { content.withLock { $0.descriptors } }

    /// Always false: whether a value is broadcast is not read.
    @available(*, deprecated, message: "Always false")
    open var isBroadcasted: Bool { false }

    /// Whether the peripheral notifies or indicates the value.
    open var isNotifying: Bool { content.withLock { $0.isNotifying } }

    func setService(_ service: CBService?) {
        content.withLock { $0.service = service }
    }

    open override var description: String {
        let now = content.withLock { ($0.properties, $0.value, $0.isNotifying) }
        let value = now.1.map { "\($0)" } ?? "(null)"
        return
            "<\(nameAndAddress), UUID = \(uuid), properties = 0x\(String(now.0.rawValue, radix: 16, uppercase: true)), "
            + "value = \(value), notifying = \(now.2 ? "YES" : "NO")>"
    }
}

/// A characteristic of this host, to be published in a ``CBMutableService``.
///
/// If it has a value, the host answers requests with the value, which is read-only and final. If not, the app answers
/// each read and write. After publication, only ``value`` can be changed, and only if the app answers.
open class CBMutableCharacteristic: CBCharacteristic, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    /// Creates a characteristic.
    ///
    /// - Parameters:
    ///   - uuid: the type of the characteristic.
    ///   - properties: the supported uses of the value.
    ///   - value: the value with which the host answers each read; nil if the app answers reads and writes. With a
    ///     value, the properties and permissions must be those of a read-only characteristic; see
    ///     ``CBPeripheralManager/add(_:)``.
    ///   - permissions: the permissions of centrals for the value.
    public init(
        type uuid: CBUUID,
        properties: CBCharacteristicProperties,
        value: Data?,
        permissions: CBAttributePermissions
    ) {
        super.init(
            uuid: uuid,
            content: Content(properties: properties, permissions: permissions, value: value),
            discovered: nil
        )
    }

    /// The permissions of clients for the value.
    open var permissions: CBAttributePermissions {
        get { content.withLock { $0.permissions } }
        set { change { $0.permissions = newValue } }
    }

    /// The subscribed centrals, each once, in the order in which they subscribed.
    open var subscribedCentrals: [CBCentral]? {
        subscriptions.reduce(into: []) { centrals, subscription in
            if !centrals.contains(subscription.central) { centrals.append(subscription.central) }
        }
    }

    /// The subscribed links, in the order in which they subscribed.
    var subscriptions: [Subscription] { content.withLock { $0.subscriptions } }

    /// The supported uses of the value.
    open override var properties: CBCharacteristicProperties {
        get { super.properties }
        set { change { $0.properties = newValue } }
    }

    /// The value. If the app answers reads and writes, the host does not use it after the publication: it is then a
    /// place where the app can keep its value. It stays such a place when the service is removed, and published again.
    open override var value: Data? {
        get { content.withLock { $0.keptValue ?? $0.value } }
        set {
            change(evenIf: .answeredByApp) { content in
                if content.publication == .none, !content.isAnsweredByApp { content.value = newValue }
                content.keptValue = newValue
            }
        }
    }

    /// The descriptors, which belong to this characteristic from then on. Nil is the same as none.
    open override var descriptors: [CBDescriptor]? {
        get { super.descriptors }
        set {
            change { $0.descriptors = newValue }
            for descriptor in descriptors ?? [] { descriptor.setCharacteristic(self) }
        }
    }

    private func change(evenIf allowed: Publication = .none, _ body: (inout Content) -> Void) {
        let isChanged = content.withLock { content in
            guard content.publication == .none || content.publication == allowed else { return false }
            body(&content)
            return true
        }
        if !isChanged { ProgrammerError.report("\(self) is published and cannot be changed") }
    }

    /// The value with which the host answers; nil if the app answers.
    var cachedValue: Data? { content.withLock { $0.value } }

    func setPublished(_ isPublished: Bool) {
        content.withLock { content in
            content.publication = !isPublished ? .none : content.value == nil ? .answeredByApp : .answeredByHost
            if content.publication == .answeredByApp { content.isAnsweredByApp = true }
            if !isPublished { content.subscriptions = [] }
        }
    }

    func addSubscriptions(_ added: [Subscription]) {
        content.withLock { $0.subscriptions += added }
    }

    /// Removes and returns the subscriptions of a central.
    func removeSubscriptions(of central: CBCentral) -> [Subscription] {
        content.withLock { content in
            let removed = content.subscriptions.filter { $0.central == central }
            content.subscriptions.removeAll { $0.central == central }
            return removed
        }
    }

    /// Removes the subscription of a link and returns the central on it; nil if the link was not subscribed.
    func removeSubscription(of link: LinkIdentifier) -> CBCentral? {
        content.withLock { content in
            guard let index = content.subscriptions.firstIndex(where: { $0.link == link }) else { return nil }
            return content.subscriptions.remove(at: index).central
        }
    }
}
