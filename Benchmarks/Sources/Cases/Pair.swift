import BLE
import BluetoothTesting
import CCounters

/// A client and a server, each a whole host. Their controllers only forward packets.
struct Pair: Sendable {
    static let lengths = [20, 244, 512]

    let radio: NullRadio
    let server: Adapter
    let client: Adapter
    /// The client's links to the server.
    let peers: [RemotePeripheral]
    /// The values, by their lengths.
    let handles: [Int: AttributeHandle]
    private let advertising: AdvertisingSet

    var peer: RemotePeripheral { peers[0] }

    /// - Parameter bearers: the number of enhanced bearers. If there are some, there is one link, which is paired.
    init(_ radio: NullRadio, links: Int = 1, bearers: Int = 0, services: [ServiceDefinition] = []) async throws {
        self.radio = radio
        let configure: (inout Adapter.Configuration) -> Void = {
            $0.mtu = 517
            $0.enhancedBearerLimit = bearers
            if bearers > 0 { $0.security.justWorks = .always }
        }
        server = try await radio.openAdapter(configure)
        client = try await radio.openAdapter(configure)
        let measured = ServiceDefinition(
            uuid: "FFE0",
            characteristics: Pair.lengths.enumerated().map { index, length in
                CharacteristicDefinition(
                    uuid: BluetoothUUID(UInt16(0xFFE1 + index)),
                    properties: [.read, .write, .writeWithoutResponse, .notify],
                    permissions: [.read, .write],
                    value: .stored([UInt8](repeating: UInt8(index), count: length))
                )
            }
        )
        let published = try await server.peripheral.publish([measured] + services)
        handles = Dictionary(
            uniqueKeysWithValues: zip(Pair.lengths, published[0].characteristics.map(\.valueHandle))
        )
        advertising = try await server.peripheral.startAdvertising(AdvertisementConfiguration())
        var peers: [RemotePeripheral] = []
        for number in 0..<links {
            // Only one link can have the server's own address, with which the hosts can pair.
            var address = radio.address(ofPeripheral: number)
            if bearers > 0 { address = try await server.information.identityAddress }
            peers.append(try await client.central.connect(to: address))
        }
        self.peers = peers
        // The MTU is exchanged with the first request.
        for peer in peers { _ = try await peer.read(handles[20] ?? 1) }
        guard bearers > 0 else { return }
        for peer in peers {
            try await peer.pair()
            await radio.settle()
            let count = try await peer.linkInformation.enhancedBearerMTUs.count
            guard count == bearers else { throw MissingResult("\(bearers) enhanced bearers, but \(count)") }
        }
    }
}

extension BenchmarkCase {
    /// Returns a case for the work of two hosts in one thread.
    static func pair(
        _ name: String,
        operations: Int,
        countedOperations: Int? = nil,
        budget: Budget = Budget(),
        links: Int = 1,
        bearers: Int = 0,
        services: [ServiceDefinition] = [],
        body: @escaping @Sendable (_ pair: Pair, _ operations: Int, _ meter: Meter) async throws -> Void
    ) -> BenchmarkCase {
        BenchmarkCase(name, operations: operations, countedOperations: countedOperations, budget: budget) {
            operations,
            meter in
            let radio = NullRadio()
            try radio.run(limit: .seconds(86_400)) {
                let pair = try await Pair(radio, links: links, bearers: bearers, services: services)
                try await body(pair, operations, meter)
            }
            radio.close()
        }
    }
}
