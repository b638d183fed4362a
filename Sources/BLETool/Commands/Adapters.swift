import ArgumentParser
import BLEHCITransport
import BLEProfiles

struct Adapters: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "adapters",
        abstract: "List the kernel's Bluetooth adapters.",
        discussion: "An address can be copied: `--adapter addr:ADDRESS` is the adapter with it, whatever its number is."
    )

    @Flag(help: "List them again after each change, until interrupted. With --json, each list is an array.")
    var watch = false

    @OptionGroup var output: OutputOptions

    func run() async throws {
        if watch { return try await list(AdapterMonitor()) }
        let inventory = AdapterInventory.read()
        let rows = Adapters.rows(of: inventory)
        if output.json {
            for row in rows { try Output.standard.json(row.json) }
        } else {
            try Adapters.printTable(rows)
        }
        if rows.isEmpty { Output.complain("the kernel has no Bluetooth adapter; `ble doctor` shows what to do") }
    }

    /// Prints each list until the task is cancelled.
    private func list(_ monitor: AdapterMonitor) async throws {
        var isFirst = true
        for await inventory in monitor {
            let rows = Adapters.rows(of: inventory)
            if output.json {
                try Output.standard.json(.array(rows.map(\.json)))
            } else {
                if !isFirst { try Output.standard.line("") }
                isFirst = false
                if rows.isEmpty { try Output.standard.line("no adapters") } else { try Adapters.printTable(rows) }
            }
        }
    }

    private static func rows(of inventory: AdapterInventory) -> [AdapterRow] {
        inventory.adapters.map { AdapterRow(adapter: $0, bluetoothDaemon: inventory.bluetoothDaemon) }
    }

    private static func printTable(_ rows: [AdapterRow]) throws {
        guard !rows.isEmpty else { return }
        let table = TextTable(header: AdapterRow.columns, rows: rows.map(\.cells))
        for line in table.lines() { try Output.standard.line(line) }
    }
}
