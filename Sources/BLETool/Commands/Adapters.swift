import ArgumentParser
import BLEHCITransport

struct Adapters: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "adapters",
        abstract: "List the kernel's Bluetooth adapters."
    )

    @OptionGroup var output: OutputOptions

    func run() async throws {
        let inventory = AdapterInventory.read()
        let rows = inventory.adapters.map { AdapterRow(adapter: $0, bluetoothDaemon: inventory.bluetoothDaemon) }
        if output.json {
            for row in rows { try Output.standard.json(row.json) }
        } else if !rows.isEmpty {
            let table = TextTable(header: AdapterRow.columns, rows: rows.map(\.cells))
            for line in table.lines() { try Output.standard.line(line) }
        }
        if rows.isEmpty { Output.complain("the kernel has no Bluetooth adapter; `ble doctor` shows what to do") }
    }
}
