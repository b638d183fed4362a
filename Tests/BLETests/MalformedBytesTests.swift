import BLE
import BluetoothTesting
import Metrics
import MetricsTestKit
import Testing

@Suite("A scripted peripheral that sends malformed bytes")
struct MalformedBytesTests {
    @Test("The client drops and counts each frame, and the link stays")
    func malformedFramesAreCountedAndTheLinkStays() throws {
        try World.run { world in
            let metrics = TestMetrics()
            try await withMetricsFactory(metrics) { try await Self.sendFrames(in: world, metrics) }
        }
    }

    private static func sendFrames(in world: World, _ metrics: TestMetrics) async throws {
        let lamp = try await world.peripheral(
            "lamp",
            services: [
                ScriptedService("A800", [ScriptedCharacteristic("A801", properties: [.read, .notify], value: [7])])
            ]
        )
        let phone = try await world.device("phone").openAdapter()
        let peer = try await phone.central.connect(to: lamp.address)
        let services = try await peer.discoverAll()
        let characteristic = try #require(services.last?.characteristics.first)
        let values = try await peer.subscribe(to: characteristic)
        var iterator = values.makeAsyncIterator()
        let malformed: [[UInt8]] = [
            // A notification without a whole handle, and one of several values without any.
            [0x1B, 0x01], [0x23, 0x01],
            // A Read Response without a request, and a confirmation without an indication.
            [0x0B, 0x07], [0x1E],
        ]
        for (index, frame) in malformed.enumerated() {
            await lamp.sendBytes(frame)
            try await world.sleep(for: .seconds(1))
            let count = metrics.counterTotal(label: "swift_ble_malformed_packets_total")
            #expect(count == Int64(index + 1), "\(frame)")
        }
        // Bytes that are a notification reach the subscription as one.
        let handle = characteristic.valueHandle.rawValue
        await lamp.sendBytes([0x1B, UInt8(truncatingIfNeeded: handle), UInt8(truncatingIfNeeded: handle >> 8), 9])
        let notification = try await iterator.next()
        #expect(notification?.value == [9])
        #expect(try await peer.read(characteristic.valueHandle) == [7])
        #expect(metrics.counterTotal(label: "swift_ble_malformed_packets_total") == Int64(malformed.count))
        await peer.disconnect()
    }
}
