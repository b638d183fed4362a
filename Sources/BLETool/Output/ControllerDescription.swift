import BLEProfiles
import BluetoothTypes

/// A controller as `ble info` shows it.
struct ControllerDescription: Hashable, Sendable {
    var adapter: String
    var publicAddress: DeviceAddress?
    var identityAddress: DeviceAddress
    var hciVersion: String
    var hciSubversion: UInt16
    var linkLayerVersion: String
    var linkLayerSubversion: UInt16
    var manufacturer: CompanyIdentifier
    /// The bits of the LE features (Vol 6, Part B, 4.6).
    var features: UInt64
    var aclDataLength: Int
    var aclPacketCount: Int
    var usesExtendedCommands: Bool
    var advertisingSets: Int
    var advertisingDataLength: Int
    var filterAcceptListSize: Int
    var resolvingListSize: Int
    var supportedStates: UInt64

    var json: JSON {
        [
            "adapter": .string(adapter),
            "publicAddress": JSON(publicAddress?.description),
            "address": .string("\(identityAddress)"),
            "addressType": .string(identityAddress.typeName),
            "hciVersion": .string(hciVersion),
            "hciSubversion": JSON(Int(hciSubversion)),
            "linkLayerVersion": .string(linkLayerVersion),
            "linkLayerSubversion": JSON(Int(linkLayerSubversion)),
            "manufacturer": .string("\(manufacturer)"),
            "manufacturerName": JSON(manufacturer.name),
            "features": .array(featureNames.map { .string($0) }),
            "aclDataLength": JSON(aclDataLength),
            "aclPacketCount": JSON(aclPacketCount),
            "extendedCommands": .bool(usesExtendedCommands),
            "advertisingSets": JSON(advertisingSets),
            "advertisingDataLength": JSON(advertisingDataLength),
            "filterAcceptListSize": JSON(filterAcceptListSize),
            "resolvingListSize": JSON(resolvingListSize),
            "supportedStates": .string(String(supportedStates, radix: 16)),
        ]
    }

    var lines: [String] {
        let rows: [(String, String)] = [
            ("Adapter", adapter),
            ("Address", "\(identityAddress) (\(identityAddress.typeName))"),
            ("Public address", publicAddress.map { "\($0)" } ?? "none"),
            ("Manufacturer", "\(manufacturer.name ?? "unknown") (\(manufacturer))"),
            ("HCI", "\(hciVersion), subversion \(hciSubversion)"),
            ("Link Layer", "\(linkLayerVersion), subversion \(linkLayerSubversion)"),
            ("ACL buffers", "\(aclPacketCount) of \(aclDataLength) bytes"),
            (
                "Commands",
                usesExtendedCommands ? "extended advertising and scanning" : "legacy advertising and scanning"
            ),
            (
                "Advertising",
                "\(advertisingSets) \(advertisingSets == 1 ? "set" : "sets"), up to \(advertisingDataLength) bytes"
            ),
            ("Lists", "\(filterAcceptListSize) to accept, \(resolvingListSize) to resolve"),
        ]
        let width = 16
        var lines = rows.map { "\($0.padded(to: width))\($1)" }
        for (index, name) in featureNames.enumerated() {
            lines.append((index == 0 ? "Features" : "").padded(to: width) + name)
        }
        return lines
    }

    private var featureNames: [String] {
        (0..<64).filter { features >> UInt64($0) & 1 == 1 }.map { bit in
            ControllerDescription.featureNames.indices.contains(bit)
                ? ControllerDescription.featureNames[bit] : "Feature \(bit)"
        }
    }

    /// By bit (Vol 6, Part B, 4.6).
    private static let featureNames = [
        "LE Encryption", "Connection Parameters Request Procedure", "Extended Reject Indication",
        "Peripheral-initiated Features Exchange", "LE Ping", "LE Data Packet Length Extension", "LL Privacy",
        "Extended Scanning Filter Policies", "LE 2M PHY", "Stable Modulation Index - Transmitter",
        "Stable Modulation Index - Receiver", "LE Coded PHY", "LE Extended Advertising", "LE Periodic Advertising",
        "Channel Selection Algorithm #2", "LE Power Class 1", "Minimum Number of Used Channels Procedure",
        "Connection CTE Request", "Connection CTE Response", "Connectionless CTE Transmitter",
        "Connectionless CTE Receiver", "Antenna Switching During CTE Transmission (AoD)",
        "Antenna Switching During CTE Reception (AoA)", "Receiving Constant Tone Extensions",
        "Periodic Advertising Sync Transfer - Sender", "Periodic Advertising Sync Transfer - Recipient",
        "Sleep Clock Accuracy Updates", "Remote Public Key Validation", "Connected Isochronous Stream - Central",
        "Connected Isochronous Stream - Peripheral", "Isochronous Broadcaster", "Synchronized Receiver",
        "Connected Isochronous Stream (Host Support)", "LE Power Control Request", "LE Power Control Request",
        "LE Path Loss Monitoring", "Periodic Advertising ADI Support", "Connection Subrating",
        "Connection Subrating (Host Support)", "Channel Classification", "Advertising Coding Selection",
        "Advertising Coding Selection (Host Support)", "Feature 42", "Periodic Advertising with Responses - Advertiser",
        "Periodic Advertising with Responses - Scanner",
    ]
}
