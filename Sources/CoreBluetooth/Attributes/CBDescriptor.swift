import BluetoothTypes
import Foundation
import Synchronization

/// A descriptor of a characteristic, with its last value.
open class CBDescriptor: CBAttribute, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    struct Content {
        weak var characteristic: CBCharacteristic?
        var value: (any Sendable)?
    }

    /// The handle of a remote descriptor.
    let handle: AttributeHandle?
    private let content: Mutex<Content>

    init(uuid: CBUUID, handle: AttributeHandle?, characteristic: CBCharacteristic?, value: (any Sendable)? = nil) {
        self.handle = handle
        content = Mutex(Content(characteristic: characteristic, value: value))
        super.init(uuid: uuid)
    }

    /// The characteristic that contains the descriptor.
    open var characteristic: CBCharacteristic? { content.withLock { $0.characteristic } }

    /// The last value that was read: an `NSNumber` for Extended Properties and both configurations, a `String` for the
    /// User Description, `Data` for others.
    open var value: Any? {
        let value = content.withLock { $0.value }
        return value
    }

    func setCharacteristic(_ characteristic: CBCharacteristic?) {
        content.withLock { $0.characteristic = characteristic }
    }

    /// Stores a value that was read.
    func setValue(_ octets: [UInt8]) {
        let value = CBDescriptor.value(octets, of: uuid.value)
        content.withLock { $0.value = value }
    }

    /// Returns the value for the app from a descriptor's bytes.
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
/// The host creates the other descriptors that characteristics need.
open class CBMutableDescriptor: CBDescriptor, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    /// - Precondition: `uuid` is 2901 and `value` is a `String`, or `uuid` is 2904 and `value` is `Data`.
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

    /// The published value.
    var octets: [UInt8] {
        switch value {
        case let text as String: Array(text.utf8)
        case let data as Data: Array(data)
        default: []
        }
    }
}
