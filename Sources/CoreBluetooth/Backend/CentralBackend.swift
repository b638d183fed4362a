import BLEATT
import BLEGATT
import BLEHCI
import BluetoothHost
import BluetoothTypes
import Foundation

/// Receives the result of an operation of the host. It is called once, on any thread, in the order of events in the
/// host.
typealias Completion<Value> = @Sendable (Result<Value, BackendError>) -> Void

/// The functions of the host that a central manager uses.
///
/// Calls come from any thread, return at once and are carried out in order. An identifier names a peripheral, and a
/// handle names an attribute. A backend knows no object of the app. Its events are handled on the manager's queue, in
/// the order in which the backend sent them.
protocol CentralBackend: AnyObject, Sendable {
    /// Starts the backend. Called once. All events are passed to `deliver`. The first event is
    /// ``CentralEvent/restored(_:)``, if there is a state to restore. The next is always
    /// ``CentralEvent/stateChanged(_:)``.
    ///
    /// If the host cannot be opened at first, a ``CentralEvent/stateChanged(_:)`` reports that. The state to restore is
    /// known only when the host is open, and follows before the next ``CentralEvent/stateChanged(_:)``.
    ///
    /// `deliver` returns false for an event that is not delivered, because too many events of the same peer wait for
    /// the app; see ``DeliveryBacklog``.
    func start(_ deliver: @escaping @Sendable (CentralEvent) -> Bool)

    /// Stops the backend, because the manager was released. Its scan, its connections and its connection attempts end.
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
    /// Also called when a ``CentralEvent/connectionFailed(_:_:)`` was handled. Until then the backend keeps the
    /// connection, to answer a cancellation.
    func release(_ connection: ConnectionIdentifier)

    /// Returns the peripherals that the host knows, at once.
    func knownPeripherals(_ identifiers: [UUID]) -> [KnownPeripheral]

    /// Returns the peripherals that this host is connected to and that have one of the services, at once.
    func connectedPeripherals(withServices services: [BluetoothUUID]) -> [KnownPeripheral]

    /// Reports by ``CentralEvent/connectionEvent(_:_:)`` when matching peripherals connect to this host or disconnect,
    /// from now on. Nil stops that. A service counts once it was advertised or discovered. So the connection to a
    /// peripheral is reported when discovery has found the service, if it was not known before.
    func registerForConnectionEvents(_ filter: ConnectionEventFilter?)

    // MARK: GATT, on a connected peripheral
    //
    // When the peripheral changes its services, the calls for attributes in the range complete with
    // ``CBError/Code/invalidHandle``, after the event. Those that wait are not sent.

    /// Discovers the primary services of some types; of all types if `types` is nil. The widths of the types do not
    /// matter, and a type that occurs several times counts once.
    ///
    /// No result has services from before and after a change. A discovery that a change interrupts is performed again.
    /// If that happens too often, it completes with ``CBError/Code/invalidHandle``.
    func discoverServices(
        _ types: [BluetoothUUID]?,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[DiscoveredService]>
    )

    /// Discovers the services that a service includes. If a change interrupts it, it is performed again, likewise. A
    /// change of the service itself ends it.
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
