import BluetoothTypes

/// The saved form of a UUID.
struct UUIDEntry: Codable {
    let uuid: BluetoothUUID

    init(uuid: BluetoothUUID) {
        self.uuid = uuid
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let uuid = BluetoothUUID(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "this is no UUID")
        }
        self.uuid = uuid
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(uuid.description)
    }
}
