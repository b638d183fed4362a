import BLE
import BLEProfiles
import BluetoothTypes

/// Prints the advertisements of a scan.
struct AdvertisementPrinter {
    private var reader: SensorReader?
    private let keys: [DeviceAddress: EncryptedDataKeyMaterial]
    private let asJSON: Bool
    private let output: @Sendable (String) throws -> Void

    /// - Parameters:
    ///   - reader: decodes the readings of sensors; nil if they are not shown.
    ///   - keys: the keys of the encrypted advertising data of bonded devices.
    ///   - output: prints a line.
    init(
        reader: SensorReader?,
        keys: [DeviceAddress: EncryptedDataKeyMaterial],
        asJSON: Bool,
        output: @escaping @Sendable (String) throws -> Void = { try Output.standard.line($0) }
    ) {
        self.reader = reader
        self.keys = keys
        self.asJSON = asJSON
        self.output = output
    }

    /// Prints an advertisement, after the number of those that were dropped before it.
    mutating func print(_ advertisement: Advertisement) throws {
        if advertisement.droppedBefore > 0 {
            let dropped = DroppedLine(count: advertisement.droppedBefore, kind: .advertisement)
            try output(asJSON ? dropped.json.description : dropped.text)
        }
        let sighting = Sighting(advertisement, &reader, keys)
        try output(asJSON ? sighting.json.description : sighting.line)
    }
}

extension Sighting {
    /// - Parameters:
    ///   - reader: decodes the readings of sensors; nil if they are not shown.
    ///   - keys: the keys of the encrypted advertising data of bonded devices.
    init(
        _ advertisement: Advertisement,
        _ reader: inout SensorReader?,
        _ keys: [DeviceAddress: EncryptedDataKeyMaterial]
    ) {
        let received = advertisement.data
        let data = keys[advertisement.address].map { received.decrypted(with: $0) } ?? received
        self.init(
            address: advertisement.address,
            rssi: advertisement.rssi,
            isConnectable: advertisement.isConnectable,
            data: data,
            sensors: reader?.reports(in: data, from: advertisement.address, at: advertisement.time)
        )
    }
}
