import BLEATT
import BLEHCI
import BluetoothTypes
import Foundation
import Synchronization

@testable import BLEGATT
@testable import BluetoothHost
@testable import CoreBluetooth

extension LinkIdentifier {
    /// The identifier of a link that no host has.
    static func placeholder(_ number: UInt64) -> LinkIdentifier {
        LinkIdentifier(handle: ConnectionHandle(0x0040), serial: number)
    }
}

extension CBPeripheral {
    /// The connection that the backend was last asked for; a new one if it was not asked or the connection has ended.
    var connection: ConnectionIdentifier {
        content.withLock { $0.requested } ?? ConnectionIdentifier(newTo: identifier)
    }
}

/// A central's host that records the calls it receives, and delivers the events of the test.
final class ScriptedCentralBackend: CentralBackend, ScriptedBackend {
    enum Call: Equatable, Sendable {
        case stop
        case scan(ScanRequest)
        case stopScan
        case reportDroppedDiscoveries
        case connect(UUID, ConnectionRequest)
        case setReconnects(UUID, Bool)
        case cancel(UUID)
        case release(UUID)
        case connectionEvents(ConnectionEventFilter?)
        case discoverServices([BluetoothUUID]?)
        case discoverIncludedServices(HandleRange)
        case discoverCharacteristics(HandleRange)
        case discoverDescriptors(HandleRange)
        case read(AttributeHandle)
        case write([UInt8], AttributeHandle)
        case writeWithoutResponse([UInt8], AttributeHandle)
        case configure(ClientConfiguration, AttributeHandle)
        case readRSSI
        case readLink
        case updateParameters
        case setPHYs
        case openChannel(CBL2CAPPSM)
        case sound(ChannelSoundingRole)
        case cancelSounding(UUID)
    }

    let script = BackendScript<Call, CentralEvent>()
    private let peripherals = Mutex<[KnownPeripheral]>([])
    private let lastScan = Mutex<UInt64>(0)

    private let lastTarget = Mutex<ConnectedPeripheral?>(nil)

    /// The number of the last scan.
    var scanNumber: UInt64 { lastScan.withLock { $0 } }

    /// The link for which the last command was called.
    var linkOfLastCommand: LinkIdentifier? { lastTarget.withLock { $0?.link } }

    /// The number of the last change of services that the manager had handled before the last command.
    var changeOfLastCommand: UInt64? { lastTarget.withLock { $0?.lastChange } }

    var known: [KnownPeripheral] {
        get { peripherals.withLock { $0 } }
        set { peripherals.withLock { $0 = newValue } }
    }

    private func note<Value>(
        _ call: Call,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Value>
    ) {
        lastTarget.withLock { $0 = peripheral }
        note(call, completion)
    }

    func stop() { note(.stop) }
    func scan(_ request: ScanRequest, number: UInt64) {
        lastScan.withLock { $0 = number }
        note(.scan(request))
    }

    func stopScan() { note(.stopScan) }
    func reportDroppedDiscoveries() { note(.reportDroppedDiscoveries) }
    func connect(_ connection: ConnectionIdentifier, _ request: ConnectionRequest) {
        note(.connect(connection.peripheral, request))
    }

    func setReconnects(_ reconnects: Bool, of connection: ConnectionIdentifier) {
        note(.setReconnects(connection.peripheral, reconnects))
    }

    func cancelConnection(_ connection: ConnectionIdentifier) { note(.cancel(connection.peripheral)) }
    func release(_ connection: ConnectionIdentifier) { note(.release(connection.peripheral)) }
    func registerForConnectionEvents(_ filter: ConnectionEventFilter?) { note(.connectionEvents(filter)) }

    func knownPeripherals(_ identifiers: [UUID]) -> [KnownPeripheral] {
        known.filter { identifiers.contains($0.identifier) }
    }

    func connectedPeripherals(withServices services: [BluetoothUUID]) -> [KnownPeripheral] {
        services.contains(.genericAccessService) ? known : []
    }

    func discoverServices(
        _ types: [BluetoothUUID]?,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[DiscoveredService]>
    ) {
        note(.discoverServices(types), of: peripheral, completion)
    }

    func discoverIncludedServices(
        in range: HandleRange,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[IncludedService]>
    ) {
        note(.discoverIncludedServices(range), of: peripheral, completion)
    }

    func discoverCharacteristics(
        in range: HandleRange,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[DiscoveredCharacteristic]>
    ) {
        note(.discoverCharacteristics(range), of: peripheral, completion)
    }

    func discoverDescriptors(
        in range: HandleRange,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[DiscoveredDescriptor]>
    ) {
        note(.discoverDescriptors(range), of: peripheral, completion)
    }

    func read(
        _ handle: AttributeHandle,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[UInt8]>
    ) {
        note(.read(handle), of: peripheral, completion)
    }

    func write(
        _ value: [UInt8],
        to handle: AttributeHandle,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Void>
    ) {
        note(.write(value, handle), of: peripheral, completion)
    }

    func writeWithoutResponse(
        _ value: [UInt8],
        to handle: AttributeHandle,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Void>
    ) {
        note(.writeWithoutResponse(value, handle), of: peripheral, completion)
    }

    func setConfiguration(
        _ configuration: ClientConfiguration,
        of characteristic: DiscoveredCharacteristic,
        on peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Void>
    ) {
        note(.configure(configuration, characteristic.valueHandle), of: peripheral, completion)
    }

    /// The completions that wait for earlier calls; nil to call them at once.
    let inOrder = Mutex<[Completion<Void>]?>(nil)

    func completeInOrder(of peripheral: ConnectedPeripheral, _ completion: @escaping Completion<Void>) {
        let waits = inOrder.withLock { waiting in
            waiting?.append(completion)
            return waiting != nil
        }
        if !waits { completion(.success(())) }
    }

    func readRSSI(of peripheral: ConnectedPeripheral, _ completion: @escaping Completion<Int?>) {
        note(.readRSSI, of: peripheral, completion)
    }

    func address(of peripheral: UUID) -> DeviceAddress? { nil }
    func readLink(of peripheral: ConnectedPeripheral, _ completion: @escaping Completion<LinkInformation>) {
        note(.readLink, of: peripheral, completion)
    }

    func updateParameters(
        _ parameters: ConnectionParameters,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Void>
    ) {
        note(.updateParameters, of: peripheral, completion)
    }

    func setPHYs(
        transmit: PHYSet,
        receive: PHYSet,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Void>
    ) {
        note(.setPHYs, of: peripheral, completion)
    }

    /// The closure that reports a procedure of channel sounding.
    let procedureEnded = Mutex<(@Sendable () -> Void)?>(nil)

    func startChannelSounding(
        as role: ChannelSoundingRole,
        with peripheral: ConnectedPeripheral,
        procedureEnded: @escaping @Sendable () -> Void,
        _ completion: @escaping Completion<Void>
    ) {
        self.procedureEnded.withLock { $0 = procedureEnded }
        note(.sound(role), of: peripheral, completion)
    }

    func cancelChannelSounding(with peripheral: UUID) { note(.cancelSounding(peripheral)) }

    func openChannel(
        _ psm: CBL2CAPPSM,
        to peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<ChannelStreams>
    ) {
        note(.openChannel(psm), of: peripheral, completion)
    }
}

/// A peripheral's host that records the calls it receives, and delivers the events of the test.
final class ScriptedPeripheralBackend: PeripheralBackend, ScriptedBackend {
    enum Call: Equatable, Sendable {
        case stop
        case startAdvertising(AdvertisementPayload)
        case stopAdvertising
        case publish(ServiceDefinition)
        case remove(AttributeHandle)
        case answer(UInt64, LinkIdentifier, Result<[UInt8], ATTErrorCode>)
        case update([UInt8], AttributeHandle, [LinkIdentifier])
        case latency(CBPeripheralManagerConnectionLatency, UUID)
        case publishChannel(Bool)
        case unpublishChannel(CBL2CAPPSM)
        case unpublishAllChannels
        case disconnect(UUID)
    }

    let script = BackendScript<Call, PeripheralEvent>()

    func stop() { note(.stop) }

    func startAdvertising(_ payload: AdvertisementPayload, _ completion: @escaping Completion<Void>) {
        note(.startAdvertising(payload), completion)
    }

    func stopAdvertising() { note(.stopAdvertising) }

    func address(of central: UUID) -> DeviceAddress? { nil }
    func disconnect(_ central: UUID) { note(.disconnect(central)) }

    private let lastIncluded = Mutex<[LocalServiceHandle]>([])

    /// The handles of the services that the last one includes; nil for those that are not known yet.
    var includedHandles: [AttributeHandle?] { lastIncluded.withLock { $0 }.map(\.value) }

    /// Records the service with the included services that are known at the time of the call.
    func publish(
        _ service: ServiceDefinition,
        including included: [LocalServiceHandle],
        _ completion: @escaping Completion<PublishedService>
    ) {
        lastIncluded.withLock { $0 = included }
        var definition = service
        definition.includes += included.compactMap(\.value).map(ServiceDefinition.Include.handle)
        note(.publish(definition), completion)
    }

    func completeInOrder(_ completion: @escaping Completion<Void>) { completion(.success(())) }

    func removeService(at handle: AttributeHandle) { note(.remove(handle)) }

    func answer(_ access: UInt64, on link: LinkIdentifier, _ result: Result<[UInt8], ATTErrorCode>) {
        note(.answer(access, link, result))
    }

    func update(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to links: [LinkIdentifier],
        _ completion: @escaping Completion<Void>
    ) {
        note(.update(value, handle, links), completion)
    }

    func setLatency(_ latency: CBPeripheralManagerConnectionLatency, of central: UUID) {
        note(.latency(latency, central))
    }

    func publishChannel(requiresEncryption: Bool, _ completion: @escaping Completion<CBL2CAPPSM>) {
        note(.publishChannel(requiresEncryption), completion)
    }

    func unpublishChannel(_ psm: CBL2CAPPSM, _ completion: @escaping Completion<Void>) {
        note(.unpublishChannel(psm), completion)
    }

    func unpublishAllChannels() { note(.unpublishAllChannels) }
}

extension PeripheralBackend {
    /// Publishes a service that includes no others, or those of its definition.
    func publish(_ service: ServiceDefinition, _ completion: @escaping Completion<PublishedService>) {
        publish(service, including: [], completion)
    }
}

/// A service as the database lays it out: its declaration at `handle`, each value two handles above the declaration
/// before it.
func published(_ definition: ServiceDefinition, at handle: UInt16) throws -> PublishedService {
    var definition = definition
    definition.handle = AttributeHandle(handle)
    return try BLEGATT.Server().publish([definition])[0]
}
