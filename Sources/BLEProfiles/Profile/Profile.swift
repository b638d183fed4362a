import BluetoothTypes

/// The device that `ble serve` advertises and serves.
package struct Profile: Hashable, Sendable {
    /// The device name, of GAP and of the advertisement.
    package var name: String?
    package var appearance: Appearance?
    /// A random static address for the advertisement.
    package var address: DeviceAddress?
    package var advertise = Advertise()
    package var services: [Service] = []

    package struct Advertise: Hashable, Sendable {
        package var services: [BluetoothUUID] = []
        package var serviceData: [ServiceData] = []
        package var manufacturerData: [AdvertisingData.ManufacturerData] = []
        package var isConnectable = true
        package var interval: Duration = .milliseconds(100)
        package var periodic: Periodic?
        /// The PHY of the data, which needs extended advertising unless it is LE 1M.
        package var phy = PHY.le1M
        /// The preferred coding of the LE Coded PHY.
        package var coding: Coding?
    }

    package enum PHY: String, CaseIterable, Sendable {
        case le1M = "1m"
        case le2M = "2m"
        /// LE Coded, also on the primary channels.
        case coded
    }

    package enum Coding: String, CaseIterable, Sendable {
        case s2
        case s8
    }

    /// A periodic advertising train.
    package struct Periodic: Hashable, Sendable {
        package var interval: Duration = .milliseconds(100)
        /// The AD structures of each event.
        package var data: [UInt8] = []
    }

    package struct ServiceData: Hashable, Sendable {
        package var service: BluetoothUUID
        package var data: [UInt8]
    }

    package struct Service: Hashable, Sendable {
        package var uuid: BluetoothUUID
        package var isPrimary: Bool
        package var handle: AttributeHandle?
        /// Indices in ``Profile/services``.
        package var includes: [Int]
        package var characteristics: [Characteristic]
    }

    package struct Characteristic: Hashable, Sendable {
        package var uuid: BluetoothUUID
        /// The handle of the declaration; the handle of the value is the next.
        package var handle: AttributeHandle?
        package var properties: Set<CharacteristicProperty>
        package var permissions: Set<AttributePermission>
        package var value: [UInt8]
        /// The maximum length of the value, in bytes.
        package var maximumLength: Int
        package var descriptors: [Descriptor]
    }

    package struct Descriptor: Hashable, Sendable {
        package var uuid: BluetoothUUID
        package var handle: AttributeHandle?
        package var value: [UInt8]
        package var permissions: Set<AttributePermission>
    }
}

/// An error in a profile, and its place.
package struct ProfileError: Error, Equatable, CustomStringConvertible {
    /// For example `services[1].characteristics[0].uuid`; empty for the whole profile.
    package var place: String
    package var problem: String

    package var description: String { "\(place.isEmpty ? "the profile" : place): \(problem)" }
}
