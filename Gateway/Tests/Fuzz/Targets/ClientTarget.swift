import BLE
import ESPHomeProtocol
import Logging
import NIOCore
import NIOEmbedded

@testable import ESPHomeProtocol
@testable import GatewayCore

/// Runs a script against several clients of one gateway without adapters.
///
/// The low three bits of an action select what happens, and the others the client; see ``perform(_:)``.
final class ClientFuzzing {
    private struct Peer {
        let channel: EmbeddedChannel
        let handler: ClientHandler
        var client = FuzzedClient(key: nil)
        /// A copy of the session, by which requests are known before the gateway receives them.
        var preview: APISession
    }

    private static let clientLimit = 3
    private static let peerLimit = 32
    /// The longest advertising data (Vol 4, Part E, 7.8.54). A batch of them is shorter than the longest frame.
    private static let advertisementLength = 1650

    private let loop = EmbeddedEventLoop()
    private let hub: GatewayHub
    private let scanner: Scanner
    private var peers: [Peer] = []
    private var batchNumber: UInt64 = 0

    static func run(_ script: FuzzScript) {
        let fuzzing = ClientFuzzing()
        for step in script.steps {
            guard fuzzing.perform(step) else { break }
            fuzzing.check()
        }
        fuzzing.finish()
    }

    private init() {
        var configuration = GatewayConfiguration()
        configuration.clientLimit = Self.clientLimit
        configuration.logger = Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() }
        scanner = Scanner(adapterCount: 1, mode: .active, eventLoop: loop, logger: configuration.logger)
        let devices = DeviceTable(
            limit: 2,
            adapters: AdapterSet(runners: [], scanner: scanner),
            logger: configuration.logger
        )
        hub = GatewayHub(configuration: configuration, scanner: scanner, devices: devices)
    }

    /// Performs a step; false to end the script.
    private func perform(_ step: FuzzScript.Step) -> Bool {
        let choice = Int(step.action >> 3)
        if peers.isEmpty || step.action & 7 == 0 { connect(choice) }
        let index = choice % max(peers.count, 1)
        guard peers.indices.contains(index) else { return true }
        switch step.action & 7 {
        case 0, 1: return send(step.octets, to: index)
        case 2:
            let type = MessageType(rawValue: step.octets.first.map { UInt16($0) } ?? 0)
            let message = Message(type, payload: ByteBuffer(bytes: step.octets.dropFirst()))
            return send(peers[index].client.frame(message), to: index)
        case 3:
            peers[index].channel.isWritable.toggle()
            peers[index].channel.pipeline.fireChannelWritabilityChanged()
        case 4: loop.advanceTime(by: .seconds(Int64(step.octets.first ?? 1)))
        case 5: peers[index].channel.close(promise: nil)
        case 6:
            var batch = AdvertisementBatch()
            let data = Array(step.octets.prefix(Self.advertisementLength))
            for _ in 0..<min(step.octets.count, AdvertisementBatch.maximumCount) {
                batchNumber += 1
                batch.append(RawAdvertisement(address: batchNumber, rssi: -1, isRandom: true, data: data))
            }
            for peer in peers where batch.count > 0 { peer.handler.send(batch) }
        default: scanner.report(Scanner.AdapterState(rawValue: choice % 6) ?? .idle, of: 0)
        }
        loop.run()
        return true
    }

    private func connect(_ choice: Int) {
        guard peers.count < Self.peerLimit else { return }
        let server = ServerInformation(name: "fuzzed", address: 1, version: "1")
        let session = APISession(server: server, key: nil, now: loop.now)
        let handler = ClientHandler(hub: hub, session: session)
        let channel = EmbeddedChannel(handler: handler, loop: loop)
        guard let address = try? SocketAddress(ipAddress: "192.0.\(choice % 4).1", port: 1) else { return }
        channel.connect(to: address, promise: nil)
        peers.append(Peer(channel: channel, handler: handler, preview: session))
        loop.run()
    }

    /// Sends bytes to the gateway; false for a request that would be answered from another thread, which an embedded
    /// loop does not support.
    private func send(_ octets: [UInt8], to index: Int) -> Bool {
        peers[index].preview.receive(ByteBuffer(bytes: octets), now: loop.now)
        while let effect = peers[index].preview.next() {
            switch effect {
            case .request(.unpair), .request(.clearCache): return false
            default: break
            }
        }
        guard peers[index].channel.isActive else { return true }
        _ = try? peers[index].channel.writeInbound(ByteBuffer(bytes: octets))
        loop.run()
        return true
    }

    private func check() {
        let active = hub.clientStatuses.count
        require(active <= Self.clientLimit + GatewayHub.newcomerLimit, "\(active) clients have places")
        let ended = hub.closedClientCounts.values.reduce(0, +)
        require(active + Int(ended) == peers.count, "\(active) clients and \(ended) ended ones, of \(peers.count)")
        for index in peers.indices {
            while let bytes = try? peers[index].channel.readOutbound(as: ByteBuffer.self) {
                guard bytes.readableBytes > 0 else { continue }
                _ = peers[index].client.read(bytes)
            }
        }
    }

    /// All clients end, and leave nothing behind.
    private func finish() {
        hub.endClients()
        loop.run()
        for peer in peers where peer.channel.isActive { peer.channel.close(promise: nil) }
        loop.run()
        check()
        require(hub.clientStatuses.isEmpty, "clients have places after their ends")
        for peer in peers { _ = try? peer.channel.finish(acceptAlreadyClosed: true) }
    }
}
