import BLE
import BluetoothTesting

extension BenchmarkCase {
    /// Reads by five tasks at the same time, each of its own value: on the fixed channel, and on enhanced bearers
    /// besides.
    static var enhancedBearers: [BenchmarkCase] {
        [0, 1, 5].map { count in
            pair("eatt/reads-of-five-tasks/bearers-\(count)", operations: 50_000, bearers: count, services: [service]) {
                pair,
                operations,
                meter in
                let values = try await pair.peer.discoverAll().first { $0.uuid == service.uuid }?.characteristics ?? []
                guard values.count == 5 else { throw MissingResult("five values") }
                try await read(values.map(\.valueHandle), 16, from: pair.peer)
                meter.start()
                try await read(values.map(\.valueHandle), operations / values.count, from: pair.peer)
                meter.stop()
            }
        }
    }

    private static let service = ServiceDefinition(
        uuid: "FFD0",
        characteristics: (0..<5).map { number in
            CharacteristicDefinition(
                uuid: BluetoothUUID(UInt16(0xFFD1 + number)),
                properties: .read,
                permissions: .read,
                value: .stored([UInt8](repeating: UInt8(number), count: 20))
            )
        }
    )

    private static func read(_ handles: [AttributeHandle], _ count: Int, from peer: RemotePeripheral) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for handle in handles {
                group.addTask { for _ in 0..<count { _ = try await peer.read(handle) } }
            }
            try await group.waitForAll()
        }
    }
}
