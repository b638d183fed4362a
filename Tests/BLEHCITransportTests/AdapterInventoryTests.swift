import Glibc
import Testing

@testable import BLEHCITransport

@Suite("The inventory of adapters")
struct AdapterInventoryTests {
    private let folder = TemporaryFolder()

    /// Makes a tree of small files.
    private func tree(_ files: [String: String]) -> String {
        let root = folder.path
        for (path, text) in files {
            var parent = root
            for part in path.split(separator: "/").dropLast() {
                parent += "/\(part)"
                mkdir(parent, 0o755)
            }
            guard let file = fopen(root + path, "w") else { continue }
            fputs(text, file)
            fclose(file)
        }
        return root
    }

    @Test func inventoryReadsAdaptersSwitchesCapabilitiesAndBluetoothd() {
        let inventory = AdapterInventory(
            fileSystem: tree([
                "/sys/class/bluetooth/hci10/uevent": "", "/sys/class/bluetooth/hci0/uevent": "",
                "/sys/class/bluetooth/hci0:42/uevent": "",
                "/sys/class/rfkill/rfkill0/type": "wlan\n", "/sys/class/rfkill/rfkill0/name": "phy0\n",
                "/sys/class/rfkill/rfkill1/type": "bluetooth\n", "/sys/class/rfkill/rfkill1/name": "hci0\n",
                "/sys/class/rfkill/rfkill1/soft": "1\n", "/sys/class/rfkill/rfkill1/hard": "0\n",
                "/proc/self/status": "Name:\tx\nCapInh:\t0000000000000000\nCapEff:\t0000000000002000\n",
                "/proc/1/comm": "systemd\n", "/proc/812/comm": "bluetoothd\n", "/proc/meminfo": "",
            ])
        )
        #expect(inventory.adapters.map(\.name) == ["hci0", "hci10"])
        #expect(inventory.adapters.first?.radioBlock == KernelAdapter.RadioBlock(bySoftware: true, byHardware: false))
        #expect(inventory.adapters.last?.radioBlock == nil)
        #expect(!inventory.canAdministerNetwork)
        #expect(inventory.canUseRawSockets)
        #expect(inventory.bluetoothDaemon == 812)
    }

    @Test func inventoryWithoutSystemFilesIsEmpty() {
        #expect(AdapterInventory(fileSystem: "/nonexistent") == AdapterInventory())
    }

    @Test func rootProcessHasTheCapabilities() {
        let inventory = AdapterInventory(fileSystem: tree(["/proc/self/status": "CapEff:\t000001ffffffffff\n"]))
        #expect(inventory.canAdministerNetwork && inventory.canUseRawSockets)
    }
}
