import BLEProfiles
import BluetoothSensors
import BluetoothTypes

/// An advertiser as a scan shows it.
struct Sighting: Hashable, Sendable {
    var address: DeviceAddress
    /// In dBm, if the controller knows it.
    var rssi: Int?
    var isConnectable: Bool
    var data: AdvertisingData
    /// The readings of sensors; nil if they are not decoded.
    var sensors: [SensorReport]?

    var json: JSON {
        .object(members + (sensors.map { [JSON.Member(key: "sensors", value: .array($0.map(\.json)))] } ?? []))
    }

    private var members: [JSON.Member] {
        [
            .init(key: "event", value: "advertisement"),
            .init(key: "address", value: .string("\(address)")),
            .init(key: "addressType", value: .string(address.typeName)),
            .init(key: "name", value: JSON(data.localName)),
            .init(key: "rssi", value: JSON(rssi)),
            .init(key: "connectable", value: .bool(isConnectable)),
            .init(key: "serviceUUIDs", value: .array(data.serviceUUIDs.map { .string("\($0)") })),
            .init(key: "serviceData", value: .object(serviceData)),
            .init(key: "manufacturerData", value: .object(manufacturerData)),
            .init(key: "txPower", value: JSON(data.txPower.map(Int.init))),
        ]
    }

    private var serviceData: [JSON.Member] {
        data.serviceData.map { JSON.Member(key: "\($0.key)", value: JSON($0.value)) }.sorted { $0.key < $1.key }
    }

    /// By company; of several for one company, the last.
    private var manufacturerData: [JSON.Member] {
        var members: [JSON.Member] = []
        for entry in data.manufacturerData {
            members.removeAll { $0.key == "\(entry.company)" }
            members.append(JSON.Member(key: "\(entry.company)", value: JSON(entry.data)))
        }
        return members
    }

    static let columns = ["ADDRESS", "TYPE", "RSSI", "NAME", "SERVICES AND DATA"]
    /// The columns of a scan that decodes.
    static let columnsWithReadings = ["ADDRESS", "TYPE", "RSSI", "NAME", "READINGS", "SERVICES AND DATA"]

    /// The cells of a table under ``columns``.
    var cells: [String] {
        [
            "\(address)",
            address.typeName,
            rssi.map(String.init) ?? "?",
            data.localName.map(terminalSafe) ?? "-",
            content.joined(separator: ", "),
        ]
    }

    /// The cells under ``columnsWithReadings``.
    var cellsWithReadings: [String] {
        var cells = cells
        cells.insert(readings ?? "-", at: 4)
        return cells
    }

    /// The readings of all sensors; nil if there are none.
    private var readings: String? {
        guard let sensors, !sensors.isEmpty else { return nil }
        return sensors.map(\.line).joined(separator: "; ")
    }

    /// One line with all data.
    var line: String {
        let cells = cells
        var line = "\(cells[0])  \(cells[1].padded(to: 6))  \(cells[2].padded(to: 4)) dBm  \(cells[3])"
        if !isConnectable { line += "  (not connectable)" }
        if let readings { line += "  \(readings)" }
        if !cells[4].isEmpty { line += "  \(cells[4])" }
        return line
    }

    private var content: [String] {
        var parts = data.serviceUUIDs.map { $0.name ?? "\($0)" }
        for member in serviceData { parts.append("\(member.key)=\(member.value.plainText)") }
        for entry in data.manufacturerData {
            parts.append("\(entry.company.name ?? "\(entry.company)")=\(entry.data.hexadecimal)")
        }
        return parts
    }
}

extension JSON {
    /// A string without its quotes; other values as they are.
    fileprivate var plainText: String {
        if case .string(let text) = self { text } else { description }
    }
}

extension DeviceAddress {
    /// `public` or `random`.
    var typeName: String { isRandom ? "random" : "public" }
}
