import BLE
import BluetoothTesting

extension BenchmarkCase {
    /// An L2CAP channel with credit-based flow control, from one app to the other.
    static var channels: [BenchmarkCase] {
        [100, 1000, 2000].map { length in
            pair("l2cap/channel-\(length)", operations: 10_000) { pair, operations, meter in
                let listener = try await pair.server.peripheral.publishChannel(
                    configuration: .init(mtu: 2048, mps: 1024)
                )
                let channel = try await pair.peer.openChannel(
                    psm: listener.psm,
                    configuration: .init(mtu: 2048, mps: 1024)
                )
                var accepted = listener.makeAsyncIterator()
                guard let receiver = await accepted.next() else { throw MissingResult("the channel") }
                let written = [UInt8](repeating: 7, count: length)
                async let warmth: Void = take(64, from: receiver)
                for _ in 0..<64 { try await channel.write(written) }
                try await warmth
                meter.start()
                async let received: Void = take(operations, from: receiver)
                for _ in 0..<operations { try await channel.write(written) }
                try await received
                meter.stop()
                meter.tell(
                    "megabytes per second",
                    Double(operations * length) * 1000 / Double(meter.reading.nanoseconds)
                )
                await channel.close()
            }
        }
    }

    private static func take(_ count: Int, from channel: L2CAPChannel) async throws {
        var octets = channel.makeAsyncIterator()
        for _ in 0..<count {
            guard try await octets.next() != nil else { throw MissingResult("another SDU") }
        }
    }
}
