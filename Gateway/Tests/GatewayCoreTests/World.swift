import BLE
import Testing

@testable import GatewayCore

/// A gateway that serves, and devices on its virtual air.
struct World: Sendable {
    /// The name of the air, for further devices.
    let air: String
    let gateway: Gateway
    let port: Int
    /// The gateway's first adapter.
    let adapter: Adapter
    let devices: [Device]
    let events: EventLog

    func client() async throws -> APIClient {
        try await APIClient(port: port)
    }

    /// The number of connections through each adapter.
    var connectionCounts: [Int] {
        get async { await gateway.status.adapters.map(\.connectionCount) }
    }

    /// Performs a command for the first device, and returns its result.
    ///
    /// - Parameter address: the address of the device; nil for its identity address.
    func perform(
        _ action: DeviceCommand.Action,
        at address: DeviceAddress? = nil,
        notified: @escaping @Sendable (DeviceNotification) -> Void = { _ in }
    ) async -> Result<DeviceCommandOutcome, DeviceCommandError> {
        let address = (address ?? devices[0].address).value
        let command = DeviceCommand(action, address: address, isRandom: true, timeout: .seconds(60))
        return await withCheckedContinuation { waiting in
            gateway.commands.perform(command, notified: notified) { waiting.resume(returning: $0) }
        }
    }

    /// Waits until all adapters are open.
    func waitForAdapters() async {
        while await gateway.status.adapters.contains(where: { !$0.isOpen }) { await Task.yield() }
    }
}

/// A peripheral on the virtual air.
struct Device: Sendable {
    let adapter: Adapter
    /// The identity address.
    let address: DeviceAddress
    let name: String
    /// The value handle of a characteristic that can be read and written.
    let value: UInt16
    /// The value handle of a characteristic that is notified.
    let notified: UInt16
    let advertisingData: [UInt8]
    let scanResponseData: [UInt8]
    private let advertising: AdvertisingSet

    init(_ number: UInt64, air: String, usesPrivateAddresses: Bool = false) async throws {
        address = DeviceAddress(0xC0DE_0000_0000 + number, isRandom: true)
        name = "Device \(number)"
        var configuration = Adapter.Configuration()
        configuration.identityAddress = address
        configuration.usesPrivateAddresses = usesPrivateAddresses
        configuration.security.justWorks = .always
        adapter = try await Adapter.open(.virtual(name: air), configuration: configuration)
        let service = ServiceDefinition(
            uuid: "9F3D0001-5C3A-4F8E-9A52-0D4A1E6C7B11",
            characteristics: [
                CharacteristicDefinition(
                    uuid: "2A6E",
                    properties: [.read, .write, .writeWithoutResponse],
                    permissions: [.read, .write],
                    value: .stored([7])
                ),
                CharacteristicDefinition(
                    uuid: "9F3D0002-5C3A-4F8E-9A52-0D4A1E6C7B11",
                    properties: .notify,
                    permissions: [],
                    value: .stored([])
                ),
            ]
        )
        let published = try await adapter.peripheral.publish([service])
        value = published[0].characteristics[0].valueHandle.rawValue
        notified = published[0].characteristics[1].valueHandle.rawValue
        let data = AdvertisingData([.flags([.generalDiscoverable, .brEdrNotSupported])])
        let response = AdvertisingData([.completeLocalName(name)])
        advertisingData = data.bytes
        scanResponseData = response.bytes
        advertising = try await adapter.peripheral.startAdvertising(
            AdvertisementConfiguration(interval: .milliseconds(30), advertisingData: data, scanResponseData: response)
        )
    }

    /// Returns the address under which an adapter receives the device: its private address, if it uses one and is not
    /// bonded to the adapter.
    func advertisedAddress(receivedBy receiver: Adapter) async throws -> DeviceAddress {
        var advertisements = receiver.central.scan(ScanOptions(name: name)).makeAsyncIterator()
        return try #require(try await advertisements.next()).address
    }

    /// Returns the private address under which an adapter receives the device, and which no bond resolves.
    func privateAddress(receivedBy receiver: Adapter) async throws -> DeviceAddress {
        var advertisements = receiver.central.scan(ScanOptions(name: name)).makeAsyncIterator()
        while true {
            let address = try #require(try await advertisements.next()).address
            if address.kind == .resolvablePrivate { return address }
        }
    }

    /// Removes the bonds of the device, as a reset does.
    func forgetBonds() async {
        for bond in await adapter.bonds() { await adapter.removeBond(bond.identity) }
    }

    func notify(_ value: [UInt8]) async throws {
        let clients = await adapter.peripheral.clients.map(\.id)
        try await adapter.peripheral.notify(value, of: AttributeHandle(rawValue: notified), to: clients)
    }
}

/// Runs `body` with a gateway and two devices, and stops the gateway.
///
/// - Parameters:
///   - usesPrivateAddresses: whether the devices advertise under private addresses.
///   - received: see ``GatewayConfiguration/devices``.
///   - linkEndTimeout: see ``GatewayConfiguration/linkEndTimeout``.
///   - whenStopped: is called when the gateway has ended, and before its adapter is closed.
func withGateway<Result: Sendable>(
    connectionLimit: Int = 20,
    clientLimit: Int = 16,
    hasSecondAdapter: Bool = false,
    otherAdapters: [AdapterSpecification] = [],
    usesPrivateAddresses: Bool = false,
    received: ReceivedDevices? = nil,
    failedAttemptTime: Duration = .seconds(5),
    linkEndTimeout: Duration = .seconds(2),
    whenStopped: (World) async -> Void = { _ in },
    air: String = #function,
    line: Int = #line,
    _ body: (World) async throws -> Result
) async throws -> Result {
    let name = "\(air) \(line) \(UInt64.random(in: 0...UInt64.max))"
    let devices = [
        try await Device(1, air: name, usesPrivateAddresses: usesPrivateAddresses),
        try await Device(2, air: name, usesPrivateAddresses: usesPrivateAddresses),
    ]
    var configuration = GatewayConfiguration(name: "test")
    configuration.host = "127.0.0.1"
    configuration.port = 0
    configuration.connectionLimit = connectionLimit
    configuration.clientLimit = clientLimit
    configuration.devices = received
    configuration.failedAttemptTime = failedAttemptTime
    configuration.linkEndTimeout = linkEndTimeout
    configuration.connectionEndTimeout = .seconds(60)
    configuration.adapters = otherAdapters + (hasSecondAdapter ? [.virtual(name: name)] : [])
    let adapter = try await Adapter.open(.virtual(name: name))
    let gateway = Gateway(configuration: configuration, adapters: [adapter])
    let run = Task { try await gateway.run() }
    do {
        let port = await waitForPort(of: gateway)
        let world = World(
            air: name,
            gateway: gateway,
            port: port,
            adapter: adapter,
            devices: devices,
            events: configuration.events
        )
        let result = try await body(world)
        run.cancel()
        try await run.value
        await whenStopped(world)
        await adapter.close()
        return result
    } catch {
        run.cancel()
        try? await run.value
        throw error
    }
}

/// Returns the port once the gateway serves.
private func waitForPort(of gateway: Gateway) async -> Int {
    while true {
        if let port = await gateway.status.port { return port }
        await Task.yield()
    }
}
