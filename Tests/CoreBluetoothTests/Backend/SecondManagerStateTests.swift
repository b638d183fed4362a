import BLEKeyStore
import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

/// An app that opens its adapter itself may release its last manager, and create another one at once.
@Suite("The state of a manager that follows another one on the same store")
final class SecondManagerStateTests {
    private let lasting = DeviceAddress(0x0011_2233_4455, isRandom: false)
    private let fixed = DeviceAddress(0xC011_2233_4455, isRandom: true)
    private let path = FileManager.default.temporaryDirectory.path + "/second-\(UUID().uuidString)"

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Opens a store that writes nothing before it is closed.
    private func open() async -> KeyStore {
        await KeyStore.open(adapter: "A", in: path, writeDelay: .seconds(3600)) { Issue.record("\($0)") }
    }

    @Test func directoryHasThePeersThatAreNotWrittenYet() async {
        let store = await open()
        let first = PeerDirectory(store: store) { UUID() }
        let lamp = first.identifier(of: lasting)
        #expect(first.use(lamp))
        first.read(deviceName: "lamp", of: lamp)
        let second = PeerDirectory(store: store) { UUID() }
        #expect(second.identifier(of: lasting) == lamp)
        #expect(second.name(of: lamp) == "lamp")
        let other = second.identifier(of: fixed)
        #expect(second.use(other))
        await store.close()

        let again = await open()
        let third = PeerDirectory(store: again) { UUID() }
        #expect(third.identifier(of: lasting) == lamp)
        #expect(third.name(of: lamp) == "lamp")
        #expect(third.identifier(of: fixed) == other)
        await again.close()
    }

    @Test func restorationHasTheActivityThatIsNotWrittenYet() async {
        let advertisement = Restoration.Advertisement(localName: "lamp", services: ["FFE0"])
        let store = await open()
        Restoration(store: store).set(advertisement, for: "first")
        let second = Restoration(store: store)
        #expect(second.advertisement("first") == advertisement)
        second.set(advertisement, for: "second")
        await store.close()

        let again = await open()
        let third = Restoration(store: again)
        #expect(third.advertisement("first") == advertisement)
        #expect(third.advertisement("second") == advertisement)
        await again.close()
    }
}
