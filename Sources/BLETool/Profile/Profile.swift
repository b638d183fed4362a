import BluetoothTypes

/// What `ble serve` advertises and serves.
struct Profile: Hashable, Sendable {
    /// The device name, of GAP and of the advertisement.
    var name: String?
    var appearance: Appearance?
    /// A random static address for the advertisement.
    var address: DeviceAddress?
    var advertise = Advertise()
    var services: [Service] = []

    struct Advertise: Hashable, Sendable {
        var services: [BluetoothUUID] = []
        var manufacturerData: [AdvertisingData.ManufacturerData] = []
        var isConnectable = true
        var interval: Duration = .milliseconds(100)
    }

    struct Service: Hashable, Sendable {
        var uuid: BluetoothUUID
        var isPrimary: Bool
        var handle: AttributeHandle?
        /// Places in ``Profile/services``.
        var includes: [Int]
        var characteristics: [Characteristic]
    }

    struct Characteristic: Hashable, Sendable {
        var uuid: BluetoothUUID
        /// The handle of the declaration; the value's is the next.
        var handle: AttributeHandle?
        var properties: Set<CharacteristicProperty>
        var permissions: Set<AttributePermission>
        var value: [UInt8]
        /// The longest value in octets.
        var maximumLength: Int
        var descriptors: [Descriptor]
    }

    struct Descriptor: Hashable, Sendable {
        var uuid: BluetoothUUID
        var handle: AttributeHandle?
        var value: [UInt8]
        var permissions: Set<AttributePermission>
    }
}

/// What is wrong with a profile, and where.
struct ProfileError: Error, Equatable, CustomStringConvertible {
    /// As in `services[1].characteristics[0].uuid`; empty for the whole profile.
    var place: String
    var problem: String

    var description: String { "\(place.isEmpty ? "the profile" : place): \(problem)" }
}
