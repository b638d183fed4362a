import CoreBluetooth
import Testing

@testable import BLEExamples

@Suite("Brightness")
struct BrightnessTests {
    @Test("The name is read without the app, and messages and brightness changes are delivered")
    func nameIsReadWithoutTheAppAndChangesAreDelivered() async throws {
        let (peripheral, central) = try await Stage(.brightness).perform()
        #expect(central.contains("Device name: \(Device.current.name)"))
        #expect(!peripheral.contains { $0.hasPrefix("Received read request") }, "the name is the system's to answer")
        #expect(central.filter { $0.hasPrefix("Brightness: ") } == ["Brightness: 0.5", "Brightness: 0.8"])
        let messages = peripheral.filter { $0.hasPrefix("Message: ") }
        #expect(messages == ["Message: ", "Message: Olá, periférico!"])
    }

    @Test("The descriptors of a characteristic are nil until they are set")
    func descriptorsAreNilUntilTheyAreSet() throws {
        let service = Services.getDeviceInformationService()
        let characteristics = try #require(service.characteristics)
        #expect(characteristics.map(\.descriptors) == [nil, nil])
        #expect(characteristics.map { $0.getUserDescription() } == characteristics.map(\.uuid.uuidString))
        characteristics[0].setValue(
            descriptors: [
                CBMutableDescriptor(
                    type: CBUUID(string: CBUUIDCharacteristicUserDescriptionString),
                    value: "Device Name"
                )
            ]
        )
        #expect(characteristics[0].getUserDescription() == "Device Name")
    }

    @Test("A central that disconnects its peripheral scans again and finds it again", .timeLimit(.minutes(10)))
    func centralThatDisconnectsItsPeripheralFindsItAgain() async throws {
        let stage = Stage(
            peripheral: Part(
                expected: ["Central subscribed", "Central unsubscribed", "Central subscribed", "Central unsubscribed"]
            ) { PeripheralViewController(terminal: $0, options: $1) },
            central: Part(
                expected: ["Status: searching", "Brightness: 0.5", "Status: searching", "Brightness: 0.5"]
            ) { LeavingOnce(terminal: $0, options: $1) }
        )
        let (_, central) = try await stage.perform()
        #expect(central.filter { $0.hasPrefix("Connected: ") }.count == 2)
        #expect(!central.contains { $0.hasPrefix("Error") })
    }

    @Test("A central whose peripheral vanishes scans, and connects when it is back", .timeLimit(.minutes(10)))
    func centralWhosePeripheralVanishesConnectsAgain() async {
        // Both brightnesses come from the same screen, which the central changes.
        let connection = ["Status: searching", "Connected: ", "Brightness: "]
        let lines = await Stage.perform(
            Example.brightness.peripheral,
            losingItAt: "Brightness: 0.5",
            central: Part(expected: connection + ["Error on didDisconnectPeripheral: "] + connection) {
                CentralViewController(terminal: $0, options: $1)
            }
        )
        #expect(lines.filter { $0.hasPrefix("Connected: ") }.count == 2)
    }

    /// A user who disconnects the peripheral as soon as its brightness is shown.
    private final class LeavingOnce: Screen {
        let controller: CentralViewController
        private var hasLeft = false

        init(terminal: any Terminal, options: [String: Any]) {
            controller = CentralViewController(terminal: terminal, options: options)
        }

        func userReads(_ line: String) {
            guard line == "Brightness: 0.5", !hasLeft, let peripheral = controller.manager.discoveredPeripheral else {
                return
            }
            hasLeft = true
            controller.manager.manager.cancelPeripheralConnection(peripheral)
        }

        func viewWillDisappear() { controller.viewWillDisappear() }
    }

    @Test(
        "A number has exactly the size of its type",
        arguments: [([0, 0, 0, 0x3F], 0.5), ([], nil), ([0], nil), ([0, 0, 0, 0x3F, 0], nil)] as [([UInt8], Float?)]
    )
    func numberHasExactlyTheSizeOfItsType(octets: [UInt8], number: Float?) {
        #expect(Data(octets).to(type: Float.self) == number)
        if let number { #expect(Array(Data(from: number)) == octets) }
    }
}

extension CBCharacteristic {
    fileprivate func setValue(descriptors: [CBDescriptor]) {
        (self as? CBMutableCharacteristic)?.descriptors = descriptors
    }
}
