import BLE
import Foundation
import Testing

@testable import GatewayCore

/// Devices that are bonded to an adapter: the choice of the adapter, and changes of the bonds.
@Suite(.timeLimit(.minutes(2)))
struct BondedDeviceTests {
    @Test func bondedDeviceIsConnectedThroughTheAdapterWithTheBond() async throws {
        try await withGateway(hasSecondAdapter: true) { world in
            let client = try await world.client()
            await world.waitForAdapters()
            let addresses = world.devices.map(\.address.value)
            try await client.connect(addresses[0])
            #expect(await world.connectionCounts == [1, 0])
            try #require(try await client.pair(addresses[0]))
            try await client.disconnect(addresses[0])
            // Without a bond, the adapter with fewer connections would be chosen.
            try await client.connect(addresses[1])
            #expect(await world.connectionCounts == [1, 0])
            try await client.connect(addresses[0])
            #expect(await world.connectionCounts == [2, 0])
            try #require(try await client.unpair(addresses[0]))
            _ = try await client.connectionResponse { $0.address == addresses[0] && !$0.connected }
            try await client.connect(addresses[0])
            #expect(await world.connectionCounts == [1, 1])
        }
    }

    @Test func bondThatIsRemovedWhileTheDeviceIsNotConnectedDoesNotDecide() async throws {
        try await withGateway(hasSecondAdapter: true) { world in
            let client = try await world.client()
            await world.waitForAdapters()
            let addresses = world.devices.map(\.address.value)
            try await client.connect(addresses[0])
            try #require(try await client.pair(addresses[0]))
            try await client.disconnect(addresses[0])
            try #require(try await client.unpair(addresses[0]))
            try await client.connect(addresses[1])
            try await client.connect(addresses[0])
            #expect(await world.connectionCounts == [1, 1])
        }
    }

    @Test func bondedDeviceIsConnectedThroughAnotherAdapterIfItsOwnIsAbsent() async throws {
        try await withGateway(hasSecondAdapter: true) { world in
            let client = try await world.client()
            await world.waitForAdapters()
            let address = world.devices[0].address.value
            try await client.connect(address)
            try #require(try await client.pair(address))
            try await client.disconnect(address)
            await world.adapter.close()
            while await world.gateway.status.adapters[0].isOpen { await Task.yield() }
            try await client.connect(address)
            #expect(await world.connectionCounts == [0, 1])
            #expect(try await client.read(address, world.devices[0].value) == [7])
        }
    }

    @Test func unpairingAConnectedDeviceRemovesTheBondsOfAllAdapters() async throws {
        try await withTable(adapterCount: 2) { adapters, device in
            for adapter in adapters {
                let peripheral = try await adapter.central.connect(to: device.address)
                try await peripheral.pair()
                await peripheral.disconnect()
            }
        } run: { world in
            let (table, address) = (world.table, world.device.address.value)
            let client = try await world.makeClient()
            // With a connection through the first adapter, the second one is chosen.
            let other = try table.acquireSlot(for: 1, isRandom: false)
            #expect(other.adapterIndex == 0)
            table.connect(address, isRandom: true, usesCache: false, for: client)
            while !table.statuses.contains(where: { $0.isConnected }) { await Task.yield() }
            #expect(table.connectionCount(of: 1) == 1)
            table.perform(.unpair, on: address, for: client)
            while table.connectionCount(of: 1) > 0 { await Task.yield() }
            for adapter in world.adapters { #expect(await adapter.bonds().isEmpty) }
            for runner in world.runners { #expect(!runner.hasBond(with: address)) }
            table.release(other)
        }
    }

    /// The bonds are those with which the adapter was opened.
    @Test func adapterWithTheBondAndWithoutRoomIsNotReplacedByAnother() async throws {
        try await withTable(adapterCount: 2) { adapters, device in
            let peripheral = try await adapters[0].central.connect(to: device.address)
            try await peripheral.pair()
            await peripheral.disconnect()
        } run: { world in
            let address = world.device.address.value
            let other = try world.table.acquireSlot(for: 1, isRandom: false)
            #expect(other.adapterIndex == 0)
            // The controller holds one connection.
            world.table.release(other, isRefused: true)
            let busy = try world.table.acquireSlot(for: 1, isRandom: false, besides: [1])
            #expect(busy.adapterIndex == 0)
            let error = #expect(throws: DeviceCommandError.self) {
                _ = try world.table.acquireSlot(for: address, isRandom: true)
            }
            #expect(error?.code == .noSlot)
            world.table.release(busy)
            #expect(try world.table.acquireSlot(for: address, isRandom: true).adapterIndex == 0)
        }
    }

    /// A device with private addresses can be connected under its identity address as well.
    @Test(arguments: [false, true])
    func bondOfAPairingDecidesBeforeTheConnectionEnds(usesCommands: Bool) async throws {
        try await withTable(adapterCount: 1) { world in
            let (table, address) = (world.table, world.device.address.value)
            if usesCommands {
                let logger = GatewayConfiguration(name: "test").logger
                let commands = DeviceCommands(devices: table, idleTimeout: .seconds(3600), logger: logger)
                let command = DeviceCommand(.pair, address: address, isRandom: true, timeout: .seconds(60))
                let outcome: DeviceCommandOutcome = try await withCheckedThrowingContinuation { waiting in
                    commands.perform(command, report: { waiting.resume(with: $0) })
                }
                guard case .paired(world.device.address) = outcome else {
                    Issue.record("no result of a pairing")
                    return
                }
                #expect(world.runners[0].hasBond(with: address))
                await commands.stop(timeout: .seconds(60))
            } else {
                let client = try await world.makeClient()
                table.connect(address, isRandom: true, usesCache: false, for: client)
                while !table.statuses.contains(where: { $0.isConnected }) { await Task.yield() }
                let connection = table.state.withLock { $0.connections.first }
                let services = try #require(connection).services
                services.set([], of: address)
                table.perform(.pair, on: address, for: client)
                // The cache is cleared after the pairing.
                table.perform(.clearCache, on: address, for: client)
                while services.services(of: address) != nil { await Task.yield() }
                #expect(world.runners[0].hasBond(with: address))
                table.remove(client)
                await table.waitForEnds(atMost: .seconds(3600))
            }
        }
    }

    @Test func pairReplacesTheBondWhoseKeyTheDeviceHasLost() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let device = world.devices[0]
            let address = device.address.value
            try await client.connect(address)
            try #require(try await client.pair(address))
            while await device.adapter.bonds().isEmpty { await Task.yield() }
            try await client.disconnect(address)
            await device.forgetBonds()
            // The ATT_MTU is exchanged only on a verified link.
            try #require(try await client.requestConnection(address).connected)
            try #require(try await client.pair(address))
            #expect(try await client.read(address, device.value) == [7])
            #expect(await device.adapter.bonds().count == 1)
            #expect(await world.adapter.bonds().map(\.identity) == [device.address])
        }
    }

    @Test func deviceThatRequestsSecurityIsPaired() async throws {
        // The gateway opens the second adapter itself, with its own settings.
        try await withGateway(hasSecondAdapter: true) { world in
            let client = try await world.client()
            await world.waitForAdapters()
            let addresses = world.devices.map(\.address.value)
            for address in addresses { try await client.connect(address) }
            try #require(await world.connectionCounts == [1, 1])
            let peripheral = world.devices[1].adapter.peripheral
            let clients = await peripheral.clients
            let link = try #require(clients.first).id
            #expect(try await peripheral.requestSecurity(of: link).isSecureConnections)
            try await client.disconnect(addresses[1])
            // There is a bond to remove.
            #expect(try await client.unpair(addresses[1]))
        }
    }

    /// The gateway opens the second adapter itself, with its own settings.
    private func pairSecondDeviceByItsRequest(_ world: World, _ client: APIClient) async throws -> Device {
        await world.waitForAdapters()
        for device in world.devices { try await client.connect(device.address.value) }
        try #require(await world.connectionCounts == [1, 1])
        let device = world.devices[1]
        let peripheral = device.adapter.peripheral
        let clients = await peripheral.clients
        let link = try #require(clients.first).id
        _ = try await peripheral.requestSecurity(of: link)
        while await device.adapter.bonds().isEmpty { await Task.yield() }
        return device
    }

    @Test func bondThatNoClientHasRequestedIsRemovedIfItsKeyIsLost() async throws {
        try await withGateway(hasSecondAdapter: true) { world in
            let client = try await world.client()
            let device = try await pairSecondDeviceByItsRequest(world, client)
            let address = device.address.value
            try await client.disconnect(address)
            await device.forgetBonds()
            #expect(try await !client.requestConnection(address).connected)
            try await client.connect(address)
            #expect(try await client.read(address, device.value) == [7])
        }
    }

    @Test func bondThatAClientRequestsAfterTheDeviceStaysIfItsKeyIsLost() async throws {
        try await withGateway(hasSecondAdapter: true) { world in
            let client = try await world.client()
            let device = try await pairSecondDeviceByItsRequest(world, client)
            let address = device.address.value
            try #require(try await client.pair(address))
            try await client.disconnect(address)
            await device.forgetBonds()
            try #require(try await client.requestConnection(address).connected)
            // There is a bond to remove.
            #expect(try await client.unpair(address))
        }
    }

    @Test func deviceWithAPrivateAddressIsUnpairedInTheConnectionInWhichItWasPaired() async throws {
        try await withGateway(usesPrivateAddresses: true) { world in
            let client = try await world.client()
            let device = world.devices[0]
            let address = try await device.advertisedAddress(receivedBy: world.adapter)
            try #require(address.kind == .resolvablePrivate)
            try await client.connect(address.value)
            try #require(try await client.pair(address.value))
            #expect(await world.adapter.bonds().map(\.identity) == [device.address])
            #expect(try await client.unpair(address.value))
            #expect(await world.adapter.bonds().isEmpty)
        }
    }

    @Test func secondRequestToPairOnALinkBeginsNoPairing() async throws {
        let pairingCount = try await withGateway(usesPrivateAddresses: true) { world -> Task<Int, Never> in
            let client = try await world.client()
            let device = world.devices[0]
            var policy = SecurityPolicy()
            policy.justWorks = .always
            // The gateway does not learn the identity address of the device.
            policy.bonds = false
            await device.adapter.setSecurityPolicy(policy)
            let events = await world.adapter.securityEvents()
            let address = try await device.privateAddress(receivedBy: world.adapter)
            try await client.connect(address.value)
            for _ in 1...2 { try #require(try await client.pair(address.value)) }
            #expect(await world.adapter.bonds().isEmpty)
            // The sequence ends when the adapter is closed.
            return Task {
                var count = 0
                for await event in events { if case .pairingStarted = event { count += 1 } }
                return count
            }
        }
        #expect(await pairingCount.value == 1)
    }

    @Test(arguments: [false, true])
    func databaseOfABondedDeviceIsDiscoveredAgainAfterClearCache(usesPrivateAddresses: Bool) async throws {
        let air = "\(#function) \(UInt64.random(in: 0...UInt64.max))"
        let capture = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).btsnoop")
        defer { try? FileManager.default.removeItem(at: capture) }
        let device = try await Device(1, air: air, usesPrivateAddresses: usesPrivateAddresses)
        var configuration = Adapter.Configuration()
        configuration.capturePath = capture.path
        let adapter = try await Adapter.open(.virtual(name: air), configuration: configuration)
        let advertised = try await device.advertisedAddress(receivedBy: adapter)
        #expect((advertised.kind == .resolvablePrivate) == usesPrivateAddresses)
        try await TableWorld([adapter], device: device).run { world in
            let (table, address) = (world.table, advertised.value)
            let client = try await world.makeClient()
            table.connect(address, isRandom: true, usesCache: false, for: client)
            while !table.statuses.contains(where: { $0.isConnected }) { await Task.yield() }
            let connection = table.state.withLock { $0.connections.first }
            let services = try #require(connection).services
            // Requests the services, and returns whether the adapter has begun a discovery since `count` was read.
            func discovers(since count: Int) async throws -> Bool {
                services.remove(address)
                table.perform(.getServices, on: address, for: client)
                while services.services(of: address) == nil { await Task.yield() }
                return try discoveryCount(in: capture) > count
            }
            table.perform(.pair, on: address, for: client)
            while await adapter.bonds().isEmpty { await Task.yield() }
            // Once the adapter knows the database of the bonded device, it does not discover it again.
            var count = try discoveryCount(in: capture)
            while try await discovers(since: count) { count = try discoveryCount(in: capture) }
            table.perform(.clearCache, on: address, for: client)
            while services.services(of: address) != nil { await Task.yield() }
            #expect(try await discovers(since: count))
            table.disconnect(address, for: client)
            while table.state.withLock({ !$0.connections.isEmpty }) { await Task.yield() }
        }
        await adapter.close()
    }
}

/// Returns how many discoveries of all primary services a capture shows.
private func discoveryCount(in capture: URL) throws -> Int {
    let bytes = [UInt8](try Data(contentsOf: capture))
    // A frame of the Attribute Protocol with 7 bytes: Read By Group Type Request, handles 0x0001 to 0xFFFF, 0x2800.
    let frame: [UInt8] = [7, 0, 4, 0, 0x10, 1, 0, 0xFF, 0xFF, 0, 0x28]
    return bytes.indices.count { bytes[$0...].starts(with: frame) }
}

struct BondRemovalsTests {
    private static let first = DeviceAddress(1, isRandom: false)
    private static let second = DeviceAddress(2, isRandom: false)

    @Test func removalsBelongToOneAdapter() {
        var removals = BondRemovals()
        removals.insert(7, of: Self.first)
        removals.insert(8, of: Self.first)
        removals.insert(7, of: Self.second)
        removals.insert(7, of: Self.first)
        #expect(removals.devices(of: Self.first) == [7, 8])
        removals.remove(7, of: Self.first)
        #expect(removals.devices(of: Self.first) == [8])
        #expect(removals.devices(of: Self.second) == [7])
        #expect(removals.devices(of: nil).isEmpty)
    }

    @Test func oldestRemovalIsForgottenBeyondTheLimit() {
        var removals = BondRemovals()
        let count = UInt64(BondRemovals.limit)
        for device in 0...count { removals.insert(device, of: Self.first) }
        #expect(removals.devices(of: Self.first) == Array(1...count))
    }
}
