import BLE
import ESPHomeMessages
import ESPHomeProtocol
import Testing

@testable import GatewayCore

/// Requests that a client sends behind a disconnection, or that wait when the connection ends.
@Suite(.timeLimit(.minutes(2)))
struct RequestsBehindTheEndTests {
    private static func requests(
        _ address: UInt64,
        _ types: [ESPHomeBluetoothDeviceRequestType]
    ) -> [ESPHomeBluetoothDeviceRequest] {
        types.map { APIClient.request(address, $0) }
    }

    /// Returns the messages to the client until the connection has ended and another one was made, which waits for
    /// changes of the bond.
    private func messagesAtTheEnd(
        of address: UInt64,
        to client: APIClient
    ) async throws -> [ESPHomeProtocol.Message] {
        var messages = try await client.messages(untilConnected: false, address)
        try await client.send(.deviceRequest, APIClient.request(address, .connectV3WithoutCache))
        messages += try await client.messages(untilConnected: true, address)
        return messages
    }

    private func unpairings(in messages: [ESPHomeProtocol.Message]) throws -> [Bool] {
        try messages.filter { $0.type == .unpairingResponse }
            .map { try $0.decode(as: ESPHomeBluetoothDeviceUnpairingResponse.self).success }
    }

    /// Adds a characteristic to a device whose reads are not answered.
    ///
    /// - Returns: the handle of its value.
    private func publishSilentValue(on device: Device) async throws -> UInt16 {
        let service = ServiceDefinition(
            uuid: "9F3D0004-5C3A-4F8E-9A52-0D4A1E6C7B11",
            characteristics: [
                CharacteristicDefinition(uuid: "2A6F", properties: .read, permissions: .read, value: .handled)
            ]
        )
        let published = try await device.adapter.peripheral.publish([service]) { _, _ in
            // The end of the link cancels this.
            try await Task.sleep(for: .seconds(3600))
            return []
        }
        return published[0].characteristics[0].valueHandle.rawValue
    }

    /// Connects and pairs a device, reads a value that it does not send, then disconnects and unpairs without waiting.
    private func sendUnpairingBehindASlowRead(of device: Device, by client: APIClient) async throws {
        let address = device.address.value
        let handle = try await publishSilentValue(on: device)
        try await client.connect(address)
        try #require(try await client.pair(address))
        try await client.sendRead(address, handle)
        try await client.send(.deviceRequest, together: Self.requests(address, [.disconnect, .unpair]))
    }

    @Test func unpairAndClearCacheBehindADisconnectionArePerformed() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let address = world.devices[0].address.value
            try await client.connect(address)
            try #require(try await client.pair(address))
            let requests = Self.requests(address, [.disconnect, .unpair, .clearCache])
            try await client.send(.deviceRequest, together: requests)
            let messages = try await messagesAtTheEnd(of: address, to: client)
            #expect(try unpairings(in: messages) == [true])
            #expect(messages.count { $0.type == .clearCacheResponse } == 1)
            #expect(await world.adapter.bonds().isEmpty)
        }
    }

    @Test func requestsBehindASlowReadAndADisconnectionAreAnsweredOnce() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let address = world.devices[0].address.value
            try await sendUnpairingBehindASlowRead(of: world.devices[0], by: client)
            let messages = try await messagesAtTheEnd(of: address, to: client)
            #expect(try unpairings(in: messages) == [true])
            #expect(messages.count { $0.type == .errorResponse } == 1)
            // The end of the connection, and the next connection.
            #expect(messages.count { $0.type == .deviceConnectionResponse } == 2)
            #expect(await world.adapter.bonds().isEmpty)
        }
    }

    @Test func readBehindADisconnectionIsRefused() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let device = world.devices[0]
            let address = device.address.value
            let handle = try await publishSilentValue(on: device)
            try await client.connect(address)
            try await client.sendRead(address, handle)
            try await client.send(.deviceRequest, APIClient.request(address, .disconnect))
            try await client.sendRead(address, device.value)
            let error = try await client.next(.errorResponse, as: ESPHomeBluetoothGATTErrorResponse.self)
            #expect(error.handle == UInt32(device.value))
            #expect(error.error == -1)
        }
    }

    @Test func unpairOfAClientThatHasGoneIsPerformed() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let address = world.devices[0].address.value
            try await sendUnpairingBehindASlowRead(of: world.devices[0], by: client)
            // The requests before the ping were received.
            try await client.send(.pingRequest)
            _ = try await client.next(.pingResponse)
            try await client.close()
            let other = try await world.client()
            while try await !other.requestConnection(address).connected {}
            #expect(await world.adapter.bonds().isEmpty)
        }
    }

    /// The request waits in the session, because the client has too many that are not finished.
    @Test func unpairThatWaitsIsPerformedAlthoughTheClientDisconnects() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let address = world.devices[0].address.value
            var read = ESPHomeBluetoothGATTReadRequest()
            read.address = address
            read.handle = UInt32(try await publishSilentValue(on: world.devices[0]))
            try await client.connect(address)
            try #require(try await client.pair(address))
            try await client.send(.readRequest, together: Array(repeating: read, count: 512))
            try await client.send(.deviceRequest, APIClient.request(address, .unpair))
            try await client.send(.disconnectRequest)
            _ = try await client.next(.disconnectResponse)
            let other = try await world.client()
            while try await !other.requestConnection(address).connected {}
            #expect(await world.adapter.bonds().isEmpty)
        }
    }

    @Test func requestsAtTheEndAreFinishedOnce() async throws {
        try await withTable(adapterCount: 1) { world in
            let (table, address) = (world.table, world.device.address.value)
            let client = try await world.makeClient()
            table.connect(address, isRandom: true, usesCache: false, for: client)
            while !table.statuses.contains(where: { $0.isConnected }) { await Task.yield() }
            let connection = table.state.withLock { $0.connections.first }
            let services = try #require(connection).services
            table.perform(.getServices, on: address, for: client)
            while services.services(of: address) == nil { await Task.yield() }
            table.perform(.pair, on: address, for: client)
            table.disconnect(address, for: client)
            for operation in [.unpair, .clearCache, .getServices, .read(3)] as [DeviceOperation] {
                table.perform(operation, on: address, for: client)
            }
            while table.state.withLock({ !$0.connections.isEmpty || !$0.changes.isEmpty }) { await Task.yield() }
            #expect(await world.adapters[0].bonds().isEmpty)
            #expect(services.services(of: address) == nil)
            // No request is unfinished, so there is room for all but one of 512.
            for _ in 0..<511 { client.beginRequest() }
            #expect(!client.hasTooManyRequests)
            client.beginRequest()
            #expect(client.hasTooManyRequests)
        }
    }
}
