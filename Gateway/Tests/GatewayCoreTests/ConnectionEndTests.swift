import BLE
import ESPHomeMessages
import NIOCore
import NIOEmbedded
import Testing

@testable import ESPHomeProtocol
@testable import GatewayCore

/// A connection that has not ended, and the wait for it.
@Suite(.timeLimit(.minutes(2)))
struct ConnectionEndTests {
    /// Starts a client that is connected to the device.
    private func connect(_ world: TableWorld) async throws -> Client {
        let client = try await world.makeClient()
        world.table.connect(world.device.address.value, isRandom: true, usesCache: false, for: client)
        while !world.table.statuses.contains(where: { $0.isConnected }) { await Task.yield() }
        return client
    }

    @Test func waitForEndsLastsUntilTheLastConnectionHasEnded() async throws {
        try await withTable(adapterCount: 1) { world in
            let table = world.table
            #expect(await table.waitForEnds(atMost: .seconds(3600)), "there is no connection")
            let client = try await connect(world)
            #expect(await !table.waitForEnds(atMost: .zero))
            async let ends = table.waitForEnds(atMost: .seconds(3600))
            table.remove(client)
            let haveEnded = await ends
            #expect(haveEnded)
            #expect(table.statuses.isEmpty)
        }
    }

    @Test func gatewayEndsAfterItsConnections() async throws {
        func expectNoConnection(_ world: World) async {
            let connections = await world.gateway.status.connections
            #expect(connections.isEmpty)
        }
        try await withGateway(linkEndTimeout: .zero, whenStopped: expectNoConnection) { world in
            let client = try await world.client()
            for device in world.devices { try await client.connect(device.address.value) }
        }
    }

    /// Requests a connection twice by a client in memory, which then goes.
    ///
    /// - Returns: what the client was sent.
    private func messagesAfterTwoRequests(in world: TableWorld) throws -> [ESPHomeProtocol.Message] {
        let loop = EmbeddedEventLoop()
        let hub = GatewayHub(
            configuration: GatewayConfiguration(name: "test"),
            scanner: world.scanner,
            devices: world.table
        )
        let server = ServerInformation(name: "test", address: 1, version: "1")
        let handler = ClientHandler(hub: hub, session: APISession(server: server, key: nil, now: loop.now))
        let channel = EmbeddedChannel(handler: handler, loop: loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        var bytes = ByteBuffer(bytes: [0, 0, 1])
        let request = APIClient.request(world.device.address.value, .connectV3WithoutCache)
        for _ in 0..<2 { PlaintextFraming().encode(Message(.deviceRequest, request), into: &bytes) }
        try channel.writeInbound(bytes)
        loop.run()
        var messages: [ESPHomeProtocol.Message] = []
        while var buffer = try channel.readOutbound(as: ByteBuffer.self) {
            while let message = try PlaintextFraming().decode(from: &buffer) { messages.append(message) }
        }
        _ = try channel.finish()
        return messages
    }

    /// Both requests wait for the end of a connection whose client has gone, so neither has an outcome yet.
    @Test func secondRequestOfAClientThatWaitsIsNotRefused() async throws {
        try await withTable(adapterCount: 1) { world in
            let client = try await connect(world)
            // The client has gone, and its connection has not ended yet.
            client.hasEnded.store(true, ordering: .relaxed)
            #expect(try messagesAfterTwoRequests(in: world).map(\.type) == [.helloResponse])
            world.table.remove(client)
            await world.table.waitForEnds(atMost: .seconds(3600))
            #expect(world.table.statuses.isEmpty)
        }
    }

    @Test func secondRequestOfAClientThatWaitsReplacesTheFirst() async throws {
        try await withTable(adapterCount: 1) { world in
            let (table, address) = (world.table, world.device.address.value)
            let client = try await connect(world)
            client.hasEnded.store(true, ordering: .relaxed)
            let other = try await world.makeClient()
            // Only the second request has the type of the device's address.
            table.connect(address, isRandom: false, usesCache: true, for: other)
            table.connect(address, isRandom: true, usesCache: false, for: other)
            let waiting = table.state.withLock { $0.waiting[address] }
            #expect(waiting?.client === other)
            try #require(waiting?.isRandom == true && waiting?.usesCache == false)
            table.remove(client)
            while table.state.withLock({ $0.connections.first { $0.client === other }?.isConnected != true }) {
                await Task.yield()
            }
            table.remove(other)
            await table.waitForEnds(atMost: .seconds(3600))
        }
    }
}
