import BLE
import BLEByteCoding
import BLEGATT
import BluetoothTypes

/// The service that `ble throughput serve` offers, and `ble throughput run` measures.
enum ThroughputService {
    static let uuid: BluetoothUUID = "7E1F8EA8-2C3A-4217-819D-FEE8E5F84A3B"
    /// The characteristic for reading.
    static let source: BluetoothUUID = "7E1F8EA9-2C3A-4217-819D-FEE8E5F84A3B"
    /// The characteristic for writing, with a response or without.
    static let sink: BluetoothUUID = "7E1F8EAA-2C3A-4217-819D-FEE8E5F84A3B"
    /// The characteristic that notifies its subscribers as fast as the link permits.
    static let stream: BluetoothUUID = "7E1F8EAB-2C3A-4217-819D-FEE8E5F84A3B"
    /// A ``ThroughputReport``.
    static let report: BluetoothUUID = "7E1F8EAC-2C3A-4217-819D-FEE8E5F84A3B"

    /// - Parameter length: length of the value to read, in bytes.
    static func definition(length: Int) -> ServiceDefinition {
        ServiceDefinition(
            uuid: uuid,
            characteristics: [
                CharacteristicDefinition(
                    uuid: source,
                    properties: .read,
                    permissions: .read,
                    value: .stored(octets(length))
                ),
                CharacteristicDefinition(
                    uuid: sink,
                    properties: [.write, .writeWithoutResponse],
                    permissions: .write,
                    value: .stored([])
                ),
                CharacteristicDefinition(uuid: stream, properties: .notify, permissions: [], value: .stored([])),
                CharacteristicDefinition(uuid: report, properties: .read, permissions: .read, value: .handled),
            ]
        )
    }

    /// Returns the longest value of a packet without a response, in bytes.
    ///
    /// - Parameter mtu: ATT_MTU; nil if no exchange took place.
    static func greatestLength(mtu: Int?) -> Int {
        min((mtu ?? 23) - 3, maximumAttributeValueLength)
    }

    static func octets(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    }
}
