import CoreBluetooth
import Testing

@testable import BLEExamples

@Suite("TextTransfer")
struct TextTransferTests {
    /// 100,000 characters of one to four bytes, in an order that does not repeat with the chunks.
    static let text = String(
        (0..<100_000).map { index in
            ["a", "é", "z", "€", " ", "𝄞", "m", "ß", "o", "k", "—"][index % 97 % 11] as Character
        }
    )

    @Test(
        "A text of 100,000 characters arrives complete, and the sender waits whenever there is no room",
        .timeLimit(.minutes(10))
    )
    func longTextArrivesComplete() async throws {
        let stage = Stage(
            peripheral: Part(expected: ["Envoyé: EOM", "Central unsubscribed"]) {
                Sender(text: Self.text, terminal: $0, options: $1)
            },
            central: Part(expected: ["Texte: ", "Disconnected"]) {
                CBCentralManagerViewController(terminal: $0, options: $1)
            }
        )
        await stage.peripheral.begin()
        await stage.central.begin()
        async let sent = stage.peripheral.allLines
        _ = await stage.central.allLines
        let text = await MainActor.run { (stage.central.screen as? CBCentralManagerViewController)?.text }
        #expect(text == Self.text)
        await stage.central.end()
        let chunks = await sent.filter { $0.hasPrefix("Sent: ") }.count
        #expect(chunks == (Self.text.utf8.count + NOTIFY_MTU - 1) / NOTIFY_MTU)
        let waits = await MainActor.run { (stage.peripheral.screen as? Sender)?.waits ?? 0 }
        #expect(waits > 0, "so much does not fit at once")
        await stage.peripheral.end()
    }

    /// Counts how often there is room again.
    private final class Sender: CBPeripheralViewController {
        var waits = 0

        override func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) {
            waits += 1
            super.peripheralManagerIsReady(toUpdateSubscribers: peripheral)
        }
    }

    @Test("The demonstration's text is split within a character")
    func demonstrationTextIsSplitWithinACharacter() {
        let octets = Array(Example.demonstrationText.utf8)
        let chunks = stride(from: 0, to: octets.count, by: NOTIFY_MTU).map { octets[$0...].prefix(NOTIFY_MTU) }
        #expect(chunks.contains { String(validating: $0, as: UTF8.self) == nil })
    }

    @Test("A peripheral that was found is retrieved by its identifier while it is retained", .timeLimit(.minutes(10)))
    func retainedPeripheralIsRetrievedByItsIdentifier() async throws {
        let stage = Stage(
            peripheral: Example.textTransfer.peripheral,
            central: Part(expected: ["Texte: "]) { Finder(terminal: $0, options: $1) }
        )
        try await stage.perform { end in
            let finder = try #require(end.screen as? Finder)
            let peripheral = try #require(finder.connected)
            let known = finder.centralManager.retrievePeripherals(withIdentifiers: [peripheral.identifier, UUID()])
            #expect(known.count == 1)
            #expect(known.first === peripheral)
        }
    }

    /// Retains the peripheral that it was connected to, also after the connection has ended.
    private final class Finder: CBCentralManagerViewController {
        private(set) var connected: CBPeripheral?

        override func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
            connected = peripheral
            super.centralManager(central, didConnect: peripheral)
        }
    }
}
