import BLEHCITransport
import BLEProfiles
import BluetoothTypes

/// A kernel's adapter as a row of `ble adapters`.
struct AdapterRow: Hashable, Sendable {
    static let columns = ["ADAPTER", "ADDRESS", "BUS", "STATE", "HELD BY", "BLOCKED"]

    var adapter: KernelAdapter
    /// The process ID of bluetoothd, if it runs.
    var bluetoothDaemon: Int32?

    var json: JSON {
        [
            "adapter": .string(adapter.name),
            "address": JSON(adapter.address?.description),
            "bus": JSON(bus),
            "state": .string(state),
            "heldBy": JSON(holder),
            "blocked": JSON(block),
        ]
    }

    /// The cells of a table under ``columns``.
    var cells: [String] {
        [
            adapter.name, adapter.address?.description ?? "-", bus ?? "-", state, holder ?? "-", block ?? "no",
        ]
    }

    private var bus: String? { adapter.bus.map { "\($0)" } }

    private var state: String {
        guard let flags = adapter.flags else { return "unknown" }
        return flags.contains(.up) ? "up" : "down"
    }

    /// The user of the adapter. The kernel does not report it; if bluetoothd runs, it uses all adapters that are up.
    private var holder: String? {
        guard adapter.isUp else { return nil }
        return bluetoothDaemon == nil ? "kernel" : "bluetoothd"
    }

    private var block: String? {
        guard let block = adapter.radioBlock else { return nil }
        return block.byHardware ? "hardware" : block.bySoftware ? "software" : nil
    }
}
