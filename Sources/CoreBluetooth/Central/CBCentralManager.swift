import BluetoothTypes
import Foundation
import Synchronization

/// The central role: finds peripherals and connects to them.
///
/// The app may use the manager on any thread. The delegate is called on the given queue, one call at a time.
open class CBCentralManager: CBManager, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    /// The optional features of a host.
    public struct Feature: OptionSet, Hashable, Sendable {
        public let rawValue: UInt

        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// Scanning and connecting with the extended advertising PDUs of Bluetooth 5.
        public static let extendedScanAndConnect = Feature(rawValue: 1 << 0)
        /// Channel sounding with connected peripherals.
        public static let channelSounding = Feature(rawValue: 1 << 10)
    }

    struct Content {
        /// Unsafe for the compiler, because delegates need not be `Sendable`. Only the manager's queue calls them.
        nonisolated(unsafe) weak var delegate: (any CBCentralManagerDelegate)?
        /// The number of the scan; nil if the manager does not scan.
        var scan: UInt64?
        /// The number of the last scan. Discoveries of earlier scans are ignored.
        var lastScan: UInt64 = 0
        var peripherals: [UUID: Weak<CBPeripheral>] = [:]
        /// The number of entries in ``peripherals`` at which those of released objects are removed.
        var sweepSize = CBCentralManager.leastSweepSize
    }

    let backend: (any CentralBackend)?
    let content: Mutex<Content>
    let discoveries = Broadcast<CBDiscovery>()
    let backlog = DeliveryBacklog<CentralEvent>()
    let connectionChanges = Broadcast<CBConnectionChange>()

    /// Creates a manager without a delegate that uses the main queue.
    public convenience init() {
        self.init(delegate: nil, queue: nil, options: nil)
    }

    /// Creates a manager without options; see ``init(delegate:queue:options:)``.
    public convenience init(delegate: (any CBCentralManagerDelegate)?, queue: DispatchQueue?) {
        self.init(delegate: delegate, queue: queue, options: nil)
    }

    /// Creates a manager. The delegate receives the state soon after.
    ///
    /// - Parameters:
    ///   - delegate: the object that receives the manager's events. The manager does not keep it.
    ///   - queue: the queue on which the delegate is called; nil for the main queue, which a command line program must
    ///     run.
    ///   - options: see `CBCentralManagerOptionRestoreIdentifierKey` and the other options.
    public init(
        delegate: (any CBCentralManagerDelegate)?,
        queue: DispatchQueue?,
        options: [String: Any]? = nil
    ) {
        backend = BackendFactory.makeCentralBackend(options)
        content = Mutex(Content(delegate: delegate))
        super.init(deliveringOn: queue)
        begin(backend.map { $0.start })
    }

    init(delegate: (any CBCentralManagerDelegate)?, queue: DispatchQueue?, backend: (any CentralBackend)?) {
        self.backend = backend
        content = Mutex(Content(delegate: delegate))
        super.init(deliveringOn: queue)
        begin(backend.map { $0.start })
    }

    deinit {
        for peripheral in content.withLock({ $0.peripherals.values.compactMap(\.object) }) {
            peripheral.discardConnection(isInvalidated: true)
        }
        backend?.stop()
    }

    /// The object that receives the manager's events, held weakly. Another delegate receives the events from then on.
    open weak var delegate: (any CBCentralManagerDelegate)? {
        get { content.withLock { unsafe $0.delegate } }
        set { content.withLock { unsafe $0.delegate = newValue } }
    }

    /// Whether the app has started a scan and not stopped it. A scan also ends when the manager is no longer powered
    /// on.
    open var isScanning: Bool { content.withLock { $0.scan != nil } }

    /// Returns whether all of `features` are supported.
    ///
    /// ``Feature/extendedScanAndConnect`` does not depend on a controller: the host uses it if the controller supports
    /// it. ``Feature/channelSounding`` is supported if a controller that a manager of this process uses now supports
    /// it.
    open class func supports(_ features: Feature) -> Bool {
        var supported: Feature = .extendedScanAndConnect
        if features.contains(.channelSounding), HostRegistry.supportsChannelSounding {
            supported.insert(.channelSounding)
        }
        return supported.isSuperset(of: features)
    }

    // MARK: Peripherals

    /// Returns the peripherals with these identifiers that the host knows.
    open func retrievePeripherals(withIdentifiers identifiers: [UUID]) -> [CBPeripheral] {
        (backend?.knownPeripherals(identifiers) ?? []).map(retrieved)
    }

    /// Returns the peripherals that this host is connected to, for any manager of this process, and that have one of
    /// the services. This manager must connect to a peripheral too before it can use it.
    open func retrieveConnectedPeripherals(withServices serviceUUIDs: [CBUUID]) -> [CBPeripheral] {
        (backend?.connectedPeripherals(withServices: serviceUUIDs.values) ?? []).map(retrieved)
    }

    /// Returns the object for a peripheral that the app retrieves. An object that the app keeps gets the name that the
    /// host knows now, and its delegate is called soon after.
    private func retrieved(_ known: KnownPeripheral) -> CBPeripheral {
        let peripheral = peripheral(known)
        if let name = known.name, peripheral.setName(name) {
            onQueue { _ in peripheral.tell { $0.peripheralDidUpdateName(peripheral) } }
        }
        return peripheral
    }

    // MARK: Scanning

    /// Scans for peripherals that advertise one of some services; for all peripherals if the list is nil or empty. A
    /// scan that is running continues with these services and options instead. Its discoveries that still wait for the
    /// manager's queue are dropped.
    open func scanForPeripherals(withServices serviceUUIDs: [CBUUID]?, options: [String: Any]? = nil) {
        guard acceptsCommands() else { return }
        let request = ScanRequest(services: serviceUUIDs, options: options)
        content.withLock { content in
            content.lastScan += 1
            content.scan = content.lastScan
            backend?.scan(request, number: content.lastScan)
        }
    }

    /// Stops the scan. Discoveries that still wait for the manager's queue are dropped.
    open func stopScan() {
        guard acceptsCommands() else { return }
        content.withLock { content in
            content.scan = nil
            backend?.stopScan()
        }
    }

    // MARK: Connections

    /// Connects to a peripheral. The attempt has no time limit; ``cancelPeripheralConnection(_:)`` ends it.
    ///
    /// For a peripheral that is connected, the delegate is called again. If `options` contains
    /// ``CBConnectPeripheralOptionEnableAutoReconnect``, it applies to the connection from then on.
    open func connect(_ peripheral: CBPeripheral, options: [String: Any]? = nil) {
        connect(peripheral, ConnectionRequest(options: options))
    }

    /// Handles the app's call to connect.
    ///
    /// - Returns: the number of the request; nil if the call is not accepted. Then the misuse is reported, and no
    ///   callback follows.
    @discardableResult
    func connect(_ peripheral: CBPeripheral, _ request: ConnectionRequest, _ command: String = #function) -> UInt64? {
        guard acceptsCommands(command), manages(peripheral) else { return nil }
        guard let (number, isConnected) = peripheral.wishConnection(request) else {
            reportInvalid(peripheral)
            return nil
        }
        guard isConnected else { return number }
        deliveryQueue.async { [weak self] in
            guard let self, let answered = peripheral.requestsOfConnection else { return }
            self.delegate?.centralManager(self, didConnect: peripheral)
            self.send(.connected, of: peripheral, answering: answered)
        }
        return number
    }

    /// Ends a connection or a connection attempt.
    open func cancelPeripheralConnection(_ peripheral: CBPeripheral) {
        guard acceptsCommands(), manages(peripheral) else { return }
        guard let answered = peripheral.wishDisconnection() else { return }
        let end = Disconnection(error: nil, time: CFAbsoluteTimeGetCurrent())
        onQueue { $0.report(end, of: peripheral, answering: answered) }
    }

    /// Makes the manager call its delegate when some peripherals connect to this host or disconnect, for any manager of
    /// this process; nil stops that.
    ///
    /// With services, a peripheral matches once it has advertised one of them, or discovery has found one. If discovery
    /// finds the first one, a connection made after the registration is reported then. Its end is reported only if the
    /// connection was. The end of a connection made before the registration is reported too. Another call replaces the
    /// options.
    open func registerForConnectionEvents(options: [CBConnectionEventMatchingOption: Any]? = nil) {
        guard acceptsCommands() else { return }
        backend?.registerForConnectionEvents(options.map(ConnectionEventFilter.init))
    }

    func manages(_ peripheral: CBPeripheral) -> Bool {
        guard let manager = peripheral.content.withLock({ $0.manager }) else {
            reportInvalid(peripheral)
            return false
        }
        guard manager !== self else { return true }
        ProgrammerError.report("\(peripheral) is another manager's, not \(self)'s")
        return false
    }

    private func reportInvalid(_ peripheral: CBPeripheral) {
        ProgrammerError.report(
            "\(peripheral) is no longer valid: its manager was released or reset; retrieve or discover it again"
        )
    }

    /// Returns the object for a peripheral: the object that the app keeps, or a new one.
    func peripheral(_ known: KnownPeripheral) -> CBPeripheral {
        content.withLock { content in
            if let kept = content.peripherals[known.identifier]?.object { return kept }
            if content.peripherals.count >= content.sweepSize {
                content.peripherals = content.peripherals.filter { $0.value.object != nil }
                content.sweepSize = max(CBCentralManager.leastSweepSize, 2 * content.peripherals.count)
            }
            let peripheral = CBPeripheral(known, manager: self)
            content.peripherals[known.identifier] = Weak(peripheral)
            return peripheral
        }
    }

    fileprivate static let leastSweepSize = 1024
}
