import ArgumentParser
import BLE
import BLEProfiles
import BluetoothTypes
import Synchronization

struct Scan: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scan",
        abstract: "Show the devices that advertise.",
        discussion:
            """
            Scans until the duration is over (default: the value of --timeout), or until it is stopped.
            --decode shows the readings of BTHome, Ruuvi, MiBeacon, ATC, pvvx, Govee and SwitchBot sensors, and of \
            iBeacon, AltBeacon and Eddystone beacons. An advertisement that is not encrypted can come from any device.
            If the output is read too slowly, the oldest advertisements are dropped. A line reports how many.
            """
    )

    @OptionGroup var options: GlobalOptions

    @Option(
        help: ArgumentHelp("Only devices that advertise this service; may be repeated.", valueName: "uuid"),
        transform: { try BluetoothUUID(argument: $0) }
    )
    var service: [BluetoothUUID] = []

    @Option(help: ArgumentHelp("Only devices whose name contains this text, in any case.", valueName: "text"))
    var name: String?

    @Option(
        help: ArgumentHelp("How long to scan.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var duration: Seconds?

    @Flag(help: "Do not ask for scan responses.")
    var passive = false

    @Flag(help: "Print every packet, not only changes.")
    var duplicates = false

    @OptionGroup var finding: FindOptions

    @OptionGroup(title: "Sensors") var sensors: SensorOptions

    func run() async throws {
        let reader = try await sensors.reader()
        let limit = (duration ?? options.timeout)?.duration
        let isLive = !options.output.json && !duplicates && Terminal.isPresent
        let scanOptions = ScanOptions(
            serviceUUIDs: service,
            name: name,
            isActive: !passive,
            // The table shows the present signal strength of each device.
            reportsDuplicates: duplicates || isLive,
            phys: finding.phys
        )
        try await options.withAdapter { adapter in
            let keys = await adapter.encryptedDataKeys()
            do {
                let isOver =
                    try await within(limit) {
                        if isLive {
                            try await paint(adapter.central.scan(scanOptions), reader, keys)
                        } else {
                            try await print(adapter.central.scan(scanOptions), reader, keys)
                        }
                    } == nil
                guard isOver || Task.isCancelled else { throw ToolError.scanEnded }
            } catch  where Task.isCancelled && !(error is OutputError) {
                // Cancellation is the normal end of a scan without a limit.
            }
            if limit != nil { try Task.checkCancellation() }
        }
    }

    private func print(
        _ results: ScanResults,
        _ reader: SensorReader?,
        _ keys: [DeviceAddress: EncryptedDataKeyMaterial]
    ) async throws {
        var printer = AdvertisementPrinter(reader: reader, keys: keys, asJSON: options.output.json)
        for try await advertisement in results { try printer.print(advertisement) }
    }

    private func paint(
        _ results: ScanResults,
        _ reader: SensorReader?,
        _ keys: [DeviceAddress: EncryptedDataKeyMaterial]
    ) async throws {
        let painter = ScanPainter(showsReadings: reader != nil)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                var reader = reader
                for try await advertisement in results {
                    painter.note(Sighting(advertisement, &reader, keys), droppedBefore: advertisement.droppedBefore)
                }
            }
            group.addTask {
                while true {
                    try painter.paint()
                    try await Task.sleep(for: .milliseconds(250))
                }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
        try painter.paint()
    }
}

/// Repaints the table of a scan in place.
private final class ScanPainter: Sendable {
    private struct State {
        var table: ScanTable
        var isNew = true
        var height = 0
    }

    private let state: Mutex<State>

    init(showsReadings: Bool) {
        state = Mutex(State(table: ScanTable(showsReadings: showsReadings)))
    }

    func note(_ sighting: Sighting, droppedBefore: Int) {
        state.withLock { state in
            state.table.noteDropped(droppedBefore)
            state.table.note(sighting)
            state.isNew = true
        }
    }

    func paint() throws(OutputError) {
        let text: String? = state.withLock { state in
            guard state.isNew else { return nil }
            let size = Terminal.size
            let lines = state.table.lines(width: size.width - 1, height: size.height - 1)
            defer {
                state.height = lines.count
                state.isNew = false
            }
            return Terminal.replacement(of: state.height, with: lines)
        }
        if let text { try Output.standard.write(text) }
    }
}
