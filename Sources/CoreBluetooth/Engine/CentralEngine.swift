import ATT
import BluetoothHost
import BluetoothTypes
import Foundation
import GATT
import HCI

/// What becomes of something a host was asked to do: called once, on any thread, in the order of what happens in the host.
typealias Completion<Value> = @Sendable (Result<Value, EngineError>) -> Void

/// What a central manager needs of the host.
///
/// Calls come from any thread, return at once and are carried out in their order. Peripherals are named by their
/// identifiers, attributes by their handles. An engine knows no object of the app; what it says reaches them on the manager's
/// queue, in the order in which it was said.
protocol CentralEngine: AnyObject, Sendable {
    /// Begins, once. Everything that happens is handed to `deliver`; the first are ``CentralEvent/restored(_:)``, where there
    /// is something to restore, and then always ``CentralEvent/stateChanged(_:)``.
    ///
    /// `deliver` returns false for an event that is not delivered, because too much of what the same peer causes waits for the
    /// app; see ``DeliveryBacklog``.
    func start(_ deliver: @escaping @Sendable (CentralEvent) -> Bool)

    /// The manager is gone: its scan and its connections, pending or not, end; nothing more is delivered.
    func stop()

    /// Scans; a scan that is going on goes on with this request instead.
    func scan(_ request: ScanRequest)
    func stopScan()

    /// Discovers the peripherals of the scan again whose discoveries were not delivered, once they are heard. The manager has
    /// room for discoveries again.
    func reportDroppedDiscoveries()

    /// Connects, however long it takes; with a link that exists already where there is one. Answered by
    /// ``CentralEvent/connected(_:mtu:)`` or ``CentralEvent/connectionFailed(_:_:)``.
    func connect(_ peripheral: UUID, _ request: ConnectionRequest)

    /// Ends a connection, pending or not: answered by one ``CentralEvent/disconnected(_:_:)``, without an error.
    func cancelConnection(_ peripheral: UUID)

    /// No object stands for the peripheral any more: its connection, pending or not, ends, and nothing is said of it.
    func release(_ peripheral: UUID)

    /// Those of the peripherals that the host knows; answered at once.
    func knownPeripherals(_ identifiers: [UUID]) -> [KnownPeripheral]

    /// The peripherals that anything on this host is connected to and that have one of the services; answered at once.
    func connectedPeripherals(withServices services: [BluetoothUUID]) -> [KnownPeripheral]

    /// Says from now on, by ``CentralEvent/connectionEvent(_:_:)``, when such peripherals connect to this host or disconnect;
    /// nil ends that.
    func registerForConnectionEvents(_ filter: ConnectionEventFilter?)

    // MARK: GATT, on a connected peripheral

    /// Discovers the primary services of some types; of all types where `types` is nil.
    func discoverServices(
        _ types: [BluetoothUUID]?,
        of peripheral: UUID,
        _ completion: @escaping Completion<[DiscoveredService]>
    )

    func discoverIncludedServices(
        in range: HandleRange,
        of peripheral: UUID,
        _ completion: @escaping Completion<[IncludedService]>
    )

    /// Discovers all characteristics of a service.
    func discoverCharacteristics(
        in range: HandleRange,
        of peripheral: UUID,
        _ completion: @escaping Completion<[DiscoveredCharacteristic]>
    )

    func discoverDescriptors(
        in range: HandleRange,
        of peripheral: UUID,
        _ completion: @escaping Completion<[DiscoveredDescriptor]>
    )

    /// Reads a whole value, a long one part by part.
    func read(_ handle: AttributeHandle, of peripheral: UUID, _ completion: @escaping Completion<[UInt8]>)

    /// Writes a value of at most 512 octets, a long one by prepared writes.
    func write(
        _ value: [UInt8],
        to handle: AttributeHandle,
        of peripheral: UUID,
        _ completion: @escaping Completion<Void>
    )

    /// Writes a value of at most ATT_MTU - 3 octets by a command; complete when the host has room for another one.
    func writeWithoutResponse(
        _ value: [UInt8],
        to handle: AttributeHandle,
        of peripheral: UUID,
        _ completion: @escaping Completion<Void>
    )

    /// Asks the server to notify or to indicate, or for neither: writes the Client Characteristic Configuration, which it
    /// looks for first. While it is on, values come as ``CentralEvent/valueReceived(_:_:_:)``.
    func setConfiguration(
        _ configuration: ClientConfiguration,
        of characteristic: DiscoveredCharacteristic,
        on peripheral: UUID,
        _ completion: @escaping Completion<Void>
    )

    /// Reads the strength of the link's signal in dBm; nil where the controller does not know it.
    func readRSSI(of peripheral: UUID, _ completion: @escaping Completion<Int?>)

    // MARK: Beyond Apple's API

    /// Under which address the host knows a peripheral; answered at once.
    func address(of peripheral: UUID) -> DeviceAddress?

    func readLink(of peripheral: UUID, _ completion: @escaping Completion<LinkInformation>)

    /// Changes the connection's parameters; complete when they hold.
    func updateParameters(
        _ parameters: ConnectionParameters,
        of peripheral: UUID,
        _ completion: @escaping Completion<Void>
    )

    func setPHYs(
        transmit: PHYSet,
        receive: PHYSet,
        of peripheral: UUID,
        _ completion: @escaping Completion<Void>
    )

    // MARK: Channels

    func openChannel(
        _ psm: CBL2CAPPSM,
        to peripheral: UUID,
        _ completion: @escaping Completion<ChannelStreams>
    )
}

/// What happens at a central manager's host.
enum CentralEvent: Sendable {
    case restored(RestoredCentral)
    case stateChanged(CBManagerState)
    case discovered(Discovery)
    case connected(UUID, mtu: Int)
    case connectionFailed(UUID, EngineError?)
    case disconnected(UUID, Disconnection)
    case connectionEvent(KnownPeripheral, CBConnectionEvent)
    case mtuChanged(UUID, Int)
    case nameChanged(UUID, String?)
    /// The peripheral's services in a range of handles are others than before (Vol 3, Part G, 7.1).
    case servicesChanged(UUID, HandleRange)
    /// A value came by notification or indication.
    case valueReceived(UUID, AttributeHandle, [UInt8])
}

/// What to scan for.
struct ScanRequest: Hashable, Sendable {
    /// Peripherals that advertise one of these, or the overflow area for one; all where empty.
    var services: [BluetoothUUID] = []
    /// Peripherals that solicit one of these, as well.
    var solicitedServices: [BluetoothUUID] = []
    /// Whether each received packet is reported, or only what is new.
    var allowsDuplicates = false
}

/// How to connect.
struct ConnectionRequest: Hashable, Sendable {
    /// How long to wait before it.
    var delay = Duration.zero
    /// Whether a lost connection is made again by the host.
    var reconnects = false
    /// How long to try, after which the connection has failed; nil for as long as it takes.
    var timeout: Duration?
}

/// Whose connections an app wants to hear of: those with one of the services, and those named.
struct ConnectionEventFilter: Hashable, Sendable {
    var services: [BluetoothUUID] = []
    var peripherals: [UUID] = []
}

/// A peripheral that the host knows without hearing it now.
struct KnownPeripheral: Hashable, Sendable {
    let identifier: UUID
    let name: String?
    var hold = PeerHold()
}

/// What a scan has heard of a peripheral.
struct Discovery: Hashable, Sendable {
    let identifier: UUID
    /// The Device Name that was read of it once, else the advertised one.
    let name: String?
    /// Advertising data and scan response together.
    let advertisingData: AdvertisingData
    let isConnectable: Bool
    /// In dBm; nil where the controller does not know it.
    let rssi: Int?
    let time: CFAbsoluteTime
    var hold = PeerHold()
}

/// How a connection ended.
struct Disconnection: Hashable, Sendable {
    /// Why; nil where the app wanted it.
    let error: EngineError?
    /// Whether the host is making the connection again.
    var isReconnecting = false
    let time: CFAbsoluteTime
}

/// What an earlier process with the same restore identifier has left.
struct RestoredCentral: Hashable, Sendable {
    var peripherals: [KnownPeripheral] = []
    var scan: ScanRequest?
}
