import BLE
import GatewayTestSupport
import NIOCore
import NIOEmbedded
import Testing

@testable import ESPHomeProtocol
@testable import GatewayCore

/// The places of clients that have not greeted, and of those that have.
struct ClientPlacesTests {
    private let loop = EmbeddedEventLoop()
    private let recorder = LogRecorder()
    private let hub: GatewayHub

    init() {
        var configuration = GatewayConfiguration()
        configuration.clientLimit = 2
        configuration.logger = recorder.logger
        let scanner = Scanner(adapterCount: 0, mode: .active, eventLoop: loop, logger: configuration.logger)
        let adapters = AdapterSet(runners: [], scanner: scanner)
        let devices = DeviceTable(limit: 1, adapters: adapters, logger: configuration.logger)
        hub = GatewayHub(configuration: configuration, scanner: scanner, devices: devices)
    }

    private func connect(from address: String = "192.0.2.1", key: NoiseKey? = nil) throws -> EmbeddedChannel {
        let server = ServerInformation(name: "test", address: 1, version: "1")
        let handler = ClientHandler(hub: hub, session: APISession(server: server, key: key, now: loop.now))
        let channel = EmbeddedChannel(handler: handler, loop: loop)
        channel.remoteAddress = try SocketAddress(ipAddress: address, port: 1)
        try channel.connect(to: SocketAddress(ipAddress: address, port: 1)).wait()
        loop.run()
        return channel
    }

    private func greet(_ channel: EmbeddedChannel) throws {
        try channel.writeInbound(ByteBuffer(bytes: [0, 0, 1]))
        loop.run()
    }

    @Test func oldestClientWithoutHelloIsDisplaced() throws {
        let channels = try (0..<GatewayHub.newcomerLimit).map { _ in try connect() }
        #expect(channels.map(\.isActive) == Array(repeating: true, count: channels.count))
        let newest = try connect()
        #expect(channels.map(\.isActive) == [false] + Array(repeating: true, count: channels.count - 1))
        #expect(newest.isActive)
        #expect(hub.clientStatuses.count == GatewayHub.newcomerLimit)
        #expect(hub.closedClientCounts == ["displaced": 1])
    }

    @Test func clientsThatGreetedKeepTheirPlaces() throws {
        let greeted = try connect()
        try greet(greeted)
        for _ in 0..<(GatewayHub.newcomerLimit * 3) { _ = try connect() }
        #expect(greeted.isActive)
        #expect(hub.clientStatuses.count == GatewayHub.newcomerLimit + 1)
        let last = try connect()
        try greet(last)
        #expect(last.isActive)
    }

    @Test func clientsOfOneAddressDoNotDisplaceOthers() throws {
        let other = try connect(from: "192.0.2.2")
        for _ in 0..<(GatewayHub.newcomerLimit * 2) { _ = try connect() }
        #expect(other.isActive)
        try greet(other)
        #expect(other.isActive)
    }

    /// All machines of a segment have the same prefix.
    @Test(arguments: ["fe80::2", "2001:db8::2"])
    func clientsOfOneAddressDoNotDisplaceOthersOfTheSameNetwork(address: String) throws {
        let other = try connect(from: address)
        for _ in 0..<(GatewayHub.newcomerLimit * 2) { _ = try connect(from: address.replacing("::2", with: "::1")) }
        #expect(other.isActive)
        try greet(other)
        #expect(other.isActive)
    }

    @Test func clientsBeyondTheLimitAreRefusedAfterHello() throws {
        let channels = try (0..<3).map { _ in try connect() }
        for channel in channels { try greet(channel) }
        #expect(channels.map(\.isActive) == [true, true, false])
        #expect(hub.closedClientCounts == ["too_many_clients": 1])
    }

    @Test func endsOfClientsWithoutAPlaceAreLoggedOncePerAddressAndReason() throws {
        for address in ["192.0.2.1", "192.0.2.2"] {
            for _ in 0..<50 {
                let channel = try connect(from: address)
                try channel.writeInbound(ByteBuffer(bytes: [0xFF]))
                loop.run()
            }
        }
        #expect(hub.closedClientCounts == ["malformed_frame": 100])
        let end = "client disconnected: a frame begins with 255"
        #expect(recorder.messages(.info) == [end, end])
        #expect(recorder.messages(.debug).count { $0 == end } == 98)
        // Another reason.
        for _ in 0..<2 {
            try connect().writeInbound(ByteBuffer(bytes: [0, 0, 9]))
            loop.run()
        }
        #expect(recorder.messages(.info).count == 3)
    }

    @Test func endsOfClientsThatHadAPlaceAreLogged() throws {
        for _ in 0..<3 {
            let channel = try connect()
            try greet(channel)
            // A request to disconnect.
            try channel.writeInbound(ByteBuffer(bytes: [0, 0, 5]))
            loop.run()
            #expect(!channel.isActive)
        }
        #expect(hub.closedClientCounts == ["client_disconnected": 3])
        let end = "client disconnected: the client disconnected"
        #expect(recorder.messages(.info) == [end, end, end])
    }

    /// Received bytes do not extend the time limit of the handshake.
    @Test(arguments: [nil, NoiseKey(bytes: [UInt8](repeating: 1, count: 32))])
    func placeBeforeHelloHasATimeLimit(key: NoiseKey?) throws {
        let channel = try connect(key: key)
        let bytes: [UInt8] = key == nil ? [0, 100, 1] : [1, 0, 100]
        for byte in bytes + [UInt8](repeating: 0, count: 6) {
            loop.advanceTime(by: .seconds(1))
            try channel.writeInbound(ByteBuffer(bytes: [byte]))
        }
        #expect(channel.isActive)
        loop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive)
        #expect(hub.clientStatuses.isEmpty)
        #expect(hub.closedClientCounts == ["handshake_timeout": 1])
    }
}

struct RefusalLogTests {
    private let start = ContinuousClock.now

    @Test func endIsLoggedAgainAfterAMinuteWithTheNumberOfTheOthers() {
        var log = RefusalLog()
        #expect(log.record("192.0.2.1", "wrong_key", at: start) == 0)
        for second in 1..<60 { #expect(log.record("192.0.2.1", "wrong_key", at: start + .seconds(second)) == nil) }
        #expect(log.record("192.0.2.1", "displaced", at: start + .seconds(30)) == 0)
        #expect(log.record("192.0.2.2", "wrong_key", at: start + .seconds(30)) == 0)
        #expect(log.record("192.0.2.1", "wrong_key", at: start + .seconds(60)) == 59)
        #expect(log.record("192.0.2.1", "wrong_key", at: start + .seconds(61)) == nil)
        #expect(log.record("192.0.2.1", "wrong_key", at: start + .seconds(120)) == 1)
    }

    @Test func endsThatBelongToNoEntryAreCountedInTheNextLine() {
        var log = RefusalLog()
        // The second end of each address is not logged.
        for number in 0..<RefusalLog.limit {
            #expect(log.record("2001:db8::\(number)", "displaced", at: start) == 0)
            #expect(log.record("2001:db8::\(number)", "displaced", at: start) == nil)
        }
        // The limit is reached.
        for _ in 0..<3 { #expect(log.record("192.0.2.1", "displaced", at: start) == nil) }
        #expect(log.record("192.0.2.1", "displaced", at: start + .seconds(60)) == RefusalLog.limit + 3)
        #expect(log.record("192.0.2.2", "displaced", at: start + .seconds(60)) == 0)
    }

    @Test func numberOfLinesInAMinuteIsLimited() {
        var log = RefusalLog()
        func count(at time: ContinuousClock.Instant) -> Int {
            (0..<1000).count { log.record("2001:db8::\($0)", "displaced", at: time) != nil }
        }
        #expect(count(at: start) == RefusalLog.limit)
        #expect(count(at: start + .seconds(59)) == 0)
        #expect(count(at: start + .seconds(60)) == RefusalLog.limit)
    }
}
