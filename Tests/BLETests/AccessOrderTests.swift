import BLE
import BLESMP
import BluetoothHost
import BluetoothTesting
import Synchronization
import Testing

/// Collects the numbers of the values that a handler was given, in the order of its calls.
private final class NumberLog: Sendable {
    private let numbers = Mutex<[Int]>([])

    var all: [Int] { numbers.withLock { $0 } }

    func append(_ access: AccessRequest.Kind) {
        guard case .write(let write, _) = access, write.value.count >= 4 else { return }
        let number = write.value.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        numbers.withLock { $0.append(number) }
    }

    static func value(_ number: Int) -> [UInt8] {
        [UInt8(number >> 24 & 0xFF), UInt8(number >> 16 & 0xFF), UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF)]
    }
}

private func service(_ uuid: BluetoothUUID) -> ServiceDefinition {
    ServiceDefinition(
        uuid: uuid,
        characteristics: [
            CharacteristicDefinition(
                uuid: "A701",
                properties: [.read, .write, .writeWithoutResponse],
                permissions: [.read, .write],
                value: .handled
            )
        ]
    )
}

private let advertisement = AdvertisementConfiguration(
    interval: .milliseconds(20),
    advertisingData: AdvertisingData([.serviceUUIDs(["A700"], isComplete: true)])
)

@Suite("The order of accesses to handled values")
struct AccessOrderTests {
    @Test("20,000 Write Commands of one client reach the handler in their order, on real threads")
    func writeCommandsKeepTheirOrderOnRealThreads() async throws {
        let server = try await Adapter.open(.virtual(name: "access order"))
        let client = try await Adapter.open(.virtual(name: "access order"))
        let log = NumberLog()
        let published = try await server.peripheral.publish([service("A700")]) { _, access in
            log.append(access)
            return []
        }
        let advertising = try await server.peripheral.startAdvertising(advertisement)
        let peer = try await client.central.connect(to: server.information.identityAddress)
        let handle = published[0].characteristics[0].valueHandle
        var count = 0
        for _ in 1...20_000 {
            count += 1
            try await peer.write(NumberLog.value(count), to: handle, kind: .withoutResponse)
            guard count % 65 == 64 else { continue }
            // A request is answered after the handler has received all commands before it. So at most 64 commands wait.
            count += 1
            try await peer.write(NumberLog.value(count), to: handle)
        }
        count += 1
        try await peer.write(NumberLog.value(count), to: handle)
        let numbers = log.all
        let inversions = zip(numbers, numbers.dropFirst()).count { $0 >= $1 }
        #expect(inversions == 0)
        #expect(numbers.count == count)
        #expect(numbers.last == count)
        #expect(await server.peripheral.clients.map(\.droppedCommandCount) == [0])
        await advertising.stop()
        await client.close()
        await server.close()
    }

    @Test("A slow handler has at most 64 commands of its client wait; the others are dropped and counted")
    func slowHandlerHasAtMost64CommandsOfItsClientWait() throws {
        try World.run(limit: .seconds(3600 * 2)) { world in
            let server = try await world.device("server").openAdapter()
            let client = try await world.device("client").openAdapter()
            let log = NumberLog()
            let published = try await server.peripheral.publish([service("A700")]) { _, access in
                log.append(access)
                try? await world.sleep(for: .seconds(60))
                return []
            }
            let advertising = try await server.peripheral.startAdvertising(advertisement)
            let peer = try await client.central.connect(to: server.information.identityAddress)
            let handle = published[0].characteristics[0].valueHandle
            for number in 1...500 {
                try await peer.write(NumberLog.value(number), to: handle, kind: .withoutResponse)
            }
            try await world.sleep(for: .seconds(5))
            // The handler has one command, and 64 wait.
            #expect(await server.peripheral.clients.map(\.droppedCommandCount) == [500 - 65])
            // Accepted commands are handled even after the client has disconnected.
            await peer.disconnect()
            try await world.sleep(for: .seconds(60 * 70))
            #expect(log.all == Array(1...65))
            await advertising.stop()
        }
    }

    @Test("A client that writes, disconnects and connects again cannot make the server store more than its bound")
    func reconnectingClientCannotFillTheServer() throws {
        try World.run(limit: .seconds(3600 * 100)) { world in
            let server = try await world.device("server").openAdapter()
            let client = try await world.device("client").openAdapter()
            let log = NumberLog()
            let isHeld = Atomic(true)
            let published = try await server.peripheral.publish([service("A700")]) { _, access in
                log.append(access)
                while isHeld.load(ordering: .relaxed) { try? await world.sleep(for: .seconds(3600)) }
                return [7]
            }
            let advertising = try await server.peripheral.startAdvertising(advertisement)
            let address = try await server.information.identityAddress
            let handle = published[0].characteristics[0].valueHandle
            var sent = 0
            for _ in 1...20 {
                let peer = try await client.central.connect(to: address)
                for _ in 1...100 {
                    sent += 1
                    try await peer.write(NumberLog.value(sent), to: handle, kind: .withoutResponse)
                }
                await peer.disconnect()
            }
            let peer = try await client.central.connect(to: address)
            await #expect(throws: BLEError.attribute(.insufficientResources, handle: handle)) {
                _ = try await peer.read(handle)
            }
            isHeld.store(false, ordering: .relaxed)
            try await world.sleep(for: .seconds(3600 * 2))
            #expect(log.all.count == 1024)
            #expect(try await peer.read(handle) == [7])
            await advertising.stop()
        }
    }

    @Test("A client whose handler is slow does not delay another client")
    func slowHandlerDelaysOnlyItsClient() throws {
        try World.run { world in
            let server = try await world.device("server").openAdapter()
            let slow = try await world.device("slow").openAdapter()
            let fast = try await world.device("fast").openAdapter()
            let published = try await server.peripheral.publish([service("A700")]) { _, access in
                if case .write = access { try? await world.sleep(for: .seconds(20)) }
                return [7]
            }
            let advertising = try await server.peripheral.startAdvertising(advertisement)
            let address = try await server.information.identityAddress
            let handle = published[0].characteristics[0].valueHandle
            let slowPeer = try await slow.central.connect(to: address)
            let fastPeer = try await fast.central.connect(to: address)
            for number in 1...10 {
                try await slowPeer.write(NumberLog.value(number), to: handle, kind: .withoutResponse)
            }
            try await world.sleep(for: .seconds(1))
            let start = world.elapsed
            #expect(try await fastPeer.read(handle) == [7])
            #expect(world.elapsed - start < .seconds(1))
            await advertising.stop()
        }
    }

    @Test("A Write Request waits for the commands before it, including those to another service")
    func writeRequestAfterWriteCommandsKeepsOrder() throws {
        try World.run { world in
            let server = try await world.device("server").openAdapter()
            let client = try await world.device("client").openAdapter()
            let log = NumberLog()
            let handler: Peripheral.ValueHandler = { _, access in
                try? await world.sleep(for: .milliseconds(100))
                log.append(access)
                return []
            }
            let first = try await server.peripheral.publish([service("A700")], handler: handler)
            let second = try await server.peripheral.publish([service("A710")], handler: handler)
            let advertising = try await server.peripheral.startAdvertising(advertisement)
            let peer = try await client.central.connect(to: server.information.identityAddress)
            let handles = [first, second].map { $0[0].characteristics[0].valueHandle }
            for number in 1...20 {
                try await peer.write(NumberLog.value(number), to: handles[number % 2], kind: .withoutResponse)
            }
            try await peer.write(NumberLog.value(21), to: handles[1])
            #expect(log.all == Array(1...21))
            await advertising.stop()
        }
    }

    @Test("Connected clients are listed, with their address, ATT_MTU and security")
    func connectedClientsAreListed() throws {
        try World.run { world in
            let server = try await world.device("server").openAdapter()
            let client = try await world.device("client").openAdapter()
            _ = try await server.peripheral.publish([service("A700")])
            let advertising = try await server.peripheral.startAdvertising(advertisement)
            #expect(await server.peripheral.clients.isEmpty)
            let peer = try await client.central.connect(to: server.information.identityAddress)
            try await world.sleep(for: .seconds(2))
            let listed = await server.peripheral.clients
            #expect(listed.map(\.address) == [try await client.information.identityAddress])
            #expect(listed.map(\.isIdentityUnverified) == [false])
            #expect(listed.map(\.mtu) == [517])
            #expect(listed.map(\.security) == [nil])
            #expect(await client.peripheral.clients.isEmpty)
            await peer.disconnect()
            try await world.sleep(for: .seconds(2))
            #expect(await server.peripheral.clients.isEmpty)
            await advertising.stop()
        }
    }

    @Test("A client with a bonded address is listed as unverified until its link is encrypted with the bond's key")
    func claimedAddressIsListedAsUnverified() throws {
        try World.run { world in
            let server = try await world.device("server").openAdapter()
            let client = try await world.device("client").openAdapter()
            _ = try await server.peripheral.publish([service("A700")])
            var bond = Bond(identity: try await client.information.identityAddress)
            bond.peripheralKey = LongTermKey(
                value: 1,
                strength: KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 16)
            )
            try await server.host.importBond(BondRecord(bond: bond))
            let advertising = try await server.peripheral.startAdvertising(advertisement)
            _ = try await client.central.connect(to: server.information.identityAddress)
            try await world.sleep(for: .seconds(2))
            #expect(await server.peripheral.clients.map(\.isIdentityUnverified) == [true])
            await advertising.stop()
        }
    }
}

@Suite("Invalid calls of the server")
struct ServerMisuseTests {
    private static let sensor = ServiceDefinition(
        uuid: "A720",
        characteristics: [
            CharacteristicDefinition(uuid: "A721", properties: .notify, permissions: [], value: .stored([])),
            CharacteristicDefinition(uuid: "A722", properties: .indicate, permissions: [], value: .stored([])),
        ]
    )

    @Test("A notification of an unknown handle, or without the property, is an error that names the handle")
    func notifyingWhatCannotBeNotifiedFails() throws {
        try World.run { world in
            let peripheral = try await world.device("server").openAdapter().peripheral
            let service = try await peripheral.publish([Self.sensor])[0]
            let notified = service.characteristics[0].valueHandle
            let indicated = service.characteristics[1].valueHandle
            try await peripheral.notify([1], of: notified)
            try await peripheral.indicate([1], of: indicated)
            let unknown = BLEError.invalidArgument("attribute 0x0777 is not the value of a published characteristic")
            await #expect(throws: unknown) { try await peripheral.notify([1], of: 0x0777) }
            await #expect(throws: unknown) { try await peripheral.indicate([1], of: 0x0777) }
            await #expect(
                throws: BLEError.notSupported(
                    "the characteristic with value handle \(indicated) does not have the notify property"
                )
            ) { try await peripheral.notify([1], of: indicated) }
            await #expect(
                throws: BLEError.notSupported(
                    "the characteristic with value handle \(notified) does not have the indicate property"
                )
            ) { try await peripheral.indicate([1], of: notified) }
            await peripheral.remove(service)
            await #expect(throws: BLEError.self) { try await peripheral.notify([1], of: notified) }
        }
    }

    @Test("A service that is removed again does not remove the one that has its handles now")
    func removingTwiceKeepsTheServiceWithTheSameHandles() throws {
        try World.run { world in
            let peripheral = try await world.device("server").openAdapter().peripheral
            let first = try await peripheral.publish([Self.sensor])[0]
            await peripheral.remove(first)
            let second = try await peripheral.publish([Self.sensor])[0]
            #expect(second.handle == first.handle && second != first)
            await peripheral.remove(first)
            let handle = second.characteristics[0].valueHandle
            try await peripheral.notify([1], of: handle)
            #expect(await peripheral.value(of: handle) == [])
            await peripheral.remove(second)
            #expect(await peripheral.value(of: handle) == nil)
        }
    }

    @Test("After close(), calls of the server fail with closed")
    func callsAfterCloseFail() throws {
        try World.run { world in
            let adapter = try await world.device("server").openAdapter()
            let service = try await adapter.peripheral.publish([Self.sensor])[0]
            let handle = service.characteristics[0].valueHandle
            await adapter.close()
            let peripheral = adapter.peripheral
            await #expect(throws: BLEError.closed) { _ = try await peripheral.publish([Self.sensor]) }
            await #expect(throws: BLEError.closed) { try await peripheral.notify([1], of: handle) }
            await #expect(throws: BLEError.closed) { try await peripheral.indicate([1], of: handle) }
            await #expect(throws: BLEError.closed) { try await peripheral.setValue([1], of: handle) }
            await #expect(throws: BLEError.closed) { _ = try await peripheral.startAdvertising(advertisement) }
            await #expect(throws: BLEError.closed) { _ = try await peripheral.publishChannel() }
            #expect(await peripheral.clients.isEmpty)
        }
    }
}
