import BLEByteCoding
import BluetoothTypes

/// The type of another device's address, as a controller reports it (Vol 4, Part E, 7.7.65).
public struct AddressType: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// A public address.
    public static let `public` = AddressType(rawValue: 0x00)
    /// A random address: static or private, resolvable or not.
    public static let random = AddressType(rawValue: 0x01)
    /// The public identity address to which the controller resolved a resolvable private address.
    public static let publicIdentity = AddressType(rawValue: 0x02)
    /// The static random identity address to which the controller resolved a resolvable private address.
    public static let randomIdentity = AddressType(rawValue: 0x03)
    /// A resolvable private address that the controller could not resolve; in directed advertising only.
    public static let unresolved = AddressType(rawValue: 0xFE)
    /// The report has no address.
    public static let anonymous = AddressType(rawValue: 0xFF)
}

/// Another device's address with its type in HCI: sent as the type and 48 bits.
public struct PeerAddress: Hashable, Sendable {
    /// Whether the address is public or random, and whether the controller has resolved it.
    public var type: AddressType
    /// The address as a number of 48 bits; it has no meaning if the type is anonymous.
    public var value: UInt64

    /// Creates an address of the lower 48 bits of `value`. Higher bits are dropped.
    @inlinable
    public init(type: AddressType, value: UInt64) {
        self.type = type
        self.value = value & 0xFFFF_FFFF_FFFF
    }

    /// Creates an address that is public or random, as `address` is.
    @inlinable
    public init(_ address: DeviceAddress) {
        self.init(type: address.isRandom ? .random : .public, value: address.value)
    }

    /// No address: an anonymous advertiser.
    public static let anonymous = PeerAddress(type: .anonymous, value: 0)

    /// The address without the information whether it was resolved; nil if there is none or its type is reserved.
    @inlinable
    public var deviceAddress: DeviceAddress? {
        switch type.rawValue {
        case 0x00, 0x02: DeviceAddress(value, isRandom: false)
        case 0x01, 0x03, 0xFE: DeviceAddress(value, isRandom: true)
        default: nil
        }
    }

    /// Whether the controller resolved a resolvable private address to this identity address.
    @inlinable
    public var isResolvedIdentity: Bool { type == .publicIdentity || type == .randomIdentity }

    @inlinable
    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        type = AddressType(rawValue: try reader.readUInt8())
        value = try reader.readUInt48()
    }

    @inlinable
    func encode(into buffer: inout PacketBuffer) {
        buffer.append(type.rawValue)
        buffer.appendUInt48(value)
    }
}

/// The kind of address that the controller itself uses (Vol 4, Part E, 7.8.5).
public enum OwnAddressType: UInt8, Sendable {
    /// The controller's public address.
    case `public` = 0x00
    /// The random address that the host has set in the controller.
    case random = 0x01
    /// A resolvable private address that the controller generates; the public address if it has no key for the peer.
    case resolvableOrPublic = 0x02
    /// A resolvable private address that the controller generates; the random address if it has no key for the peer.
    case resolvableOrRandom = 0x03
}
