import BLEByteCoding

/// The capabilities and requirements of one side of a pairing: the parameters of ``PairingRequest`` and
/// ``PairingResponse`` (Vol 3, Part H, 3.5.1).
public struct PairingFeatures: Hashable, Sendable {
    /// The valid key sizes, in bytes (2.3.4).
    public static let keySizes: ClosedRange<UInt8> = 7...16

    /// The input and output capability of the device.
    public var ioCapability: IOCapability
    /// Whether the device has the other device's out-of-band data (OOB data flag).
    public var hasOutOfBandData: Bool
    /// The requirements of the device for the pairing (AuthReq).
    public var authenticationRequirements: AuthenticationRequirements
    /// The longest key that the device supports, in bytes: 7 to 16.
    public var maximumKeySize: UInt8
    /// The keys that the initiator distributes.
    public var initiatorKeys: DistributedKeys
    /// The keys that the responder distributes.
    public var responderKeys: DistributedKeys

    /// Creates features from the parameters, in their order in the PDU.
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

    /// The 24 bits that are part of the DHKey check (2.2.8).
    var ioCapabilityBytes: UInt32 {
        UInt32(authenticationRequirements.rawValue) << 16 | (hasOutOfBandData ? 1 << 8 : 0)
            | UInt32(ioCapability.rawValue)
    }
}

/// The requirements of a device for a pairing: AuthReq (Vol 3, Part H, 3.5.1, figure 3.3).
public struct AuthenticationRequirements: OptionSet, Hashable, Sendable {
    /// The byte as it is sent, including unknown bits.
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Keys are stored (Bonding_Flags 0b01).
    public static let bonding = AuthenticationRequirements(rawValue: 0x01)
    /// Protection against a man in the middle is required (MITM).
    public static let authentication = AuthenticationRequirements(rawValue: 0x04)
    /// LE Secure Connections is supported (SC).
    public static let secureConnections = AuthenticationRequirements(rawValue: 0x08)
    /// The device supports keypress notifications (Keypress).
    public static let keypress = AuthenticationRequirements(rawValue: 0x10)
    /// The link key conversion function h7 is supported (CT2).
    public static let linkKeyConversion = AuthenticationRequirements(rawValue: 0x20)

    /// Whether keys are stored. The reserved values of Bonding_Flags count as no bonding.
    public var bonds: Bool { rawValue & 0x03 == 0x01 }
}

/// The kinds of keys that one side distributes (Vol 3, Part H, 3.6.1).
public struct DistributedKeys: OptionSet, Hashable, Sendable {
    /// The byte as it is sent, including unknown bits.
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// LTK, EDIV and Rand (EncKey); has no meaning in LE Secure Connections.
    public static let encryption = DistributedKeys(rawValue: 0x01)
    /// IRK and identity address (IdKey).
    public static let identity = DistributedKeys(rawValue: 0x02)
    /// CSRK (SignKey).
    public static let signing = DistributedKeys(rawValue: 0x04)
    /// A BR/EDR link key is derived from the LTK (LinkKey).
    public static let linkKey = DistributedKeys(rawValue: 0x08)

    /// All keys that are sent over the link.
    static let overLink: DistributedKeys = [.encryption, .identity, .signing]
    /// All keys that the specification defines.
    static let defined: DistributedKeys = [.encryption, .identity, .signing, .linkKey]
}
