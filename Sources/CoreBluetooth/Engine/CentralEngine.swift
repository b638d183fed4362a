import BLEATT
import BLEGATT
import BLEHCI
import BluetoothHost
import BluetoothTypes
import Foundation
import Synchronization

/// Receives the result of an operation of the host. It is called once, on any thread, in the order of events in the
/// host.
typealias Completion<Value> = @Sendable (Result<Value, EngineError>) -> Void

/// The functions of the host that a central manager uses.
///
/// Calls come from any thread, return at once and are carried out in order. An identifier names a peripheral, and a
/// handle names an attribute. An engine knows no object of the app. Its events are handled on the manager's queue, in
/// the order in which the engine sent them.
protocol CentralEngine: AnyObject, Sendable {
    /// Starts the engine. Called once. All events are passed to `deliver`. The first event is
    /// ``CentralEvent/restored(_:)``, if there is a state to restore. The next is always
    /// ``CentralEvent/stateChanged(_:)``.
    ///
    /// If the host cannot be opened at first, a ``CentralEvent/stateChanged(_:)`` reports that. The state to restore is
    /// known only when the host is open, and follows before the next ``CentralEvent/stateChanged(_:)``.
    ///
    /// `deliver` returns false for an event that is not delivered, because too many events of the same peer wait for
    /// the app; see ``DeliveryBacklog``.
    func start(_ deliver: @escaping @Sendable (CentralEvent) -> Bool)

    /// Stops the engine, because the manager was released. Its scan, its connections and its connection attempts end.
    /// No event is delivered from then on.
    func stop()

    /// Scans. A scan that is running continues with this request instead.
    ///
    /// - Parameter number: the ``Discovery/scanNumber`` of each discovery of this scan.
    func scan(_ request: ScanRequest, number: UInt64)
    func stopScan()

    /// Discovers the peripherals of the scan again whose discoveries were not delivered, when they are heard next.
    /// Called when the manager has room for discoveries again.
    func reportDroppedDiscoveries()

    /// Connects without a time limit, unless the request has one. Uses an existing link if there is one.
    /// ``CentralEvent/connected(_:mtu:on:)`` or ``CentralEvent/connectionFailed(_:_:)`` reports the result.
    ///
    /// If there is an earlier connection or attempt of this manager to the peripheral, it continues as `connection` and
    /// with this request.
    func connect(_ connection: ConnectionIdentifier, _ request: ConnectionRequest)

    /// Sets whether the host reconnects after the loss of a connection that exists. Has no effect if it has ended.
    func setReconnects(_ reconnects: Bool, of connection: ConnectionIdentifier)

    /// Ends a connection or a connection attempt. One ``CentralEvent/disconnected(_:_:)`` without an error reports the
    /// end. Has no effect on a later connection to the same peripheral.
    func cancelConnection(_ connection: ConnectionIdentifier)

    /// Ends a connection or a connection attempt that no object of the app has any more. No event reports the end. Has
    /// no effect on a later connection to the same peripheral.
    ///
    /// Also called when a ``CentralEvent/connectionFailed(_:_:)`` was handled. Until then the engine keeps the
    /// connection, to answer a cancellation.
    func release(_ connection: ConnectionIdentifier)

    /// Returns the peripherals that the host knows, at once.
    func knownPeripherals(_ identifiers: [UUID]) -> [KnownPeripheral]

    /// Returns the peripherals that this host is connected to and that have one of the services, at once.
    func connectedPeripherals(withServices services: [BluetoothUUID]) -> [KnownPeripheral]

    /// Reports by ``CentralEvent/connectionEvent(_:_:)`` when matching peripherals connect to this host or disconnect,
    /// from now on. Nil stops that.
    func registerForConnectionEvents(_ filter: ConnectionEventFilter?)

    // MARK: GATT, on a connected peripheral

    /// Discovers the primary services of some types; of all types if `types` is nil. The widths of the types do not
    /// matter, and a type that occurs several times counts once.
    func discoverServices(
        _ types: [BluetoothUUID]?,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[DiscoveredService]>
    )

    func discoverIncludedServices(
        in range: HandleRange,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[IncludedService]>
    )

    /// Discovers all characteristics of a service.
    func discoverCharacteristics(
        in range: HandleRange,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[DiscoveredCharacteristic]>
    )

    func discoverDescriptors(
        in range: HandleRange,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[DiscoveredDescriptor]>
    )

    /// Reads a whole value. A long value is read in parts.
    func read(
        _ handle: AttributeHandle,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[UInt8]>
    )

    /// Writes a value of at most 512 bytes. A long value is written by prepared writes.
    func write(
        _ value: [UInt8],
        to handle: AttributeHandle,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Void>
    )

    /// Writes a value of at most ATT_MTU - 3 and at most 512 bytes by a Write Command. Completes when the host has room
    /// for another one.
    func writeWithoutResponse(
        _ value: [UInt8],
        to handle: AttributeHandle,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Void>
    )

    /// Enables or disables notifications or indications: finds the Client Characteristic Configuration and writes it.
    /// It is not written if the values are to be disabled and another user of the link wants them. The calls for one
    /// value complete in their order. While enabled, ``CentralEvent/valueReceived(_:_:_:)`` reports the values.
    func setConfiguration(
        _ configuration: ClientConfiguration,
        of characteristic: DiscoveredCharacteristic,
        on peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Void>
    )

    /// Completes after the calls of GATT before it. Nothing is sent.
    func completeInOrder(of peripheral: ConnectedPeripheral, _ completion: @escaping Completion<Void>)

    /// Reads the link's RSSI in dBm; nil if the controller does not know it.
    func readRSSI(of peripheral: ConnectedPeripheral, _ completion: @escaping Completion<Int?>)

    // MARK: Beyond Apple's API

    /// Returns the address by which the host knows a peripheral, at once.
    func address(of peripheral: UUID) -> DeviceAddress?

    func readLink(of peripheral: ConnectedPeripheral, _ completion: @escaping Completion<LinkInformation>)

    /// Changes the connection's parameters. Completes when they are in effect.
    func updateParameters(
        _ parameters: ConnectionParameters,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Void>
    )

    func setPHYs(
        transmit: PHYSet,
        receive: PHYSet,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Void>
    )

    // MARK: Channels

    func openChannel(
        _ psm: CBL2CAPPSM,
        to peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<ChannelStreams>
    )

    // MARK: Channel sounding

    /// Performs channel sounding with one peripheral at a time. Completes when the session has ended.
    ///
    /// - Parameters:
    ///   - role: the role of this host.
    ///   - procedureEnded: called for each procedure that has ended. There is no distance.
    func startChannelSounding(
        as role: ChannelSoundingRole,
        with peripheral: ConnectedPeripheral,
        procedureEnded: @escaping @Sendable () -> Void,
        _ completion: @escaping Completion<Void>
    )

    /// Ends the session with a peripheral, which then completes. Does nothing if there is none.
    func cancelChannelSounding(with peripheral: UUID)
}

/// An event of a central manager's host.
enum CentralEvent: Sendable {
    case restored(RestoredCentral)
    case stateChanged(CBManagerState)
    case discovered(Discovery)
    /// A link of a connection was made. With automatic reconnection, a connection may have several, one after the other.
    case connected(ConnectionIdentifier, mtu: Int, on: LinkIdentifier)
    case connectionFailed(ConnectionIdentifier, EngineError?)
    case disconnected(ConnectionIdentifier, Disconnection)
    case connectionEvent(KnownPeripheral, CBConnectionEvent)
    case mtuChanged(UUID, Int)
    /// The name of a connected peripheral is known on its link. It may be the same as before.
    case nameChanged(UUID, String?)
    /// The peripheral's services in a range of handles have changed (Vol 3, Part G, 7.1).
    case servicesChanged(UUID, HandleRange)
    /// A value arrived by notification or indication.
    case valueReceived(UUID, AttributeHandle, [UInt8])
}

/// The criteria of a scan.
struct ScanRequest: Hashable, Sendable {
    /// The services of which a peripheral advertises one; empty for all peripherals.
    var services: [BluetoothUUID] = []
    /// The services of which a peripheral solicits one, as an alternative.
    var solicitedServices: [BluetoothUUID] = []
    /// Whether each received packet is reported, or only packets with new information.
    var allowsDuplicates = false
}

/// A connection to a peripheral, from the request to connect until its end.
///
/// Events of a connection may wait for the manager's queue while the app already connects again. The number distinguishes
/// them from those of the later connection.
struct ConnectionIdentifier: Hashable, Sendable {
    private static let lastNumber = Atomic<UInt64>(0)

    let peripheral: UUID
    let number: UInt64
}

extension ConnectionIdentifier {
    /// Creates the identifier of a new connection.
    init(newTo peripheral: UUID) {
        self.peripheral = peripheral
        number = ConnectionIdentifier.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    }
}

/// A peripheral on one link, for commands.
///
/// With automatic reconnection, the app may call for a link that has ended already, while the events of its end and of the
/// next link wait for the manager's queue. The command names the link, so that it is not carried out on the next one,
/// where its handles may belong to other attributes. It then completes with ``CBError/Code/notConnected``.
struct ConnectedPeripheral: Hashable, Sendable {
    let identifier: UUID
    let link: LinkIdentifier
}

/// The options of a connection.
struct ConnectionRequest: Hashable, Sendable {
    /// The delay before connecting.
    var delay = Duration.zero
    /// Whether the host reconnects after the connection is lost; nil if the app has not given the option. A connection or an
    /// attempt that exists then continues as before. Others do not reconnect.
    var reconnects: Bool?
    /// The time after which the attempt fails, from the request; nil for no limit.
    var timeout: Duration?
}

/// The peripherals whose connections an app observes: those with one of the services, and those with one of the
/// identifiers.
struct ConnectionEventFilter: Hashable, Sendable {
    var services: [BluetoothUUID] = []
    var peripherals: [UUID] = []
}

/// A peripheral that the host knows, whether or not it is heard now.
struct KnownPeripheral: Hashable, Sendable {
    let identifier: UUID
    let name: String?
    var hold = PeerHold()
}

/// A peripheral that a scan has heard.
struct Discovery: Hashable, Sendable {
    let identifier: UUID
    /// The Device Name, if it was read once, else the advertised name.
    let name: String?
    let content: AdvertisedContent
    let isConnectable: Bool
    /// In dBm; nil if the controller does not know it.
    let rssi: Int?
    let time: CFAbsoluteTime
    /// The number of the scan, which distinguishes it from earlier and later ones of the manager.
    var scanNumber: UInt64 = 0
    var hold = PeerHold()
}

/// Advertising data, and what several layers need of it. It is read only once, because each reading costs allocations.
struct AdvertisedContent: Hashable, Sendable {
    /// The advertising data and the scan response together.
    let data: AdvertisingData
    let localName: String?
    /// The services of all lists, in their order.
    let services: [CBUUID]

    init(_ data: AdvertisingData) {
        self.data = data
        localName = data.localName
        var services: [CBUUID] = []
        data.forEachServiceUUID { uuid in
            // One allocation for the few services that most advertisers list.
            if services.isEmpty { services.reserveCapacity(4) }
            services.append(CBUUID.shared(uuid))
        }
        self.services = services
    }
}

/// The end of a connection.
struct Disconnection: Hashable, Sendable {
    /// The reason; nil if the app has ended the connection.
    let error: EngineError?
    /// Whether the host is reconnecting.
    var isReconnecting = false
    let time: CFAbsoluteTime
}

/// The state that an earlier process with the same restore identifier has left.
struct RestoredCentral: Hashable, Sendable {
    var peripherals: [KnownPeripheral] = []
    var scan: ScanRequest?
}
