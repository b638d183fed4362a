import BLE
import BluetoothTesting
import CoreBluetooth

/// An app with both kinds of managers on one adapter.
final class FuzzedApp: NSObject {
    /// Maximum number of peripherals, requests and channels that an app keeps.
    private static let limit = 8
    static let service = CBUUID(string: "FFE0")

    /// Objects that the app has created or received. It keeps none of them alive.
    struct Made {
        var values: [AnyObject] {
            get { references.compactMap(\.object) }
            set { references = newValue.map { Reference(object: $0) } }
        }
        private var references: [Reference] = []

        private struct Reference {
            weak var object: AnyObject?
        }

        mutating func add(_ object: AnyObject) {
            if !values.contains(where: { $0 === object }) { references.append(Reference(object: object)) }
        }
    }

    let adapter: Adapter
    let queue: DispatchQueue
    let world: World
    var central: CBCentralManager?
    var server: CBPeripheralManager?
    var peripherals: [CBPeripheral] = []
    /// The identifiers of all peripherals that the app has had.
    var identifiers: [UUID] = []
    var services: [CBMutableService] = []
    var requests: [CBATTRequest] = []
    var channels: [CBL2CAPChannel] = []
    var centrals: [CBCentral] = []
    var psms: [CBL2CAPPSM] = []
    var calls: ConcurrentCalls
    var made = Made()
    /// The actions of the delegates, in the order of their calls. Without one, a delegate takes the next step of a
    /// usual app.
    var reactions: [UInt8] = []
    /// The number of further usual steps.
    var remainingSteps = 40
    var ledger = DelegateLedger()

    init(adapter: Adapter, queue: DispatchQueue, world: World) {
        self.adapter = adapter
        self.queue = queue
        self.world = world
        calls = ConcurrentCalls(world: world)
        super.init()
        makeCentral(restores: false)
        makeServer(restores: false)
    }

    /// Releases all objects.
    func releaseAll() {
        for channel in channels { close(channel) }
        (central, server) = (nil, nil)
        (peripherals, services, requests, channels, centrals) = ([], [], [], [], [])
    }

    func makeCentral(restores: Bool) {
        var options: [String: Any] = [CBCentralManagerOptionAdapterKey: adapter]
        if restores { options[CBCentralManagerOptionRestoreIdentifierKey] = "central" }
        let manager = CBCentralManager(delegate: self, queue: queue, options: options)
        made.add(manager)
        central = manager
    }

    func makeServer(restores: Bool) {
        var options: [String: Any] = [CBPeripheralManagerOptionAdapterKey: adapter]
        if restores { options[CBPeripheralManagerOptionRestoreIdentifierKey] = "server" }
        let manager = CBPeripheralManager(delegate: self, queue: queue, options: options)
        made.add(manager)
        server = manager
        ledger.subscriptions = []
    }

    func keep(_ peripheral: CBPeripheral) {
        made.add(peripheral)
        peripheral.delegate = self
        if !identifiers.contains(peripheral.identifier) { identifiers.append(peripheral.identifier) }
        guard !peripherals.contains(where: { $0 === peripheral }) else { return }
        peripherals.append(peripheral)
        if peripherals.count > FuzzedApp.limit { peripherals.removeFirst() }
    }

    func keep(_ channel: CBL2CAPChannel) {
        made.add(channel)
        channel.inputStream.open()
        channel.outputStream.open()
        channels.append(channel)
        if channels.count > FuzzedApp.limit { channels.removeFirst() }
    }

    func keep(_ request: CBATTRequest) {
        requests.append(request)
        if requests.count > FuzzedApp.limit { requests.removeFirst() }
    }

    func keep(_ central: CBCentral) {
        made.add(central)
        if !centrals.contains(where: { $0 === central }) { centrals.append(central) }
        if centrals.count > FuzzedApp.limit { centrals.removeFirst() }
    }

    func close(_ channel: CBL2CAPChannel) {
        channel.inputStream.close()
        channel.outputStream.close()
    }

    // MARK: Services

    /// Creates a service with an attribute of each kind.
    func makeService(isPrimary: Bool, includes: Bool) -> CBMutableService {
        let service = CBMutableService(type: FuzzedApp.service, primary: isPrimary)
        let value = CBMutableCharacteristic(
            type: CBUUID(string: "FFE1"),
            properties: [.read, .write, .writeWithoutResponse, .notify],
            value: nil,
            permissions: [.readable, .writeable]
        )
        value.descriptors = [
            CBMutableDescriptor(type: CBUUID(string: CBUUIDCharacteristicUserDescriptionString), value: "x")
        ]
        let constant = CBMutableCharacteristic(
            type: CBUUID(string: "FFE2"),
            properties: .read,
            value: Data([1, 2]),
            permissions: .readable
        )
        let protected = CBMutableCharacteristic(
            type: CBUUID(string: "FFE3"),
            properties: [.read, .indicate, .indicateEncryptionRequired],
            value: nil,
            permissions: .readEncryptionRequired
        )
        service.characteristics = [value, constant, protected]
        if includes, let other = services.last { service.includedServices = [other] }
        return service
    }
}

extension Collection where Index == Int {
    /// The element with a number, counted round; nil if there is none.
    func chosen(_ number: UInt8) -> Element? {
        isEmpty ? nil : self[Int(number) % count]
    }
}
