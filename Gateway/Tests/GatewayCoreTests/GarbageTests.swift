import BLE
import NIOCore
import NIOEmbedded
import Testing

@testable import ESPHomeProtocol
@testable import GatewayCore

/// Clients that break the protocol are disconnected with a counted reason, and others are not affected.
struct GarbageTests {
    private let loop = EmbeddedEventLoop()
    private let hub: GatewayHub

    init() {
        let configuration = GatewayConfiguration()
        let scanner = Scanner(adapterCount: 0, mode: .active, eventLoop: loop, logger: configuration.logger)
        let adapters = AdapterSet(runners: [], scanner: scanner)
        let devices = DeviceTable(limit: 1, adapters: adapters, logger: configuration.logger)
        hub = GatewayHub(configuration: configuration, scanner: scanner, devices: devices)
    }

    private func connect(key: NoiseKey? = nil) throws -> EmbeddedChannel {
        let server = ServerInformation(name: "test", address: 1, version: "1")
        let handler = ClientHandler(hub: hub, session: APISession(server: server, key: key, now: loop.now))
        let channel = EmbeddedChannel(handler: handler, loop: loop)
        try channel.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 1)).wait()
        return channel
    }

    private func send(_ bytes: [UInt8], to channel: EmbeddedChannel) throws {
        try channel.writeInbound(ByteBuffer(bytes: bytes))
        loop.run()
    }

    /// Fails unless the client is closed for a reason while another one is served.
    private func expectClosed(_ bytes: [UInt8], key: NoiseKey?, label: String) throws {
        let other = try connect()
        try send([0, 0, 1], to: other)
        let channel = try connect(key: key)
        try send(bytes, to: channel)
        #expect(!channel.isActive)
        #expect(hub.closedClientCounts == [label: 1])
        #expect(hub.clientStatuses.count == 1)
        while try other.readOutbound(as: ByteBuffer.self) != nil {}
        try send([0, 0, 7], to: other)
        #expect(try other.readOutbound(as: ByteBuffer.self) == ByteBuffer(bytes: [0, 0, 8]))
    }

    @Test(
        arguments: [
            ([0xFF, 0xFF, 0xFF], "malformed_frame"),
            ([0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], "malformed_frame"),
            ([0, 0xFF, 0xFF, 0x7F, 1], "oversized_frame"),
            ([0, 0, 9], "request_before_hello"),
            ([0, 1, 1, 0xFF], "undecodable_message"),
            ([0, 0, 1, 0, 1, 73, 0xFF], "undecodable_message"),
            ([0, 0, 1, 0, 1, 0xC8, 0x01, 5, 0xFF], "malformed_frame"),
        ] as [([UInt8], String)]
    )
    func withoutEncryption(bytes: [UInt8], label: String) throws {
        try expectClosed(bytes, key: nil, label: label)
    }

    @Test(
        arguments: [
            ([0xFF, 0xFF, 0xFF], "malformed_frame"),
            ([0, 0, 1], "client_without_encryption"),
            ([1, 0xFF, 0xFF], "oversized_frame"),
            ([1, 0, 0, 1, 0, 3, 0, 7, 7], "malformed_handshake"),
            ([1, 0, 0, 1, 0, 49, 0] + [UInt8](repeating: 7, count: 48), "wrong_key"),
        ] as [([UInt8], String)]
    )
    func beforeAndInTheHandshake(bytes: [UInt8], label: String) throws {
        try expectClosed(bytes, key: NoiseKey(bytes: [UInt8](repeating: 1, count: 32)), label: label)
    }
}
