import BLEKeyStore
import BluetoothHost
import BluetoothTypes
import Foundation
import Testing

@testable import BLE

/// The state directory of a test, with the state of one controller. It is removed with its last reference.
final class StateFixture: Sendable {
    let directory = FileManager.default.temporaryDirectory.path + "/state-\(UUID().uuidString)"
    /// The controller's public address.
    let controller = DeviceAddress(0x001A_7DDA_7113, isRandom: false)

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    /// The file of the controller's bonds.
    var file: StateFile { StateFile(directory: directory, name: "00-1A-7D-DA-71-13.json") }

    /// The directory of the controller's database caches.
    var caches: String { directory + "/00-1A-7D-DA-71-13.caches" }

    func bonds(_ warnings: Warnings = Warnings()) -> BondFileStore {
        BondFileStore { [directory] address in
            await .open(adapter: address.map { "\($0)" } ?? "hci0", in: directory) { warnings.add($0) }
        } warn: {
            warnings.add($0)
        }
    }

    /// Loads the state as the next host does.
    func load(_ warnings: Warnings = Warnings()) async -> HostSecurityState {
        let bonds = bonds(warnings)
        let security = await bonds.load(for: controller)
        await bonds.close()
        return security
    }
}

extension BondFileStore {
    /// Saves the state, and returns whether it was written.
    func saveAndWait(_ security: HostSecurityState) async -> Bool {
        await withCheckedContinuation { continuation in
            save(security) { continuation.resume(returning: $0) }
        }
    }
}

/// Records an issue for a warning that is not expected.
@Sendable func recordIssue(_ warning: String) {
    Issue.record("\(warning)")
}
