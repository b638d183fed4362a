import BLE
import BLEATT
import BLEByteCoding
import BluetoothTesting
import CCounters
import Synchronization

extension BenchmarkCase {
    /// Many links, and large databases.
    static var scale: [BenchmarkCase] {
        [1, 10, 100, 500].flatMap { [turns($0), crowd($0)] } + [idleCentral, idlePeripheral]
            + [10, 1000, 10_000].flatMap { [discovery($0), lookupByHandle($0), lookupByType($0)] }
    }

    // MARK: Links

    /// One read after the other, each on the next link.
    private static func turns(_ links: Int) -> BenchmarkCase {
        pair("links/\(links)/read-in-turn", operations: 20_000, links: links) { pair, operations, meter in
            let handle = pair.handles[20] ?? 1
            for peer in pair.peers { _ = try await peer.read(handle) }
            meter.start()
            for index in 0..<operations { _ = try await pair.peers[index % links].read(handle) }
            meter.stop()
        }
    }

    /// Reads on all links at the same time; compares the busiest link with the least busy.
    ///
    /// Each link makes at least 40 reads, so that they cost more than the start of its task.
    private static func crowd(_ links: Int) -> BenchmarkCase {
        pair(
            "links/\(links)/read-at-once",
            operations: 20_000,
            countedOperations: max(400, links * 40),
            links: links
        ) { pair, operations, meter in
            let handle = pair.handles[20] ?? 1
            let counts = Counts(links)
            meter.start()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (index, peer) in pair.peers.enumerated() {
                    group.addTask {
                        while counts.add(to: index, limit: operations) { _ = try await peer.read(handle) }
                    }
                }
                try await group.waitForAll()
            }
            meter.stop()
            let values = counts.values
            let idle = values.count { $0 == 0 }
            guard idle == 0 else { throw MissingResult("a read on \(idle) of \(links) links") }
            meter.tell("most per link", Double(values.max() ?? 0))
            meter.tell("least per link", Double(values.min() ?? 0))
        }
    }

    /// The cost of a link to the host that made it.
    private static var idleCentral: BenchmarkCase {
        BenchmarkCase("links/memory-of-a-central", operations: 500) { operations, meter in
            let radio = scriptedRadio()
            try radio.run(limit: .seconds(86_400)) {
                let client = try await radio.openAdapter()
                var peers: [RemotePeripheral] = []
                func connect() async throws {
                    let peer = try await client.central.connect(to: radio.address(ofPeripheral: peers.count))
                    // Exchanges the MTU, too.
                    _ = try await peer.read(3)
                    peers.append(peer)
                }
                peers.reserveCapacity(operations + 1)
                try await connect()
                await radio.settle()
                let before = heap_bytes_in_use()
                meter.start()
                for _ in 0..<operations { try await connect() }
                await radio.settle()
                meter.stop()
                meter.tell("bytes per link", (Double(heap_bytes_in_use()) - Double(before)) / Double(operations))
                withExtendedLifetime(peers) {}
            }
            radio.close()
        }
    }

    /// The cost of a link to the host that accepted it.
    private static var idlePeripheral: BenchmarkCase {
        BenchmarkCase("links/memory-of-a-peripheral", operations: 500) { operations, meter in
            let radio = scriptedRadio()
            try radio.run(limit: .seconds(86_400)) {
                _ = try await radio.openAdapter()
                func connect() async {
                    let link = radio.connectScriptedCentral()
                    // Exchange MTU, then a read.
                    radio.send([0x02, 0x00, 0x02].rawSpan, on: link)
                    await radio.settle()
                    radio.send([0x0A, 0x03, 0x00].rawSpan, on: link)
                    await radio.settle()
                }
                await connect()
                let before = heap_bytes_in_use()
                meter.start()
                for _ in 0..<operations { await connect() }
                meter.stop()
                meter.tell("bytes per link", (Double(heap_bytes_in_use()) - Double(before)) / Double(operations))
            }
            radio.close()
        }
    }

    /// Peers that exchange the MTU and answer each read with a value of two bytes.
    private static func scriptedRadio() -> NullRadio {
        let radio = NullRadio()
        radio.scriptedAnswer = { pdu, answer in
            switch pdu[checked: 0] {
            case 0x02: answer.append([0x03, 0x00, 0x02])
            case 0x0A: answer.append([0x0B, 0x12, 0x34])
            default: break
            }
        }
        return radio
    }

    // MARK: Databases

    /// Services of four characteristics each, with about the given number of attributes.
    ///
    /// GAP, GATT and the service of ``Pair`` add 29.
    private static func services(_ attributes: Int) -> [ServiceDefinition] {
        (0..<max(attributes / 9, 1)).map { service in
            ServiceDefinition(
                uuid: uuid(0xABCD_0000, service),
                characteristics: (0..<4).map { characteristic($0, ofService: service) }
            )
        }
    }

    private static func characteristic(_ index: Int, ofService service: Int) -> CharacteristicDefinition {
        CharacteristicDefinition(
            uuid: uuid(0xBCDE_0000, service * 4 + index),
            properties: [.read],
            permissions: [.read],
            value: .stored([1, 2, 3, 4])
        )
    }

    private static func uuid(_ kind: UInt32, _ number: Int) -> BluetoothUUID {
        BluetoothUUID(UInt128(kind + UInt32(number)) << 96 | 0x42)
    }

    private static func discovery(_ attributes: Int) -> BenchmarkCase {
        BenchmarkCase.pair(
            "database/\(attributes)/discover-all",
            operations: max(20_000 / attributes, 2),
            services: services(attributes)
        ) { pair, operations, meter in
            // The client caches its discoveries while the link lasts, but discovers services again if asked for them
            // alone.
            let discovered = try await pair.peer.discoverServices().reduce(0) { sum, service in
                sum + Int(service.endHandle.rawValue) - Int(service.handle.rawValue) + 1
            }
            meter.start()
            for _ in 0..<operations {
                for service in try await pair.peer.discoverServices() {
                    _ = try await pair.peer.discoverCharacteristics(of: service)
                }
            }
            meter.stop()
            let cost = Double(meter.reading.nanoseconds) / Double(operations * discovered)
            meter.tell("ns per attribute", cost)
            meter.tell("attributes", Double(discovered))
        }
    }

    private static func lookupByHandle(_ attributes: Int) -> BenchmarkCase {
        BenchmarkCase.pair(
            "database/\(attributes)/read-by-handle",
            operations: 20_000,
            services: services(attributes)
        ) { pair, operations, meter in
            // One procedure reads at most 2,000 attributes, so each service is discovered by separate procedures.
            var handles: [AttributeHandle] = []
            for service in try await pair.peer.discoverServices() {
                let characteristics = try await pair.peer.discoverCharacteristics(of: service)
                handles += characteristics.filter { $0.uuid.width == .bits128 }.map(\.valueHandle)
            }
            _ = try await pair.peer.read(handles[0])
            meter.start()
            for index in 0..<operations { _ = try await pair.peer.read(handles[index &* 7919 % handles.count]) }
            meter.stop()
        }
    }

    private static func lookupByType(_ attributes: Int) -> BenchmarkCase {
        let last = uuid(0xBCDE_0000, max(attributes / 9, 1) * 4 - 1)
        return BenchmarkCase.pair(
            "database/\(attributes)/read-by-type",
            operations: 2000,
            services: services(attributes)
        ) { pair, operations, meter in
            _ = try await pair.peer.read(uuid: last)
            meter.start()
            for _ in 0..<operations { _ = try await pair.peer.read(uuid: last) }
            meter.stop()
        }
    }
}

/// The operations counted for each of several tasks, and for all together.
private final class Counts: Sendable {
    private let state: Mutex<(each: [Int], all: Int)>

    init(_ number: Int) {
        state = Mutex((Array(repeating: 0, count: number), 0))
    }

    /// Counts one more operation; returns false if the total has reached the limit.
    func add(to index: Int, limit: Int) -> Bool {
        state.withLock { state in
            guard state.all < limit else { return false }
            state.all += 1
            state.each[index] += 1
            return true
        }
    }

    var values: [Int] { state.withLock { $0.each } }
}
