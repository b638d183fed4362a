/// How a characteristic's value may be used (Vol 3, Part G, 3.3.1.1).
public struct CharacteristicProperties: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The value can be broadcast in advertising data.
    public static let broadcast = CharacteristicProperties(rawValue: 0x01)
    /// The value can be read.
    public static let read = CharacteristicProperties(rawValue: 0x02)
    /// The value can be written without a response.
    public static let writeWithoutResponse = CharacteristicProperties(rawValue: 0x04)
    /// The value can be written with a response.
    public static let write = CharacteristicProperties(rawValue: 0x08)
    /// The server can notify the value, without a confirmation.
    public static let notify = CharacteristicProperties(rawValue: 0x10)
    /// The server can indicate the value, with a confirmation.
    public static let indicate = CharacteristicProperties(rawValue: 0x20)
    /// The value can be written with a signature, without a response.
    public static let authenticatedSignedWrites = CharacteristicProperties(rawValue: 0x40)
    /// Further properties are in the Characteristic Extended Properties descriptor (Vol 3, Part G, 3.3.3.1).
    public static let extendedProperties = CharacteristicProperties(rawValue: 0x80)
}

/// The bits of a Client Characteristic Configuration descriptor (Vol 3, Part G, 3.3.3.3).
public struct ClientConfiguration: OptionSet, Hashable, Sendable {
    public let rawValue: UInt16

    @inlinable
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The server notifies the value.
    public static let notification = ClientConfiguration(rawValue: 0x0001)
    /// The server indicates the value.
    public static let indication = ClientConfiguration(rawValue: 0x0002)
}
