import BLESMP
import BluetoothHost
import BluetoothTypes

/// The saved form of a bond: keys in hexadecimal digits, the most significant byte first.
///
/// Unknown members are left out when a bond is written again, because they belong to its earlier state.
struct BondEntry: Codable {
    let record: BondRecord

    private enum Key: String, CodingKey {
        case address
        case addressType
        case centralKey
        case peripheralKey
        case peerIOCapability
        case identityResolvingKey
        case peerSigningKey
        case ownSigningKey
        case server
        case client
        case advertisingKey
        case privileged
    }

    init(record: BondRecord) {
        self.record = record
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        var bond = Bond(identity: try container.decodeAddress(.address, type: .addressType))
        bond.centralKey = try container.decodeIfPresent(LongTermKeyEntry.self, forKey: .centralKey)?.key
        bond.peripheralKey = try container.decodeIfPresent(LongTermKeyEntry.self, forKey: .peripheralKey)?.key
        // An unknown value does not damage the bond.
        let capability = try? container.decodeIfPresent(UInt8.self, forKey: .peerIOCapability)
        bond.peerIOCapability = capability.flatMap { IOCapability(rawValue: $0) }
        if container.contains(.identityResolvingKey) {
            bond.identityResolvingKey = try container.decodeSecret(.identityResolvingKey)
        }
        bond.peerSigningKey = try container.decodeIfPresent(SigningKeyEntry.self, forKey: .peerSigningKey)?.key
        bond.ownSigningKey = try container.decodeIfPresent(SigningKeyEntry.self, forKey: .ownSigningKey)?.key
        var record = BondRecord(bond: bond)
        record.isPrivileged =
            try container.decodeIfPresent(Bool.self, forKey: .privileged) ?? bond.strength?.isAuthenticated ?? false
        record.serverState = try container.decodeIfPresent(ServerStateEntry.self, forKey: .server)?.state
        // Only older versions wrote the data here. The client can discover it again, so damage to it does not damage
        // the bond.
        record.clientCache = (try? container.decodeIfPresent(DatabaseCacheEntry.self, forKey: .client))?.cache
        record.advertisingKey = try container.decodeIfPresent(String.self, forKey: .advertisingKey).map { digits in
            guard let key = [UInt8](hexadecimal: digits).flatMap(EncryptedDataKeyMaterial.init(decoding:)) else {
                throw container.problem(.advertisingKey, "this is not 48 hexadecimal digits")
            }
            return key
        }
        self.record = record
    }

    func encode(to encoder: any Encoder) throws {
        let bond = record.bond
        var container = encoder.container(keyedBy: Key.self)
        try container.encodeAddress(bond.identity, .address, type: .addressType)
        try container.encodeIfPresent(bond.centralKey.map(LongTermKeyEntry.init), forKey: .centralKey)
        try container.encodeIfPresent(bond.peripheralKey.map(LongTermKeyEntry.init), forKey: .peripheralKey)
        try container.encodeIfPresent(bond.peerIOCapability?.rawValue, forKey: .peerIOCapability)
        try container.encodeIfPresent(bond.identityResolvingKey?.digits, forKey: .identityResolvingKey)
        try container.encodeIfPresent(bond.peerSigningKey.map(SigningKeyEntry.init), forKey: .peerSigningKey)
        try container.encodeIfPresent(bond.ownSigningKey.map(SigningKeyEntry.init), forKey: .ownSigningKey)
        try container.encodeIfPresent(record.advertisingKey?.encoded.hexadecimal, forKey: .advertisingKey)
        try container.encode(record.isPrivileged, forKey: .privileged)
        try container.encodeIfPresent(record.serverState.map(ServerStateEntry.init), forKey: .server)
    }
}

/// The saved form of a host's identity.
struct IdentityEntry: Codable {
    let identity: HostIdentity

    private enum Key: String, CodingKey {
        case staticAddress
        case resolvingKey
    }

    init(identity: HostIdentity) {
        self.identity = identity
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        let text = try container.decode(String.self, forKey: .staticAddress)
        guard let address = DeviceAddress(text, isRandom: true), address.kind == .randomStatic else {
            throw container.problem(.staticAddress, "this is no random static address")
        }
        identity = HostIdentity(staticAddress: address, resolvingKey: try container.decodeSecret(.resolvingKey))
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode("\(identity.staticAddress)", forKey: .staticAddress)
        try container.encode(identity.resolvingKey.digits, forKey: .resolvingKey)
    }
}
