import BLEATT
import BLECryptography
import BLEGATT
import BLEL2CAP
import BluetoothTypes

/// What a host serves: its attributes, the services that accept channels, and the closures of apps that answer for
/// them.
///
/// A closure may hold the last reference to an object whose end calls the host. So removed closures are returned, and
/// the caller releases them when this value is no longer being accessed.
struct PublishedServices {
    /// The part of an app that receives the accesses of clients.
    private enum Receiver: Hashable {
        /// The object that published the services.
        case owner(ObjectIdentifier)
        /// The closure of one call.
        case publication(UInt64)
    }

    private struct PublishedHandler {
        let handler: AccessHandler
        let receiver: Receiver
    }

    let server: BLEGATT.Server
    /// The value handle of Central Address Resolution (Vol 3, Part C, 12.4).
    private let addressResolution: AttributeHandle?
    private var subscriptions = SubscriptionIndex()
    private var accessHandlers: [AttributeHandle: PublishedHandler] = [:]
    private var lastPublication: UInt64 = 0
    /// The closure that decides on accesses that need authorization; nil if all of them are refused.
    private(set) var authorizer: Authorizer?
    /// The services that accept channels.
    private(set) var channels: SPSMRegistry
    private var channelAcceptors: [SPSM: ChannelAcceptor] = [:]

    /// Makes the server with its two built-in services.
    init(_ configuration: BluetoothHost.Configuration) {
        server = BLEGATT.Server(minimumKeySize: configuration.security.minimumKeySizeInBytes) { key, message in
            var code: [UInt8] = []
            code.append(
                mostSignificantFirst: SwiftCryptography().authenticationCode(
                    of: message,
                    key: UInt128(mostSignificantFirst: key)
                )
            )
            return code
        }
        // Two services of fixed form in an empty database: there are always enough handles.
        let services = try? server.publish([
            .genericAccess(
                deviceName: configuration.deviceName,
                appearance: configuration.appearance,
                preferredParameters: (minimum: 12, maximum: 24, latency: 0, timeout: 400),
                supportsAddressResolution: false
            ),
            .genericAttribute(features: configuration.enhancedBearerLimit > 0 ? .enhancedAttributeBearer : []),
        ])
        channels = PublishedServices.channels(configuration)
        if configuration.enhancedBearerLimit > 0 { server.clientFeatures.insert(.enhancedAttributeBearer) }
        addressResolution =
            services?.first?.characteristics.first { $0.uuid == .centralAddressResolution }?.valueHandle
    }

    /// The services of the host itself that accept channels: enhanced ATT bearers, on encrypted links only (Vol 3, Part
    /// G, 5.3.2).
    private static func channels(_ configuration: BluetoothHost.Configuration) -> SPSMRegistry {
        var channels = SPSMRegistry()
        guard configuration.enhancedBearerLimit > 0 else { return channels }
        let service = SPSMRegistry.Service(
            configuration: .enhancedBearer(mtu: configuration.mtu),
            security: SPSMRegistry.SecurityRequirements(needsEncryption: true),
            variant: .enhanced,
            channelLimit: configuration.enhancedBearerLimit,
            refusesMixedSources: true
        )
        // The registry is empty and the values are in their ranges.
        try? channels.register(service, at: .enhancedAttribute)
        return channels
    }

    // MARK: Attributes

    /// Sets whether peers may direct advertising to this host's private addresses.
    func setAddressResolution(_ isSupported: Bool) {
        if let addressResolution { server.setValue([isSupported ? 1 : 0], of: addressResolution) }
    }

    /// The links whose clients have configured the characteristic with this value handle, in the order in which they
    /// were made. The caller still checks whether each link is secure enough.
    mutating func links(configuring handle: AttributeHandle, among links: [Link]) -> [Link] {
        subscriptions.links(configuring: handle, among: links, server)
    }

    /// Forgets which links have configured characteristics, because a link has ended.
    mutating func linkEnded() {
        subscriptions.removeAll()
    }

    /// The closure that receives accesses to the attribute with this handle.
    func accessHandler(of handle: AttributeHandle) -> AccessHandler? { accessHandlers[handle]?.handler }

    /// The closure that receives writes that belong together; nil if they have several receivers. One cannot carry out
    /// the writes of another, and the writes are carried out all or not at all.
    func accessHandler(of handles: [AttributeHandle]) -> AccessHandler? {
        guard let first = handles.first, let handler = accessHandlers[first] else { return nil }
        let isOne = handles.allSatisfy { accessHandlers[$0]?.receiver == handler.receiver }
        return isOne ? handler.handler : nil
    }

    /// Sets the closure that receives accesses to services that have just been published.
    mutating func setAccessHandler(
        _ handler: AccessHandler?,
        of services: [PublishedService],
        owner: ObjectIdentifier?
    ) {
        lastPublication += 1
        let receiver = owner.map { Receiver.owner($0) } ?? .publication(lastPublication)
        let published = handler.map { PublishedHandler(handler: $0, receiver: receiver) }
        for characteristic in services.lazy.flatMap(\.characteristics) {
            accessHandlers[characteristic.valueHandle] = published
            for descriptor in characteristic.descriptorHandles { accessHandlers[descriptor] = published }
        }
    }

    /// Removes the closures for attributes whose handles lie in a range.
    ///
    /// - Returns: the closures, which the caller releases.
    mutating func removeAccessHandlers(in range: HandleRange) -> [AccessHandler] {
        let handles = accessHandlers.keys.filter { $0 >= range.start && $0 <= range.end }
        return handles.compactMap { accessHandlers.removeValue(forKey: $0)?.handler }
    }

    /// Sets the closure that decides on accesses that need authorization.
    ///
    /// - Returns: the previous closure, which the caller releases.
    mutating func setAuthorizer(_ authorizer: Authorizer?) -> Authorizer? {
        let previous = self.authorizer
        self.authorizer = authorizer
        return previous
    }

    // MARK: Channels

    /// Publishes a service that accepts channels.
    ///
    /// - Parameter psm: the service's PSM; nil for a free one of the dynamic range.
    /// - Returns: the PSM of the service.
    mutating func publish(
        _ service: SPSMRegistry.Service,
        at psm: SPSM?,
        accept: @escaping ChannelAcceptor
    ) throws(SPSMRegistry.RegistrationError) -> SPSM {
        let registered: SPSM
        if let psm {
            try channels.register(service, at: psm)
            registered = psm
        } else {
            registered = try channels.register(service)
        }
        channelAcceptors[registered] = accept
        return registered
    }

    /// The closure that is given the channels of a service.
    func channelAcceptor(at psm: SPSM) -> ChannelAcceptor? { channelAcceptors[psm] }

    /// Removes a service that accepts channels.
    ///
    /// - Returns: its closure, which the caller releases.
    mutating func removeChannels(at psm: SPSM) -> ChannelAcceptor? {
        channels.unregister(psm)
        return channelAcceptors.removeValue(forKey: psm)
    }

    // MARK: End

    /// The number of closures of apps.
    var closureCount: Int { accessHandlers.count + (authorizer == nil ? 0 : 1) + channelAcceptors.count }

    /// The number of links in the index of configured characteristics.
    var indexedLinkCount: Int { subscriptions.count }

    /// Removes all closures of apps, and the services that accept channels.
    ///
    /// - Returns: the value before, with the closures, which the caller releases.
    mutating func removeClosures() -> PublishedServices {
        let removed = self
        accessHandlers = [:]
        authorizer = nil
        channels = SPSMRegistry()
        channelAcceptors = [:]
        return removed
    }
}
