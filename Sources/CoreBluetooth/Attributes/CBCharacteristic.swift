import BluetoothHost
import BluetoothTypes
import Foundation
import GATT
import Synchronization

/// A characteristic of a service, and what has been discovered and read of it.
open class CBCharacteristic: CBAttribute, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    struct Content {
        weak var service: CBService?
        var properties: CBCharacteristicProperties
        var permissions: CBAttributePermissions = []
        /// What was read of a remote characteristic; what a local one is declared with, nil where the app answers.
        var value: Data?
        /// What an app keeps in a published characteristic that it answers for itself.
        var keptValue: Data?
        var descriptors: [CBDescriptor]?
        var isNotifying = false
        var subscriptions: [Subscription] = []
        var publication = Publication.none
    }

    /// A link that is notified or indicated to, and the central on it.
    struct Subscription {
        let link: LinkIdentifier
        let central: CBCentral
    }

    /// How far a local characteristic can still be changed.
    enum Publication {
        case none
        /// The app answers for the value: what it keeps in the object is its own.
        case answeredByApp
        /// The value was there when the service was published: the host answers with it, and it is final.
        case answeredByHost
    }

    /// Where a remote characteristic lies in its server's database.
    let discovered: DiscoveredCharacteristic?
    let content: Mutex<Content>

    init(uuid: CBUUID, content: Content, discovered: DiscoveredCharacteristic?) {
        self.content = Mutex(content)
        self.discovered = discovered
        super.init(uuid: uuid)
    }

    /// The service that has the characteristic.
    open var service: CBService? { content.withLock { $0.service } }

    /// How the value may be used.
    open var properties: CBCharacteristicProperties { content.withLock { $0.properties } }

    /// The value that was last read, notified or indicated.
    open var value: Data? { content.withLock { $0.value } }

    /// The descriptors that were discovered; nil where none were looked for.
    open var descriptors: [CBDescriptor]? { content.withLock { $0.descriptors } }

    @available(*, deprecated, message: "Always false")
    open var isBroadcasted: Bool { false }

    /// Whether changes of the value are notified or indicated.
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
/// With a value it is answered by the host, is read-only and final. Without one each read and write is the app's to answer.
/// Once it is published only ``value`` can be changed, where it is the app's own.
open class CBMutableCharacteristic: CBCharacteristic, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

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

    /// What clients may do with the value.
    open var permissions: CBAttributePermissions {
        get { content.withLock { $0.permissions } }
        set { change { $0.permissions = newValue } }
    }

    /// The centrals that are notified or indicated to, each once, in the order in which they subscribed.
    open var subscribedCentrals: [CBCentral]? {
        subscriptions.reduce(into: []) { centrals, subscription in
            if !centrals.contains(subscription.central) { centrals.append(subscription.central) }
        }
    }

    /// The links that are notified or indicated to, in the order in which they subscribed.
    var subscriptions: [Subscription] { content.withLock { $0.subscriptions } }

    open override var properties: CBCharacteristicProperties {
        get { super.properties }
        set { change { $0.properties = newValue } }
    }

    open override var value: Data? {
        get { content.withLock { $0.keptValue ?? $0.value } }
        set {
            change(evenIf: .answeredByApp) { content in
                if content.publication == .none { content.value = newValue }
                content.keptValue = newValue
            }
        }
    }

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

    /// The value with which the host answers; nil where the app does.
    var cachedValue: Data? { content.withLock { $0.value } }

    func setPublished(_ isPublished: Bool) {
        content.withLock { content in
            content.publication = !isPublished ? .none : content.value == nil ? .answeredByApp : .answeredByHost
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

    /// Removes the subscription of a link and returns the central on it; nil where there was none.
    func removeSubscription(of link: LinkIdentifier) -> CBCentral? {
        content.withLock { content in
            guard let index = content.subscriptions.firstIndex(where: { $0.link == link }) else { return nil }
            return content.subscriptions.remove(at: index).central
        }
    }
}
