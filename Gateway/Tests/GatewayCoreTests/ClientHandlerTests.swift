import BLE
import ESPHomeProtocol
import NIOCore
import NIOEmbedded
import Testing

@testable import ESPHomeProtocol
@testable import GatewayCore

/// The handler of a client's channel, without a network.
struct ClientHandlerTests {
    private let loop = EmbeddedEventLoop()

    private func makeHub() -> GatewayHub {
        let configuration = GatewayConfiguration()
        let scanner = Scanner(adapterCount: 0, mode: .active, eventLoop: loop, logger: configuration.logger)
        let adapters = AdapterSet(runners: [], scanner: scanner)
        let devices = DeviceTable(limit: 1, adapters: adapters, logger: configuration.logger)
        return GatewayHub(configuration: configuration, scanner: scanner, devices: devices)
    }

    private func makeChannel(_ hub: GatewayHub) throws -> (EmbeddedChannel, ClientHandler) {
        let server = ServerInformation(name: "test", address: 1, version: "1")
        let handler = ClientHandler(hub: hub, session: APISession(server: server, key: nil, now: loop.now))
        let channel = EmbeddedChannel(handler: handler, loop: loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.writeInbound(ByteBuffer(bytes: [0, 0, 1]))
        loop.run()
        _ = try channel.readOutbound(as: ByteBuffer.self)
        return (channel, handler)
    }

    private func batch(_ number: UInt64) -> AdvertisementBatch {
        var batch = AdvertisementBatch()
        for _ in 0..<AdvertisementBatch.maximumCount {
            batch.append(RawAdvertisement(address: number, rssi: -1, isRandom: false, data: []))
        }
        return batch
    }

    /// The frames that the handler wrote.
    private func frames(_ channel: EmbeddedChannel) throws -> [Message] {
        var messages: [Message] = []
        while var buffer = try channel.readOutbound(as: ByteBuffer.self) {
            while let message = try PlaintextFraming().decode(from: &buffer) { messages.append(message) }
        }
        return messages
    }

    @Test func slowClientMissesTheOldestAdvertisements() throws {
        let hub = makeHub()
        let (channel, handler) = try makeChannel(hub)
        channel.isWritable = false
        let limit = ClientHandler.unsentAdvertisementLimit / AdvertisementBatch.maximumCount
        for number in 0..<(limit + 10) { handler.send(batch(UInt64(number + 1))) }
        loop.run()
        #expect(try frames(channel).isEmpty)
        #expect(hub.clientStatuses[0].droppedAdvertisementCount == UInt64(10 * AdvertisementBatch.maximumCount))

        channel.isWritable = true
        channel.pipeline.fireChannelWritabilityChanged()
        loop.run()
        let expected = (10..<(limit + 10)).map { batch(UInt64($0 + 1)).message }
        #expect(try frames(channel) == expected)
        #expect(hub.clientStatuses[0].advertisementCount == UInt64(limit * AdvertisementBatch.maximumCount))
        _ = try channel.finish()
    }

    @Test func messagesAreSentToSlowClients() throws {
        let (channel, handler) = try makeChannel(makeHub())
        channel.isWritable = false
        handler.send(batch(1))
        handler.send(Message(.pingRequest))
        loop.run()
        #expect(try frames(channel) == [Message(.pingRequest)])
        _ = try channel.finish()
    }

    @Test func messagesKeepTheirOrder() throws {
        let (channel, handler) = try makeChannel(makeHub())
        let messages = (UInt16(1)..<100).map { handle in
            Message.value(.notifyDataResponse, address: 1, handle: handle, value: [1])
        }
        for message in messages { handler.send(message) }
        loop.run()
        #expect(try frames(channel) == messages)
        _ = try channel.finish()
    }

    @Test func requestsWaitWhileTheClientDoesNotRead() throws {
        let reads = ReadCounter()
        let (channel, _) = try makeChannel(makeHub())
        try channel.pipeline.syncOperations.addHandler(reads, position: .first)
        channel.isWritable = false
        try channel.writeInbound(ByteBuffer(bytes: [0, 0, 7, 0, 0, 7]))
        channel.pipeline.read()
        loop.run()
        #expect(try frames(channel).isEmpty)
        #expect(reads.count == 0)

        channel.isWritable = true
        channel.pipeline.fireChannelWritabilityChanged()
        loop.run()
        #expect(try frames(channel) == [Message(.pingResponse), Message(.pingResponse)])
        #expect(reads.count == 1)
        _ = try channel.finish()
    }

    @Test func clientThatNeverReadsIsUnresponsive() throws {
        let hub = makeHub()
        let (channel, _) = try makeChannel(hub)
        channel.isWritable = false
        try channel.writeInbound(ByteBuffer(bytes: [0, 0, 7]))
        loop.advanceTime(by: APISession.pingInterval)
        #expect(hub.closedClientCounts.isEmpty)
        loop.advanceTime(by: APISession.silenceLimit)
        #expect(hub.closedClientCounts == ["unresponsive": 1])
    }

    @Test func clientWhoseRequestsWaitIsNotUnresponsive() throws {
        let hub = makeHub()
        let (channel, _) = try makeChannel(hub)
        var request = ByteBuffer()
        PlaintextFraming().encode(Message(.subscribeConnectionsFreeRequest), into: &request)
        try channel.writeInbound(request)
        let subscriber = hub.devices.state.withLock { $0.subscribers.first }
        let client = try #require(subscriber)
        for _ in 0..<512 { client.beginRequest() }
        channel.pipeline.read()
        for _ in 0..<10 { loop.advanceTime(by: APISession.pingInterval) }
        #expect(hub.closedClientCounts.isEmpty)

        // The silence counts from the time when the client is read again.
        loop.advanceTime(by: APISession.pingInterval - .seconds(1))
        client.finishRequests(512)
        loop.advanceTime(by: APISession.silenceLimit - .seconds(1))
        #expect(hub.closedClientCounts.isEmpty)
        loop.advanceTime(by: .seconds(1))
        #expect(hub.closedClientCounts == ["unresponsive": 1])
    }

    /// Counts the reads that reach the socket.
    private final class ReadCounter: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        var count = 0

        func read(context: ChannelHandlerContext) {
            count += 1
            context.read()
        }
    }

    @Test func silentClientIsDisconnected() throws {
        let hub = makeHub()
        let server = ServerInformation(name: "test", address: 1, version: "1")
        let session = APISession(server: server, key: nil, now: loop.now)
        let channel = EmbeddedChannel(handler: ClientHandler(hub: hub, session: session), loop: loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        #expect(hub.clientStatuses.count == 1)
        loop.advanceTime(by: APISession.handshakeTimeout)
        #expect(hub.clientStatuses.isEmpty)
        #expect(hub.closedClientCounts == ["handshake_timeout": 1])
    }

    @Test func readingStopsWhileManyRequestsAreUnfinished() throws {
        let hub = makeHub()
        let (channel, handler) = try makeChannel(hub)
        let client = hub.makeClient(networkAddress: "test", handler: handler, eventLoop: loop)
        for _ in 0..<511 { client.beginRequest() }
        #expect(!client.hasTooManyRequests)
        client.beginRequest()
        #expect(client.hasTooManyRequests)
        client.finishRequests(256)
        #expect(!client.hasTooManyRequests)
        _ = try channel.finish()
    }
}
