import ByteCoding

/// What one side of a pairing can and wants: the parameters of ``PairingRequest`` and ``PairingResponse``
/// (Vol 3, Part H, 3.5.1).
public struct PairingFeatures: Hashable, Sendable {
    /// The lengths that keys may have, in octets (2.3.4).
    public static let keySizes: ClosedRange<UInt8> = 7...16

    /// What the device can show and take in.
    public var ioCapability: IOCapability
    /// Whether the device has got the other's out of band data (OOB data flag).
    public var hasOutOfBandData: Bool
    /// What the device asks of the pairing (AuthReq).
    public var authenticationRequirements: AuthenticationRequirements
    /// The longest key that the device takes, in octets: 7 to 16.
    public var maximumKeySize: UInt8
    /// What the initiator distributes.
    public var initiatorKeys: DistributedKeys
    /// What the responder distributes.
    public var responderKeys: DistributedKeys

    /// The parameters in their order.
    public init(
        ioCapability: IOCapability,
        hasOutOfBandData: Bool,
        authenticationRequirements: AuthenticationRequirements,
        maximumKeySize: UInt8,
        initiatorKeys: DistributedKeys,
        responderKeys: DistributedKeys
    ) {
        self.ioCapability = ioCapability
        self.hasOutOfBandData = hasOutOfBandData
        self.authenticationRequirements = authenticationRequirements
        self.maximumKeySize = maximumKeySize
        self.initiatorKeys = initiatorKeys
        self.responderKeys = responderKeys
    }

    init(from reader: inout ByteReader) throws(PacketDecodingError) {
        let capability = try reader.readUInt8()
        guard let ioCapability = IOCapability(rawValue: capability) else {
            throw .invalidValue(UInt64(capability), field: "IO capability")
        }
        self.ioCapability = ioCapability
        let flag = try reader.readUInt8()
        guard flag <= 1 else { throw .invalidValue(UInt64(flag), field: "OOB data flag") }
        hasOutOfBandData = flag == 1
        authenticationRequirements = AuthenticationRequirements(rawValue: try reader.readUInt8())
        maximumKeySize = try reader.readUInt8()
        guard Self.keySizes.contains(maximumKeySize) else {
            throw .invalidValue(UInt64(maximumKeySize), field: "maximum encryption key size")
        }
        initiatorKeys = DistributedKeys(rawValue: try reader.readUInt8())
        responderKeys = DistributedKeys(rawValue: try reader.readUInt8())
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(ioCapability.rawValue)
        buffer.append(UInt8(hasOutOfBandData ? 1 : 0))
        buffer.append(authenticationRequirements.rawValue)
        buffer.append(maximumKeySize)
        buffer.append(initiatorKeys.rawValue)
        buffer.append(responderKeys.rawValue)
    }

    /// The 24 bits that go into the DHKey check (2.2.8).
    var ioCapabilityOctets: UInt32 {
        UInt32(authenticationRequirements.rawValue) << 16 | (hasOutOfBandData ? 1 << 8 : 0)
            | UInt32(ioCapability.rawValue)
    }
}

/// What a device asks of a pairing: AuthReq (Vol 3, Part H, 3.5.1, figure 3.3).
public struct AuthenticationRequirements: OptionSet, Hashable, Sendable {
    /// The octet as it is sent, with bits that nothing is known of.
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Keys are to be kept (Bonding_Flags 0b01).
    public static let bonding = AuthenticationRequirements(rawValue: 0x01)
    /// Nobody may be able to stand between (MITM).
    public static let authentication = AuthenticationRequirements(rawValue: 0x04)
    /// LE Secure Connections is supported (SC).
    public static let secureConnections = AuthenticationRequirements(rawValue: 0x08)
    /// The other side is told of each key that is pressed (Keypress).
    public static let keypress = AuthenticationRequirements(rawValue: 0x10)
    /// The link key conversion function h7 is supported (CT2).
    public static let linkKeyConversion = AuthenticationRequirements(rawValue: 0x20)

    /// Whether keys are to be kept; the values of Bonding_Flags that are reserved do not say so.
    public var bonds: Bool { rawValue & 0x03 == 0x01 }
}

/// The kinds of keys that one side distributes (Vol 3, Part H, 3.6.1).
public struct DistributedKeys: OptionSet, Hashable, Sendable {
    /// The octet as it is sent, with bits that nothing is known of.
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// LTK, EDIV and Rand (EncKey); means nothing in LE Secure Connections.
    public static let encryption = DistributedKeys(rawValue: 0x01)
    /// IRK and identity address (IdKey).
    public static let identity = DistributedKeys(rawValue: 0x02)
    /// CSRK (SignKey).
    public static let signing = DistributedKeys(rawValue: 0x04)
    /// A BR/EDR link key is made of the LTK (LinkKey).
    public static let linkKey = DistributedKeys(rawValue: 0x08)

    /// All that are sent over the link.
    static let overLink: DistributedKeys = [.encryption, .identity, .signing]
    /// All that the specification defines.
    static let defined: DistributedKeys = [.encryption, .identity, .signing, .linkKey]
}
