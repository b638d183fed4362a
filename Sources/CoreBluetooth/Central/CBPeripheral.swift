import BLEATT
import BLEGATT
import BluetoothHost
import BluetoothTypes
import Foundation
import Synchronization

/// The state of the connection to a peripheral.
public enum CBPeripheralState: Int, Sendable {
    /// There is no connection of the manager to the peripheral.
    case disconnected = 0
    /// The app has requested a connection. The attempt has no time limit.
    case connecting = 1
    /// The manager is connected to the peripheral, which accepts commands.
    case connected = 2
    /// The app has cancelled the connection, and its end is not reported yet.
    case disconnecting = 3
}

/// A remote peripheral, as a ``CBCentralManager`` knows it.
///
/// A manager has one object for a peripheral as long as the app keeps it. When the app releases the object, its
/// connection ends. Discovered services belong to one connection and must be discovered again on the next one.
open class CBPeripheral: CBPeer, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    /// A connection that the app requested while the previous one was still ending.
    struct NextConnection {
        let request: ConnectionRequest
        /// The number of the app's requests before those for this connection. The end of the previous connection
        /// answers them.
        let earlierRequests: UInt64
    }

    struct Content {
        /// Unsafe for the compiler, because delegates need not be `Sendable`. Only the manager's queue calls them.
        nonisolated(unsafe) weak var delegate: (any CBPeripheralDelegate)?
        /// Nil if the manager was released, or if its state was below `poweredOff`, so that the object is no longer
        /// valid.
        weak var manager: CBCentralManager?
        var name: String?
        var state = CBPeripheralState.disconnected
        /// The link of the connection, while there is one. Commands name it.
        var link: LinkIdentifier?
        var mtu = 23
        /// Incremented when a connection ends. Results of commands on an earlier connection are ignored.
        var connection: UInt64 = 0
        /// The connection that the backend was last asked for, until it has ended or failed. Events of earlier ones are
        /// ignored.
        var requested: ConnectionIdentifier?
        var nextConnection: NextConnection?
        /// The number of the app's requests to connect.
        var requestCount: UInt64 = 0
        var database = RemoteDatabase()
        /// The number of the last change of services that was handled. Commands carry it.
        var lastChange: UInt64 = 0
        var writesInFlight = 0
        /// The sequences of values; nil until the app makes one.
        var values: Broadcast<CBCharacteristicValue>?
        /// Whether the limit of waiting writes was reached, so that the delegate is called when there is space again.
        var owesReadiness = false
    }

    /// The number of waiting writes without response at which ``canSendWriteWithoutResponse`` becomes false.
    static let writeLimit = 16
    /// Maximum length of an attribute value (Vol 3, Part F, 3.2.9).
    static let longestValue = 512

    /// Returns the maximum length of a value in one packet, in bytes. A long MTU has room for more than an attribute
    /// value.
    static func longestPacketValue(mtu: Int) -> Int { min(longestValue, max(0, mtu - 3)) }

    let backend: (any CentralBackend)?
    let deliveryQueue: DispatchQueue
    let content: Mutex<Content>
    /// The host knows the peripheral as long as this object lives.
    private let hold: PeerHold

    init(_ known: KnownPeripheral, manager: CBCentralManager) {
        backend = manager.backend
        deliveryQueue = manager.deliveryQueue
        hold = known.hold
        content = Mutex(Content(manager: manager, name: known.name))
        super.init(identifier: known.identifier)
    }

    deinit {
        if let connection = content.withLock({ $0.requested }) { backend?.release(connection) }
    }

    /// The object that receives the peripheral's events, held weakly. Another delegate receives the events from then
    /// on.
    open weak var delegate: (any CBPeripheralDelegate)? {
        get { content.withLock { unsafe $0.delegate } }
        set { content.withLock { unsafe $0.delegate = newValue } }
    }

    /// The Device Name, if it was read once, else the advertised name.
    open var name: String? { content.withLock { $0.name } }

    /// Always nil: ``readRSSI()`` reads the RSSI.
    @available(*, deprecated, message: "Use readRSSI()")
    open var rssi: NSNumber? { nil }

    /// The state of this manager's connection. The host may be connected to the peripheral for another manager.
    open var state: CBPeripheralState { content.withLock { $0.state } }

    /// The services discovered on this connection, in the order of their handles; nil before discovery.
    ///
    /// The GAP and GATT services are reserved for the host and not included.
    open var services: [CBService]? { content.withLock { $0.database.services } }

    /// Whether the peripheral is connected and fewer than 16 writes without response wait in the host.
    open var canSendWriteWithoutResponse: Bool {
        content.withLock { $0.state == .connected && $0.writesInFlight < CBPeripheral.writeLimit }
    }

    /// Always false: Apple's notification service is not offered.
    open var ancsAuthorized: Bool { false }

    /// Maximum number of bytes to write at once: 512 with a response; ATT_MTU - 3 without one, but also at most 512.
    open func maximumWriteValueLength(for type: CBCharacteristicWriteType) -> Int {
        switch type {
        case .withResponse: CBPeripheral.longestValue
        case .withoutResponse: content.withLock { CBPeripheral.longestPacketValue(mtu: $0.mtu) }
        }
    }

    open override var description: String {
        let now = content.withLock { ($0.name, $0.mtu, $0.state) }
        return
            "<\(nameAndAddress), identifier = \(identifier.uuidString), name = \(now.0 ?? "(null)"), mtu = \(now.1), "
            + "state = \(now.2)>"
    }

    // MARK: Discovery

    /// Discovers services of some types; of all types if `serviceUUIDs` is nil or empty. See
    /// ``CBPeripheralDelegate/peripheral(_:didDiscoverServices:)``.
    ///
    /// If the peripheral changes its services in the meantime, the host discovers them again, so that all results are
    /// of the present ones. After three discoveries that were interrupted, the error is
    /// ``CBError/Code/invalidHandle``.
    open func discoverServices(_ serviceUUIDs: [CBUUID]?) {
        guard let target = commandTarget() else { return }
        let wanted = wanted(serviceUUIDs)
        backend?.discoverServices(
            wanted,
            of: target.peripheral,
            answer(for: target) { peripheral, result in
                let error = peripheral.take(result) { $0.add($1, areAll: wanted == nil, of: peripheral) }
                peripheral.endLostValues()
                peripheral.tell { $0.peripheral(peripheral, didDiscoverServices: error) }
            }
        )
    }

    /// Discovers the services that a service includes.
    open func discoverIncludedServices(_ includedServiceUUIDs: [CBUUID]?, for service: CBService) {
        guard let target = commandTarget(), let range = range(of: service) else { return }
        let wanted = wanted(includedServiceUUIDs)
        backend?.discoverIncludedServices(
            in: range,
            of: target.peripheral,
            answer(for: target) { peripheral, result in
                let error = peripheral.take(result) { database, found throws(BackendError) in
                    try database.add(found, wanted: wanted, to: service)
                }
                peripheral.endLostValues()
                peripheral.tell { $0.peripheral(peripheral, didDiscoverIncludedServicesFor: service, error: error) }
            }
        )
    }

    /// Discovers the characteristics of a service, of some types; of all types if `characteristicUUIDs` is nil or
    /// empty.
    open func discoverCharacteristics(_ characteristicUUIDs: [CBUUID]?, for service: CBService) {
        guard let target = commandTarget(), let range = range(of: service) else { return }
        let wanted = wanted(characteristicUUIDs)
        backend?.discoverCharacteristics(
            in: range,
            of: target.peripheral,
            answer(for: target) { peripheral, result in
                let error = peripheral.take(result) { database, found throws(BackendError) in
                    try database.add(found, wanted: wanted, to: service)
                }
                peripheral.endLostValues()
                peripheral.tell { $0.peripheral(peripheral, didDiscoverCharacteristicsFor: service, error: error) }
            }
        )
    }

    /// Discovers all descriptors of a characteristic.
    open func discoverDescriptors(for characteristic: CBCharacteristic) {
        guard let target = commandTarget(), let discovered = discovered(characteristic) else { return }
        let answer: Completion<[DiscoveredDescriptor]> = answer(for: target) { peripheral, result in
            let error = peripheral.take(result) { database, found throws(BackendError) in
                try database.add(found, to: characteristic)
            }
            peripheral.tell { $0.peripheral(peripheral, didDiscoverDescriptorsFor: characteristic, error: error) }
        }
        guard let range = discovered.descriptorRange else {
            return answerInOrder(.success([]), of: target.peripheral, answer)
        }
        backend?.discoverDescriptors(in: range, of: target.peripheral, answer)
    }

    // MARK: Values

    /// Reads a whole value; see ``CBPeripheralDelegate/peripheral(_:didUpdateValueFor:error:)-(_,CBCharacteristic,_)``.
    open func readValue(for characteristic: CBCharacteristic) {
        guard let target = commandTarget(), let discovered = discovered(characteristic) else { return }
        backend?.read(
            discovered.valueHandle,
            of: target.peripheral,
            answer(for: target) { peripheral, result in
                let error = peripheral.take(result) { database, value throws(BackendError) in
                    try database.check(characteristic)
                    characteristic.content.withLock { $0.value = Data(value) }
                }
                peripheral.tell { $0.peripheral(peripheral, didUpdateValueFor: characteristic, error: error) }
            }
        )
    }

    /// Reads a descriptor.
    open func readValue(for descriptor: CBDescriptor) {
        guard let target = commandTarget(), let handle = handle(of: descriptor) else { return }
        backend?.read(
            handle,
            of: target.peripheral,
            answer(for: target) { peripheral, result in
                let error = peripheral.take(result) { database, value throws(BackendError) in
                    try database.check(descriptor)
                    descriptor.setValue(value)
                }
                peripheral.tell { $0.peripheral(peripheral, didUpdateValueFor: descriptor, error: error) }
            }
        )
    }

    /// Writes a value.
    ///
    /// With a response, the value has up to 512 bytes, and a long value is written in parts. Without one, the value has
    /// up to ``maximumWriteValueLength(for:)`` bytes, and no callback reports the result.
    open func writeValue(_ data: Data, for characteristic: CBCharacteristic, type: CBCharacteristicWriteType) {
        guard let target = commandTarget(), let discovered = discovered(characteristic) else { return }
        switch type {
        case .withResponse:
            let answer: Completion<Void> = answer(for: target) { peripheral, result in
                let error = peripheral.take(result) { database, _ throws(BackendError) in
                    try database.check(characteristic)
                }
                peripheral.tell { $0.peripheral(peripheral, didWriteValueFor: characteristic, error: error) }
            }
            write(data, to: discovered.valueHandle, of: target.peripheral, answer)
        case .withoutResponse: writeWithoutResponse(data, to: discovered, of: target)
        }
    }

    /// Writes a descriptor.
    ///
    /// - Precondition: `descriptor` is not a Client Characteristic Configuration; see ``setNotifyValue(_:for:)``.
    open func writeValue(_ data: Data, for descriptor: CBDescriptor) {
        if descriptor.uuid.value == .clientCharacteristicConfiguration {
            ProgrammerError.raise(
                "Client Characteristic Configuration descriptors must be configured using setNotifyValue:forCharacteristic:"
            )
        }
        guard let target = commandTarget(), let handle = handle(of: descriptor) else { return }
        write(
            data,
            to: handle,
            of: target.peripheral,
            answer(for: target) { peripheral, result in
                let error = peripheral.take(result) { database, _ throws(BackendError) in
                    try database.check(descriptor)
                }
                peripheral.tell { $0.peripheral(peripheral, didWriteValueFor: descriptor, error: error) }
            }
        )
    }

    /// Starts or stops notifications; indications, if the characteristic has no notifications.
    open func setNotifyValue(_ enabled: Bool, for characteristic: CBCharacteristic) {
        guard let target = commandTarget(), let discovered = discovered(characteristic) else { return }
        let answer: Completion<Void> = answer(for: target) { peripheral, result in
            let error = peripheral.take(result) { database, _ throws(BackendError) in
                try database.setNotifying(enabled, of: characteristic)
            }
            peripheral.tell { $0.peripheral(peripheral, didUpdateNotificationStateFor: characteristic, error: error) }
        }
        let configuration: ClientConfiguration
        if discovered.properties.contains(.notify) {
            configuration = .notification
        } else if discovered.properties.contains(.indicate) {
            configuration = .indication
        } else {
            return answerInOrder(.failure(.attribute(.requestNotSupported)), of: target.peripheral, answer)
        }
        backend?.setConfiguration(enabled ? configuration : [], of: discovered, on: target.peripheral, answer)
    }

    // MARK: The link

    /// Reads the link's RSSI; see ``CBPeripheralDelegate/peripheral(_:didReadRSSI:error:)``.
    open func readRSSI() {
        guard let target = commandTarget() else { return }
        backend?.readRSSI(
            of: target.peripheral,
            answer(for: target) { peripheral, result in
                let rssi = (try? result.get()).flatMap { $0 } ?? Discovery.unknownRSSI
                let error = peripheral.take(result) { _, _ in }
                peripheral.tell { $0.peripheral(peripheral, didReadRSSI: NSNumber(value: rssi), error: error) }
            }
        )
    }

    /// Opens an L2CAP channel to a service of the peripheral; see
    /// ``CBPeripheralDelegate/peripheral(_:didOpen:error:)``.
    open func openL2CAPChannel(_ psm: CBL2CAPPSM) {
        guard let target = commandTarget() else { return }
        backend?.openChannel(
            psm,
            to: target.peripheral,
            answer(for: target) { peripheral, result in
                let channel = (try? result.get()).map { CBL2CAPChannel(peer: peripheral, psm: psm, streams: $0) }
                let error = peripheral.take(result) { _, _ in }
                peripheral.tell { $0.peripheral(peripheral, didOpen: channel, error: error) }
            }
        )
    }
}
