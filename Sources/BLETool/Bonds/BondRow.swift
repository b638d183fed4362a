import BLE
import BLEProfiles
import BLESMP
import BluetoothHost
import BluetoothTypes

/// A bond as `ble bonds list` shows it: all but its keys.
struct BondRow: Hashable, Sendable {
    static let columns = ["HOST", "ADDRESS", "TYPE", "PAIRED BY", "KEYS"]

    let host: String
    let record: BondRecord

    private var bond: Bond { record.bond }

    var cells: [String] {
        [terminalSafe(host), "\(bond.identity)", bond.identity.typeName, pairing, keys.joined(separator: ", ")]
    }

    /// How the devices were paired.
    private var pairing: String {
        guard let strength = bond.strength else { return "-" }
        var words = [
            strength.isSecureConnections ? "Secure Connections" : "legacy",
            strength.isAuthenticated ? "authenticated" : "unauthenticated",
        ]
        if strength.keySize < 16 { words.append("\(strength.keySize) bytes") }
        return words.joined(separator: ", ")
    }

    /// The purposes of the keys.
    private var keys: [String] {
        var keys: [String] = []
        if bond.centralKey != nil { keys.append("central") }
        if bond.peripheralKey != nil { keys.append("peripheral") }
        if bond.identityResolvingKey != nil { keys.append("resolve") }
        if bond.ownSigningKey != nil { keys.append("sign") }
        if bond.peerSigningKey != nil { keys.append("verify") }
        return keys
    }

    var json: JSON {
        .object(
            BondRow.members("bond", host, bond.identity) + [
                .init(key: "secureConnections", value: bond.strength.map { .bool($0.isSecureConnections) } ?? nil),
                .init(key: "authenticated", value: bond.strength.map { .bool($0.isAuthenticated) } ?? nil),
                .init(key: "keySize", value: JSON(bond.strength.map { Int($0.keySize) })),
                .init(key: "keys", value: .array(keys.map { .string($0) })),
                .init(key: "cachedServices", value: JSON(record.clientCache?.services.count)),
            ]
        )
    }

    /// The members that all events of a bond share.
    static func members(_ event: String, _ host: String, _ peer: DeviceAddress) -> [JSON.Member] {
        [
            .init(key: "event", value: .string(event)),
            .init(key: "host", value: .string(host)),
            .init(key: "address", value: .string("\(peer)")),
            .init(key: "addressType", value: .string(peer.typeName)),
        ]
    }
}
