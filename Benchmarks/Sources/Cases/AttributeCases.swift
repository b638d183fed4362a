import BLE
import BluetoothTesting

extension BenchmarkCase {
    /// Reads, writes and notifications from one app to the other, through both hosts.
    static var attributes: [BenchmarkCase] {
        Pair.lengths.flatMap { length in
            [
                read(length), write(length), writeWithoutResponse(length), notification(length),
            ]
        } + [writeEvents]
    }

    private static func read(_ length: Int) -> BenchmarkCase {
        pair("gatt/read-\(length)", operations: 50_000, budget: Budget(allocations: 6, rate: 450_000)) {
            pair,
            operations,
            meter in
            let handle = pair.handles[length] ?? 1
            for _ in 0..<16 { _ = try await pair.peer.read(handle) }
            meter.start()
            for _ in 0..<operations { _ = try await pair.peer.read(handle) }
            meter.stop()
        }
    }

    private static func write(_ length: Int) -> BenchmarkCase {
        pair("gatt/write-\(length)", operations: 50_000) { pair, operations, meter in
            let handle = pair.handles[length] ?? 1
            let value = [UInt8](repeating: 7, count: length)
            for _ in 0..<16 { try await pair.peer.write(value, to: handle) }
            meter.start()
            for _ in 0..<operations { try await pair.peer.write(value, to: handle) }
            meter.stop()
        }
    }

    private static func writeWithoutResponse(_ length: Int) -> BenchmarkCase {
        pair("gatt/write-without-response-\(length)", operations: 50_000) { pair, operations, meter in
            let handle = pair.handles[length] ?? 1
            let value = [UInt8](repeating: 7, count: length)
            for _ in 0..<64 { try await pair.peer.write(value, to: handle, kind: .withoutResponse) }
            await pair.radio.settle()
            meter.start()
            for _ in 0..<operations { try await pair.peer.write(value, to: handle, kind: .withoutResponse) }
            await pair.radio.settle()
            meter.stop()
        }
    }

    /// Writes without response that an app of the server takes from its sequence of events.
    private static var writeEvents: BenchmarkCase {
        pair("gatt/write-event-20", operations: 50_000) { pair, operations, meter in
            let handle = pair.handles[20] ?? 1
            let value = [UInt8](repeating: 7, count: 20)
            let events = await pair.server.peripheral.events()
            for measured in [64, operations] {
                if measured == operations { meter.start() }
                async let taken: Void = take(measured, from: events)
                for _ in 0..<measured { try await pair.peer.write(value, to: handle, kind: .withoutResponse) }
                try await taken
            }
            meter.stop()
        }
    }

    private static func take(_ count: Int, from events: Events<PeripheralEvent>) async throws {
        var events = events.makeAsyncIterator()
        for _ in 0..<count {
            guard case .written? = await events.next() else { throw MissingResult("another write") }
        }
    }

    private static func notification(_ length: Int) -> BenchmarkCase {
        let budget = length == 244 ? Budget(allocations: 3, rate: 1_000_000) : Budget()
        return pair("gatt/notification-\(length)", operations: 50_000, budget: budget) { pair, operations, meter in
            let handle = pair.handles[length] ?? 1
            let value = [UInt8](repeating: 7, count: length)
            let services = try await pair.peer.discoverAll()
            guard let remote = services.flatMap(\.characteristics).first(where: { $0.valueHandle == handle }) else {
                throw MissingResult("the measured characteristic")
            }
            let subscription = try await pair.peer.subscribe(to: remote)
            let server = pair.server.peripheral
            async let warmth: Void = take(64, from: subscription)
            for _ in 0..<64 { try await server.notify(value, of: handle) }
            try await warmth
            meter.start()
            async let received: Void = take(operations, from: subscription)
            for _ in 0..<operations { try await server.notify(value, of: handle) }
            try await received
            meter.stop()
        }
    }

    private static func take(_ count: Int, from subscription: Subscription) async throws {
        var values = subscription.makeAsyncIterator()
        for _ in 0..<count {
            guard try await values.next() != nil else { throw MissingResult("another value") }
        }
    }
}
