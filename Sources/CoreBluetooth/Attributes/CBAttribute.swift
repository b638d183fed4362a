import Foundation

/// An attribute in a server's database: a service, a characteristic or a descriptor.
open class CBAttribute: NSObject, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its properties are constant.

    /// The type of the attribute.
    public let uuid: CBUUID

    init(uuid: CBUUID) {
        self.uuid = uuid
    }
}

/// The permissions of clients for a characteristic's value on a local server.
public struct CBAttributePermissions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// Centrals may read the value.
    public static let readable = CBAttributePermissions(rawValue: 0x01)
    /// Centrals may write the value.
    public static let writeable = CBAttributePermissions(rawValue: 0x02)
    /// Reading requires an encrypted link.
    public static let readEncryptionRequired = CBAttributePermissions(rawValue: 0x04)
    /// Writing requires an encrypted link.
    public static let writeEncryptionRequired = CBAttributePermissions(rawValue: 0x08)
}

/// The supported uses of a characteristic's value (Vol 3, Part G, 3.3.1.1). For a local characteristic, also whether
/// subscribing requires encryption.
public struct CBCharacteristicProperties: OptionSet, Hashable, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// The value may be broadcast. Only shown and declared: this host broadcasts no values.
    public static let broadcast = CBCharacteristicProperties(rawValue: 0x01)
    /// The value can be read.
    public static let read = CBCharacteristicProperties(rawValue: 0x02)
    /// The value can be written without a response, by a Write Command.
    public static let writeWithoutResponse = CBCharacteristicProperties(rawValue: 0x04)
    /// The value can be written with a response.
    public static let write = CBCharacteristicProperties(rawValue: 0x08)
    /// The peripheral can notify the value: it sends changes without a confirmation.
    public static let notify = CBCharacteristicProperties(rawValue: 0x10)
    /// The peripheral can indicate the value: it sends changes, and the central confirms each.
    public static let indicate = CBCharacteristicProperties(rawValue: 0x20)
    /// The value can be written by signed commands. This host sends none. It accepts those of bonded centrals if the
    /// characteristic is writeable, and reports them as writes without response.
    public static let authenticatedSignedWrites = CBCharacteristicProperties(rawValue: 0x40)
    /// The descriptor Characteristic Extended Properties (2900) has further properties.
    public static let extendedProperties = CBCharacteristicProperties(rawValue: 0x80)
    /// Notifications require an encrypted link. For local characteristics only; not sent.
    public static let notifyEncryptionRequired = CBCharacteristicProperties(rawValue: 0x100)
    /// Indications require an encrypted link. For local characteristics only; not sent.
    public static let indicateEncryptionRequired = CBCharacteristicProperties(rawValue: 0x200)
}

/// Whether the peer confirms a write.
public enum CBCharacteristicWriteType: Int, Sendable {
    /// By a request. The peer confirms it, and
    /// ``CBPeripheralDelegate/peripheral(_:didWriteValueFor:error:)-(_,CBCharacteristic,_)`` has the result.
    case withResponse = 0
    /// By a command. Nothing reports the result; see ``CBPeripheral/canSendWriteWithoutResponse``.
    case withoutResponse = 1
}
