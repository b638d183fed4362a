import BLEATT
import BluetoothHost
import BluetoothTypes
import Foundation
import Synchronization

/// An event of a central manager's host.
enum CentralEvent: Sendable {
    case restored(RestoredCentral)
    case stateChanged(CBManagerState)
    case discovered(Discovery)
    /// A link of a connection was made. With automatic reconnection, a connection may have several, one after the
    /// other.
    case connected(ConnectionIdentifier, mtu: Int, on: LinkIdentifier)
    case connectionFailed(ConnectionIdentifier, BackendError?)
    case disconnected(ConnectionIdentifier, Disconnection)
    case connectionEvent(KnownPeripheral, CBConnectionEvent)
    case mtuChanged(UUID, Int)
    /// The name of a connected peripheral is known on its link. It may be the same as before.
    case nameChanged(UUID, String?)
    /// The peripheral's services in a range of handles have changed (Vol 3, Part G, 7.1). The number is higher than
    /// those of the manager's changes before.
    case servicesChanged(UUID, HandleRange, number: UInt64 = 0)
    /// A value arrived by notification or indication.
    case valueReceived(UUID, AttributeHandle, [UInt8])
}

/// The criteria of a scan.
struct ScanRequest: Hashable, Sendable {
    /// The services of which a peripheral advertises one; empty for all peripherals.
    var services: [BluetoothUUID] = []
    /// The services of which a peripheral solicits one, as an alternative. Without effect if ``services`` is empty.
    var solicitedServices: [BluetoothUUID] = []
    /// Whether each received packet is reported, or only packets with new information.
    var allowsDuplicates = false
}

/// A connection to a peripheral, from the request to connect until its end.
///
/// Events of a connection may wait for the manager's queue while the app already connects again. The number
/// distinguishes them from those of the later connection.
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
/// With automatic reconnection, the app may call for a link that has ended already, while the events of its end and of
/// the next link wait for the manager's queue. The command names the link, so that it is not carried out on the next
/// one, where its handles may belong to other attributes. It then completes with ``CBError/Code/notConnected``.
///
/// Likewise, the peripheral may have changed its services, while the event waits for the manager's queue. A command for
/// an attribute that has changed after ``lastChange`` completes with ``CBError/Code/invalidHandle``.
struct ConnectedPeripheral: Hashable, Sendable {
    let identifier: UUID
    let link: LinkIdentifier
    /// The number of the last change of services that the manager has handled; 0 for none.
    var lastChange: UInt64 = 0
}

/// The options of a connection.
struct ConnectionRequest: Hashable, Sendable {
    /// The delay before connecting.
    var delay = Duration.zero
    /// Whether the host reconnects after the connection is lost; nil if the app has not given the option. A connection
    /// or an attempt that exists then continues as before. Others do not reconnect.
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
    let error: BackendError?
    /// Whether the host is reconnecting.
    var isReconnecting = false
    let time: CFAbsoluteTime
}

/// The state that an earlier process with the same restore identifier has left.
struct RestoredCentral: Hashable, Sendable {
    var peripherals: [KnownPeripheral] = []
    var scan: ScanRequest?
}
