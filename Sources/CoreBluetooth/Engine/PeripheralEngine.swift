import ATT
import BluetoothHost
import BluetoothTypes
import Foundation
import GATT

/// What a peripheral manager needs of the host; the rules of ``CentralEngine`` hold here too.
protocol PeripheralEngine: AnyObject, Sendable {
    /// Begins, once. Everything that happens is handed to `deliver`; the first are ``PeripheralEvent/restored(_:)``, where
    /// there is something to restore, and then always ``PeripheralEvent/stateChanged(_:)``.
    ///
    /// `deliver` returns false for an event that is not delivered, because too much of what the same peer causes waits for the
    /// app; see ``DeliveryBacklog``.
    func start(_ deliver: @escaping @Sendable (PeripheralEvent) -> Bool)

    /// The manager is gone: its advertisement and its services go; nothing more is delivered.
    func stop()

    func startAdvertising(_ payload: AdvertisementPayload, _ completion: @escaping Completion<Void>)
    func stopAdvertising()

    /// Publishes a service. Accesses to its values that are the app's come as ``PeripheralEvent/access(_:_:)``.
    func publish(_ service: ServiceDefinition, _ completion: @escaping Completion<PublishedService>)

    /// Takes the service whose declaration has this handle from the database.
    func removeService(at handle: AttributeHandle)

    /// Answers an access by its identifier, on the link that it came by. Does nothing where that link has ended.
    func answer(_ access: UInt64, on link: LinkIdentifier, _ result: Result<[UInt8], ATT.ErrorCode>)

    /// Notifies or indicates on each link, as its central has configured; cut to what its ATT_MTU carries. Complete when the
    /// host has room for another value.
    func update(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to links: [LinkIdentifier],
        _ completion: @escaping Completion<Void>
    )

    func setLatency(_ latency: CBPeripheralManagerConnectionLatency, of central: UUID)

    /// Under which address the host knows a central; answered at once.
    func address(of central: UUID) -> DeviceAddress?

    /// Ends all links of a central.
    func disconnect(_ central: UUID)

    /// Listens for channels; gives the PSM that was chosen, 0x0080 to 0x00FF.
    func publishChannel(requiresEncryption: Bool, _ completion: @escaping Completion<CBL2CAPPSM>)
    func unpublishChannel(_ psm: CBL2CAPPSM, _ completion: @escaping Completion<Void>)
}

/// What happens at a peripheral manager's host.
enum PeripheralEvent: Sendable {
    case restored(RestoredPeripheral)
    case stateChanged(CBManagerState)
    case access(RemoteCentral, AccessRequest)
    /// A central has set what it wants to be sent of the value that has this handle, or a bond has restored it.
    case configured(RemoteCentral, AttributeHandle, ClientConfiguration)
    case mtuChanged(RemoteCentral)
    case connected(RemoteCentral)
    /// The central on a link has another identifier than `before`, because its identity was verified or is in doubt.
    case identified(RemoteCentral, before: UUID)
    case disconnected(RemoteCentral)
    case channelOpened(RemoteCentral, CBL2CAPPSM, Result<ChannelStreams, EngineError>)
}

/// A central on one link to this host.
///
/// A central that reconnects before its former link has timed out is on two links, which then have the same identifier.
struct RemoteCentral: Hashable, Sendable {
    let link: LinkIdentifier
    let identifier: UUID
    /// ATT_MTU in octets.
    let mtu: Int
}

/// What an earlier process with the same restore identifier has left.
struct RestoredPeripheral: Hashable, Sendable {
    var localName: String?
    var services: [BluetoothUUID]?
}
