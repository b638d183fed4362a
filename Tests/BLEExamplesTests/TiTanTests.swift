import CoreBluetooth
import Testing

@testable import BLEExamples

@Suite("TiTan")
struct TiTanTests {
    @Test("Cached values of characteristics that are not read-only end the app with an explanation")
    func cachedValueThatIsNotReadOnlyEndsTheApp() async throws {
        let result = try #require(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let tablet = Performance(
                    Part(expected: ["Start advertising succeeded"]) {
                        TiTanPeripheralViewController(terminal: $0, options: $1)
                    },
                    options: [CBPeripheralManagerOptionAdapterKey: "virtual:titan"]
                )
                await tablet.begin()
                _ = await tablet.allLines
                await MainActor.run {
                    (tablet.screen as? TiTanPeripheralViewController)?.addCharacteristicWithCachedValue()
                }
            }
        )
        let words = String(decoding: result.standardErrorContent, as: UTF8.self)
        #expect(
            words.contains("NSInternalInconsistencyException: Characteristics with cached values must be read-only")
        )
    }

    @Test("A device is listed once, with its name and its signal strength", .timeLimit(.minutes(10)))
    func deviceIsListedOnceWithNameAndSignalStrength() async throws {
        let (_, lines) = try await Stage(.tiTan).perform { end in
            let phone = try #require(end.screen as? TiTanCentralViewController)
            #expect(phone.scannedDevices.count == 1)
            #expect(phone.scannedDevices.allSatisfy { (-127...20).contains($0.rssi.intValue) })
        }
        #expect(lines.filter { $0.hasPrefix("Device TiTan, RSSI ") }.count == 1)
    }

    @Test("A written value can be read, and is notified to subscribers", .timeLimit(.minutes(10)))
    func writtenValueCanBeReadAndIsNotified() async throws {
        let (tablet, phone) = try await Stage(.tiTan).perform()
        #expect(phone.filter { $0.hasPrefix("Value ") } == ["Value TiTan dice hola", "Value Hola, TiTan"])
        #expect(phone.contains("Notify \(kCharacteristicUUID) true"))
        #expect(tablet.filter { $0 == "Write request" }.count == 1)
    }

    @Test("An encrypted value can be subscribed to", .timeLimit(.minutes(10)))
    func subscriptionToAnEncryptedValueSucceeds() async throws {
        let (tablet, phone) = try await Stage(.tiTan).perform()
        #expect(phone.contains("Notify \(kEncryptedCharacteristicUUID) true"))
        #expect(tablet.contains("Subscribed to \(kEncryptedCharacteristicUUID)"))
    }
}
