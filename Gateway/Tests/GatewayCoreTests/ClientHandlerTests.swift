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

    // MARK: Many requests

    private let slotRequest = ClientHandlerTests.frame(.subscribeConnectionsFreeRequest)

    private static func frame(_ type: MessageType) -> ByteBuffer {
        var bytes = ByteBuffer()
        PlaintextFraming().encode(Message(type), into: &bytes)
        return bytes
    }

    /// Starts a client with so many unfinished requests that its further ones wait.
    private func makeBusyClient(_ hub: GatewayHub) throws -> (EmbeddedChannel, Client) {
        let (channel, _) = try makeChannel(hub)
        try channel.writeInbound(slotRequest)
        loop.run()
        _ = try frames(channel)
        let subscriber = hub.devices.state.withLock { $0.subscribers.first }
        let client = try #require(subscriber)
        for _ in 0..<512 { client.beginRequest() }
        return (channel, client)
    }

    /// Sends so many requests that the channel is not read any more.
    private func sendRequestsThatWait(to channel: EmbeddedChannel) throws {
        for _ in 0..<WaitingMessages.countLimit { try channel.writeInbound(slotRequest) }
        channel.pipeline.read()
    }

    @Test func pingsAreAnsweredWhileRequestsWait() throws {
        let hub = makeHub()
        let (channel, client) = try makeBusyClient(hub)
        let reads = ReadCounter()
        try channel.pipeline.syncOperations.addHandler(reads, position: .first)
        try channel.writeInbound(slotRequest)
        try channel.writeInbound(Self.frame(.pingRequest))
        channel.pipeline.read()
        loop.run()
        #expect(try frames(channel) == [Message(.pingResponse)])
        #expect(reads.count == 1)

        client.finishRequests(512)
        loop.run()
        #expect(try frames(channel).map(\.type) == [.connectionsFreeResponse])
        _ = try channel.finish()
    }

    @Test func requestsThatWaitAreHandledBeforeTheClientDisconnects() throws {
        let hub = makeHub()
        let (channel, _) = try makeBusyClient(hub)
        for type in [.deviceInfoRequest, .getTimeRequest, .disconnectRequest] as [MessageType] {
            try channel.writeInbound(Self.frame(type))
        }
        loop.run()
        let expected: [MessageType] = [.deviceInfoResponse, .getTimeResponse, .disconnectResponse]
        #expect(try frames(channel).map(\.type) == expected)
        #expect(hub.closedClientCounts == ["client_disconnected": 1])
    }

    @Test func readingStopsWhileTooManyRequestsWait() throws {
        let hub = makeHub()
        let (channel, client) = try makeBusyClient(hub)
        let reads = ReadCounter()
        try channel.pipeline.syncOperations.addHandler(reads, position: .first)
        try sendRequestsThatWait(to: channel)
        try channel.writeInbound(Self.frame(.pingRequest))
        loop.run()
        #expect(try frames(channel).isEmpty)
        #expect(reads.count == 0)

        client.finishRequests(512)
        loop.run()
        let types = try frames(channel).map(\.type)
        #expect(types.count { $0 == .connectionsFreeResponse } == WaitingMessages.countLimit)
        #expect(types.contains(.pingResponse))
        #expect(reads.count == 1)
        _ = try channel.finish()
    }

    @Test func pingIsAnsweredWhenSomeOfTooManyRequestsAreFinished() throws {
        let (channel, client) = try makeBusyClient(makeHub())
        let reads = ReadCounter()
        try channel.pipeline.syncOperations.addHandler(reads, position: .first)
        try sendRequestsThatWait(to: channel)
        try channel.writeInbound(Self.frame(.pingRequest))
        client.finishRequests(64)
        loop.run()
        #expect(try frames(channel).contains(Message(.pingResponse)))
        #expect(reads.count == 1)
        _ = try channel.finish()
    }

    @Test func timerResumesReading() throws {
        let (channel, client) = try makeBusyClient(makeHub())
        let reads = ReadCounter()
        try channel.pipeline.syncOperations.addHandler(reads, position: .first)
        try sendRequestsThatWait(to: channel)
        // One request fewer than the limit resumes nothing by itself.
        client.finishRequests(1)
        loop.run()
        #expect(reads.count == 0)
        loop.advanceTime(by: APISession.pingInterval)
        #expect(reads.count == 1)
        _ = try channel.finish()
    }

    @Test func clientThatIsNotReadIsNotUnresponsive() throws {
        let hub = makeHub()
        let (channel, client) = try makeBusyClient(hub)
        try sendRequestsThatWait(to: channel)
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

    @Test func silentClientWithManyRequestsIsUnresponsive() throws {
        let hub = makeHub()
        let (channel, _) = try makeBusyClient(hub)
        channel.pipeline.read()
        loop.advanceTime(by: APISession.pingInterval)
        #expect(try frames(channel) == [Message(.pingRequest)])
        loop.advanceTime(by: APISession.silenceLimit)
        #expect(hub.closedClientCounts == ["unresponsive": 1])
    }

    // MARK: Outputs

    @Test func outputsOfOneTurnAreFlushedTogether() throws {
        let (channel, handler) = try makeChannel(makeHub())
        let flushes = FlushCounter()
        try channel.pipeline.syncOperations.addHandler(flushes, position: .first)
        let values = (UInt16(1)...3).map { Message.value(.readResponse, address: 1, handle: $0, value: [1]) }
        handler.send([.message(values[0]), .advertisements([batch(1), batch(2)]), .message(values[1])])
        // They were flushed without another task of the event loop.
        #expect(flushes.count == 1)
        #expect(try frames(channel) == [values[0], batch(1).message, batch(2).message, values[1]])
        handler.send(values[2])
        handler.send([.message(values[0])])
        #expect(flushes.count == 1)
        loop.run()
        #expect(flushes.count == 2)
        #expect(try frames(channel) == [values[2], values[0]])
        _ = try channel.finish()
    }

    @Test func messagesOfAClientKeepTheirOrder() throws {
        let hub = makeHub()
        let (channel, handler) = try makeChannel(hub)
        let client = hub.makeClient(networkAddress: "test", handler: handler, eventLoop: loop)
        let values = (UInt16(1)...3).map { Message.value(.readResponse, address: 1, handle: $0, value: [1]) }
        client.send(values[0])
        client.send([batch(1)])
        client.send(values[1])
        loop.run()
        client.send(values[2])
        loop.run()
        #expect(try frames(channel) == [values[0], batch(1).message, values[1], values[2]])
        _ = try channel.finish()
    }

    @Test func endOfASessionKeepsItsPlaceAmongMessages() throws {
        let hub = makeHub()
        let (channel, handler) = try makeChannel(hub)
        let client = hub.makeClient(networkAddress: "test", handler: handler, eventLoop: loop)
        let values = (UInt16(1)...2).map { Message.value(.readResponse, address: 1, handle: $0, value: [1]) }
        client.send(values[0])
        client.end(.serverStopped)
        client.send(values[1])
        loop.run()
        #expect(try frames(channel) == [values[0], Message(.disconnectRequest)])
    }

    @Test func outputsThatFillTheChannelAreFlushedBeforeTheNext() throws {
        let hub = makeHub()
        let (channel, handler) = try makeChannel(hub)
        let buffer = SmallBuffer(channel)
        try channel.pipeline.syncOperations.addHandler(buffer, position: .first)
        let values = (UInt16(1)...2).map { Message.value(.readResponse, address: 1, handle: $0, value: [1]) }
        handler.send([.message(values[0]), .message(values[1]), .advertisements([batch(1)])])
        // The batch is not kept for later.
        #expect(try frames(channel) == [values[0], values[1], batch(1).message])
        #expect(buffer.flushCount == 2)
        _ = try channel.finish()
    }

    /// Makes a channel not writable after two writes, until it is flushed.
    private final class SmallBuffer: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let channel: EmbeddedChannel
        private var writeCount = 0
        private(set) var flushCount = 0

        init(_ channel: EmbeddedChannel) { self.channel = channel }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            writeCount += 1
            if writeCount == 2 { channel.isWritable = false }
            context.write(data, promise: promise)
        }

        func flush(context: ChannelHandlerContext) {
            flushCount += 1
            writeCount = 0
            channel.isWritable = true
            context.flush()
        }
    }

    private final class FlushCounter: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        var count = 0

        func flush(context: ChannelHandlerContext) {
            count += 1
            context.flush()
        }
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

    @Test func modeOfAClientOutlivesAConnectionThatHasNotGreeted() throws {
        let hub = makeHub()
        let (channel, _) = try makeChannel(hub)
        try channel.writeInbound(Self.frame(.scannerSetModeRequest))
        #expect(hub.scanner.mode == .passive)
        let server = ServerInformation(name: "test", address: 1, version: "1")
        let session = APISession(server: server, key: nil, now: loop.now)
        let other = EmbeddedChannel(handler: ClientHandler(hub: hub, session: session), loop: loop)
        try other.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 2)).wait()
        _ = try other.finish()
        #expect(hub.closedClientCounts == ["connection_lost": 1])
        #expect(hub.scanner.mode == .passive)
        _ = try channel.finish()
        #expect(hub.scanner.mode == .active)
    }

    @Test func clientHasTooManyRequestsFromTheLimitOn() throws {
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
