import BLEATT
import BLEGATT
import BluetoothHost
import BluetoothTypes
import Foundation

/// The functions of the host that a peripheral manager uses. The rules of ``CentralBackend`` apply.
protocol PeripheralBackend: AnyObject, Sendable {
    /// Starts the backend. Called once. All events are passed to `deliver`. The first event is
    /// ``PeripheralEvent/restored(_:)``, if there is a state to restore. The next is always
    /// ``PeripheralEvent/stateChanged(_:)``.
    ///
    /// If the host cannot be opened at first, a ``PeripheralEvent/stateChanged(_:)`` reports that. The state to restore
    /// is known only when the host is open, and follows before the next ``PeripheralEvent/stateChanged(_:)``.
    ///
    /// `deliver` returns false for an event that is not delivered, because too many events of the same peer wait for
    /// the app; see ``DeliveryBacklog``.
    func start(_ deliver: @escaping @Sendable (PeripheralEvent) -> Bool)

    /// Stops the backend, because the manager was released. Its advertisement ends and its services are removed. No
    /// event is delivered from then on.
    func stop()

    func startAdvertising(_ payload: AdvertisementPayload, _ completion: @escaping Completion<Void>)
    func stopAdvertising()

    /// Publishes a service. ``PeripheralEvent/access(_:_:)`` reports accesses to the values that the app answers for.
    ///
    /// - Parameters:
    ///   - service: the service.
    ///   - included: the handles of further services that it includes. They are read after the completions of earlier
    ///     calls. If one of them is not known by then, publishing fails with ``CBError/Code/invalidParameters``.
    func publish(
        _ service: ServiceDefinition,
        including included: [LocalServiceHandle],
        _ completion: @escaping Completion<PublishedService>
    )

    /// Removes the service whose declaration has this handle.
    func removeService(at handle: AttributeHandle)

    /// Answers an access by its identifier, on the link on which it arrived. Has no effect if that link has ended.
    func answer(_ access: UInt64, on link: LinkIdentifier, _ result: Result<[UInt8], ATTErrorCode>)

    /// Sends a value on each link, by notification or indication, as the central has configured it. The value is cut to
    /// the length that ATT_MTU allows. Completes when the links have taken the value. With several links, it waits
    /// for a limited time, and a link that is too far behind misses the value.
    func update(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to links: [LinkIdentifier],
        _ completion: @escaping Completion<Void>
    )

    func setLatency(_ latency: CBPeripheralManagerConnectionLatency, of central: UUID)

    /// Returns the address by which the host knows a central, at once.
    func address(of central: UUID) -> DeviceAddress?

    /// Ends all links of a central.
    func disconnect(_ central: UUID)

    /// Completes after the calls before it that publish services.
    func completeInOrder(_ completion: @escaping Completion<Void>)

    /// Publishes a service for channels. Completes with the assigned PSM, 0x0080 to 0x00FF.
    func publishChannel(requiresEncryption: Bool, _ completion: @escaping Completion<CBL2CAPPSM>)
    func unpublishChannel(_ psm: CBL2CAPPSM, _ completion: @escaping Completion<Void>)

    /// Removes all services for channels. Open channels stay open.
    func unpublishAllChannels()
}

/// An event of a peripheral manager's host.
enum PeripheralEvent: Sendable {
    case restored(RestoredPeripheral)
    case stateChanged(CBManagerState)
    case access(RemoteCentral, AccessRequest)
    /// A central has configured the value with this handle for notifications or indications, or a bond has restored the
    /// configuration.
    case configured(RemoteCentral, AttributeHandle, ClientConfiguration)
    case mtuChanged(RemoteCentral)
    case connected(RemoteCentral)
    /// The central on a link has another identifier than `before`, because its identity was verified or is in doubt.
    case identified(RemoteCentral, before: UUID)
    case disconnected(RemoteCentral)
    case channelOpened(RemoteCentral, CBL2CAPPSM, Result<ChannelStreams, BackendError>)
}

/// A central on one link to this host.
///
/// A central that reconnects before its former link has timed out is on two links, which then have the same identifier.
struct RemoteCentral: Hashable, Sendable {
    let link: LinkIdentifier
    let identifier: UUID
    /// ATT_MTU in bytes.
    let mtu: Int
}

/// The state that an earlier process with the same restore identifier has left.
struct RestoredPeripheral: Hashable, Sendable {
    var localName: String?
    var services: [BluetoothUUID]?
}
