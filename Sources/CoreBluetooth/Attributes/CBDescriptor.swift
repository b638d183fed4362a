import BluetoothTypes
import Foundation
import Synchronization

/// A descriptor of a characteristic, and what has been read of it.
open class CBDescriptor: CBAttribute, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    struct Content {
        weak var characteristic: CBCharacteristic?
        var value: (any Sendable)?
    }

    /// Names a remote descriptor in its server's database.
    let handle: AttributeHandle?
    private let content: Mutex<Content>

    init(uuid: CBUUID, handle: AttributeHandle?, characteristic: CBCharacteristic?, value: (any Sendable)? = nil) {
        self.handle = handle
        content = Mutex(Content(characteristic: characteristic, value: value))
        super.init(uuid: uuid)
    }

    /// The characteristic that has the descriptor.
    open var characteristic: CBCharacteristic? { content.withLock { $0.characteristic } }

    /// The value that was last read: an `NSNumber` for Extended Properties and the two configurations, a `String` for the
    /// User Description, `Data` for others.
    open var value: Any? {
        let value = content.withLock { $0.value }
        return value
    }

    func setCharacteristic(_ characteristic: CBCharacteristic?) {
        content.withLock { $0.characteristic = characteristic }
    }

    /// Takes a value as it was read.
    func setValue(_ octets: [UInt8]) {
        let value = CBDescriptor.value(octets, of: uuid.value)
        content.withLock { $0.value = value }
    }

    /// What apps are given for a descriptor's octets.
    static func value(_ octets: [UInt8], of uuid: BluetoothUUID) -> any Sendable {
        switch uuid {
        case .characteristicExtendedProperties, .clientCharacteristicConfiguration,
            .serverCharacteristicConfiguration:
            NSNumber(value: octets.prefix(2).reversed().reduce(0 as UInt16) { $0 << 8 | UInt16($1) })
        case .characteristicUserDescription: String(decoding: octets, as: UTF8.self)
        default: Data(octets)
        }
    }

    open override var description: String {
        "<\(nameAndAddress), UUID = \(uuid), value = \(value.map { "\($0)" } ?? "(null)")>"
    }
}

/// A descriptor of a local characteristic: a User Description (a `String`) or a Presentation Format (`Data`).
///
/// The other descriptors that characteristics need are made by the host.
open class CBMutableDescriptor: CBDescriptor, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    /// - Precondition: `uuid` is 2901 and `value` a `String`, or 2904 and `Data`.
    public init(type uuid: CBUUID, value: Any?) {
        let constant: any Sendable
        switch (uuid.value, value) {
        case (.characteristicUserDescription, let text as String): constant = text
        case (.characteristicPresentationFormat, let data as Data): constant = data
        case (.characteristicUserDescription, _):
            ProgrammerError.raise("The value of a User Description must be a string")
        case (.characteristicPresentationFormat, _):
            ProgrammerError.raise("The value of a Presentation Format must be data")
        default:
            ProgrammerError.raise(
                "Descriptor \(uuid.uuidString) cannot be made by apps: only User Description (2901) and Presentation Format "
                    + "(2904) can"
            )
        }
        super.init(uuid: uuid, handle: nil, characteristic: nil, value: constant)
    }

    /// The value as it is published.
    var octets: [UInt8] {
        switch value {
        case let text as String: Array(text.utf8)
        case let data as Data: Array(data)
        default: []
        }
    }
}
