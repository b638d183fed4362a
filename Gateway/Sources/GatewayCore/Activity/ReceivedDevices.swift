import BLE
import BluetoothSensors
import ESPHomeProtocol
import NIOCore
import Synchronization

/// The devices that were received lately, with their signal over time and their last readings.
///
/// ## Bounds
///
/// At most ``sensorLimit`` devices with readings and ``otherLimit`` others are kept. Each kind has places of its own,
/// so a crowd of phones does not displace sensors. The device that was received least recently is forgotten first. An
/// advertisement costs two lookups at most, and no allocation, unless its device is new or a slot of its signal begins.
public final class ReceivedDevices: Sendable {
    private struct Entry {
        let address: DeviceAddress
        var name: String?
        var rssi: Int?
        var time: NIODeadline
        var adapter: Int
        var advertisementCount: UInt64 = 0
        /// One for each format, the last one that was new.
        var reports: [(report: SensorReport, time: NIODeadline)] = []
        var signal: SignalHistory

        mutating func record(_ rssi: Int?, by adapter: Int, at time: NIODeadline, slot: Int, name: () -> String?) {
            if self.name == nil || slot > signal.lastSlot {
                self.name = name()?.printable(limit: nameLimit) ?? self.name
            }
            self.time = time
            self.adapter = adapter
            advertisementCount += 1
            guard let rssi else { return }
            self.rssi = rssi
            signal.record(rssi, slot: slot)
        }
    }

    private struct State {
        var sensors = RecencyTable<DeviceAddress, Entry>(limit: sensorLimit)
        var others = RecencyTable<DeviceAddress, Entry>(limit: otherLimit)
        var reportCounts: [SensorFormat: UInt64] = [:]
    }

    /// The greatest number of devices with readings.
    public static let sensorLimit = 256
    /// The greatest number of devices without readings.
    public static let otherLimit = 256
    /// The greatest number of characters of a name.
    static let nameLimit = 64
    /// The greatest number of formats of one device, and of formats that are counted.
    static let formatLimit = 4
    private static let countedFormatLimit = 64

    private let state = Mutex(State())

    /// Creates an empty table.
    public init() {}

    // MARK: Recording

    /// Records that an adapter received an advertisement.
    func receive(_ advertisement: Advertisement, by adapter: Int, at time: NIODeadline = .now()) {
        receive(advertisement.address, rssi: advertisement.rssi, by: adapter, at: time) { advertisement.localName }
    }

    /// Records a reception.
    ///
    /// - Parameter name: returns the name in the advertisement. It is called once in a slot of the signal, or until a
    ///   name is known.
    func receive(
        _ address: DeviceAddress,
        rssi: Int?,
        by adapter: Int,
        at time: NIODeadline,
        name: @Sendable () -> String?
    ) {
        let slot = Self.slot(at: time)
        state.withLock { state in
            func update(_ entry: inout Entry) { entry.record(rssi, by: adapter, at: time, slot: slot, name: name) }
            if state.sensors.use(address, update) != nil || state.others.use(address, update) != nil { return }
            var entry = Entry(address: address, time: time, adapter: adapter, signal: SignalHistory(slot: slot))
            update(&entry)
            state.others.insert(entry, for: address)
        }
    }

    /// Records what a sensor has reported. Nothing is recorded for a device that was not received.
    public func observe(_ observation: SensorObservation) {
        observe(observation, at: .now())
    }

    func observe(_ observation: SensorObservation, at time: NIODeadline) {
        let report = observation.report
        state.withLock { state in
            if state.reportCounts[report.format] != nil || state.reportCounts.count < Self.countedFormatLimit {
                state.reportCounts[report.format, default: 0] += 1
            }
            if let entry = state.others.remove(observation.address) {
                state.sensors.insert(entry, for: observation.address)
            }
            _ = state.sensors.use(observation.address) { entry in
                if let index = entry.reports.firstIndex(where: { $0.report.format == report.format }) {
                    entry.reports[index] = (report, time)
                } else if entry.reports.count < Self.formatLimit {
                    entry.reports.append((report, time))
                }
            }
        }
    }

    private static func slot(at time: NIODeadline) -> Int {
        Int(time.uptimeNanoseconds / 1_000_000_000) / SignalHistory.slotDuration
    }

    // MARK: Reading

    /// The devices at one moment.
    package struct Snapshot: Sendable {
        /// The number of the present slot.
        package var slot: Int
        /// Those with readings first; then the device that was received last first.
        package var devices: [Device]
        /// The number of reports by format.
        package var reportCounts: [SensorFormat: UInt64]
        /// The number of devices that were forgotten because there were too many.
        package var forgottenCount: UInt64
    }

    /// A device that was received.
    package struct Device: Sendable {
        package var address: DeviceAddress
        package var name: String?
        /// The signal strength in dBm.
        package var rssi: Int?
        /// The time since the last advertisement, in seconds.
        package var age: Double
        /// The position of the adapter that received it last.
        package var adapter: Int
        package var advertisementCount: UInt64
        /// The last reports, with their ages in seconds.
        package var reports: [(report: SensorReport, age: Double)]
        /// The means of the last slots in dBm, the oldest first.
        package var signal: [Int?]
    }

    /// Returns the devices, with the means of at most `slotCount` slots.
    package func snapshot(slotCount: Int, at time: NIODeadline = .now()) -> Snapshot {
        let (entries, reportCounts, forgottenCount) = state.withLock { state in
            (
                state.sensors.values + state.others.values, state.reportCounts,
                state.sensors.evictedCount + state.others.evictedCount
            )
        }
        let slot = Self.slot(at: time)
        func age(_ moment: NIODeadline) -> Double { max(0, Double((time - moment).nanoseconds) / 1e9) }
        return Snapshot(
            slot: slot,
            devices: entries.map { entry in
                Device(
                    address: entry.address,
                    name: entry.name,
                    rssi: entry.rssi,
                    age: age(entry.time),
                    adapter: entry.adapter,
                    advertisementCount: entry.advertisementCount,
                    reports: entry.reports.map { ($0.report, age($0.time)) },
                    signal: entry.signal.means(count: slotCount, upTo: slot)
                )
            },
            reportCounts: reportCounts,
            forgottenCount: forgottenCount
        )
    }

    /// The number of slots of the signal that are kept, and the length of one in seconds.
    package static var slots: (count: Int, duration: Int) { (SignalHistory.slotCount, SignalHistory.slotDuration) }

    /// The numbers of devices with readings and of others.
    package var counts: (sensors: Int, others: Int) { state.withLock { ($0.sensors.count, $0.others.count) } }
}
