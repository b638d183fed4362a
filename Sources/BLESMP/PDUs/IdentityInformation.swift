import BLEByteCoding
import BluetoothTypes

/// Distributes an identity resolving key; ``IdentityAddressInformation`` follows (Vol 3, Part H, 3.6.4).
public struct IdentityInformation: SecurityManagerCommand {
    public static let code = CommandCode.identityInformation

    /// The IRK; zero if the device has none.
    public var resolvingKey: UInt128

    /// An Identity Information with its parameter.
    public init(resolvingKey: UInt128) {
        self.resolvingKey = resolvingKey
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readCode(.identityInformation)
        resolvingKey = try reader.readUInt128()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.code.rawValue)
        buffer.append(resolvingKey)
    }
}

/// Distributes the identity address of the device (Vol 3, Part H, 3.6.5).
public struct IdentityAddressInformation: SecurityManagerCommand {
    public static let code = CommandCode.identityAddressInformation

    /// The public or static random address; zero if the device has none (Vol 3, Part C, 10.7). Decoding rejects any
    /// other.
    public var address: DeviceAddress

    /// An Identity Address Information with its parameters.
    public init(address: DeviceAddress) {
        self.address = address
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readCode(.identityAddressInformation)
        let type = try reader.readUInt8()
        guard type <= 1 else { throw .invalidValue(UInt64(type), field: "address type") }
        address = DeviceAddress(try reader.readUInt48(), isRandom: type == 1)
        try reader.requireEnd()
        guard address.value == 0 || address.isLasting else {
            throw .invalidValue(address.value, field: "identity address")
        }
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.code.rawValue)
        buffer.append(UInt8(address.isRandom ? 1 : 0))
        buffer.appendUInt48(address.value)
    }
}
