import BLE
import CoreBluetooth
import Testing

@testable import BLEExamples

@Suite("Brightness, with a central that writes messages in every way")
struct MessageWriteTests {
    /// Connects to the app's peripheral and writes to its message.
    ///
    /// - Returns: the messages that the app has shown, up to `last`.
    private func messages(
        until last: String,
        _ body: @Sendable (RemotePeripheral, RemoteCharacteristic) async throws -> Void
    ) async throws -> [String] {
        let air = "virtual:\(UUID().uuidString)"
        let app = Performance(
            Part(expected: [last]) { PeripheralViewController(terminal: $0, options: $1) },
            options: [CBPeripheralManagerOptionAdapterKey: air]
        )
        await app.begin()
        let adapter = try await Adapter.open(AdapterSpecification(parsing: air))
        for try await advertisement in adapter.central.scan(ScanOptions(name: "Peripheral Device")) {
            let peer = try await adapter.central.connect(to: advertisement.address)
            let message = try await peer.characteristic(
                "B53D35B6-ADA0-42F7-8A75-C4433D81E729",
                in: "908D66AF-2751-4483-BD8E-8E99A92CC2F3"
            )
            try await body(peer, message)
            break
        }
        let lines = await app.allLines
        await adapter.close()
        await app.end()
        return lines.filter { $0.hasPrefix("Message: ") }
    }

    @Test("Writes that belong together are one message", .timeLimit(.minutes(10)))
    func writesThatBelongTogetherAreOneMessage() async throws {
        let shown = try await messages(until: "Message: second") { peer, message in
            try await peer.writeReliably([
                .init(Array("first".utf8), to: message.valueHandle),
                .init(Array("second".utf8), to: message.valueHandle),
            ])
        }
        #expect(shown == ["Message: second"])
    }

    @Test("A message that is not text is refused, and the next one is taken", .timeLimit(.minutes(10)))
    func messageThatIsNotTextIsRefused() async throws {
        let shown = try await messages(until: "Message: next") { peer, message in
            await #expect(throws: BLEError.attribute(.unlikelyError, handle: message.valueHandle)) {
                try await peer.write([0xFF], to: message.valueHandle)
            }
            try await peer.write(Array("next".utf8), to: message.valueHandle)
        }
        #expect(shown == ["Message: next"])
    }
}
