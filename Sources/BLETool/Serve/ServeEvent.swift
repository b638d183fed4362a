import BLE
import BLEProfiles
import BluetoothTypes

/// An event that `ble serve` prints on its standard output, as a line of JSON.
enum ServeEvent: Hashable, Sendable {
    /// The kind of a client's write.
    enum WriteKind: String, Hashable, Sendable {
        case request
        case command
    }

    enum SubscriptionKind: String, Hashable, Sendable {
        case notification
        case indication
    }

    /// A characteristic's value, or a descriptor.
    struct Attribute: Hashable, Sendable {
        /// The characteristic's UUID, if the handle belongs to a published one.
        var uuid: BluetoothUUID?
        var handle: AttributeHandle
        /// Whether the attribute is a descriptor of the characteristic, and not its value.
        var isDescriptor = false
    }

    case ready(adapter: String, address: DeviceAddress)
    case connected(DeviceAddress)
    case disconnected(DeviceAddress, reason: String)
    case read(DeviceAddress, Attribute, offset: Int)
    case write(DeviceAddress, Attribute, value: [UInt8], offset: Int, WriteKind)
    case subscribed(DeviceAddress, Attribute, SubscriptionKind)
    case unsubscribed(DeviceAddress, Attribute, SubscriptionKind)
    case mtu(DeviceAddress, Int)
    /// The link is encrypted, or not any more.
    case encryption(DeviceAddress, KeyStrength?)
    case pairing(DeviceAddress)
    case paired(DeviceAddress, PairingResult)
    case pairingFailed(DeviceAddress, reason: String)
    /// The synchronization with the train was transferred to a client.
    case transferred(DeviceAddress, serviceData: UInt16)
    /// The pairing window is open for this long from now on; nil if it is closed.
    case window(Seconds?)
    case error(String)

    var json: JSON {
        switch self {
        case .ready(let adapter, let address):
            .object([.event("ready"), .init(key: "adapter", value: .string(adapter))] + .peer(address))
        case .connected(let peer):
            .object([.event("connected")] + .peer(peer))
        case .disconnected(let peer, let reason):
            .object([.event("disconnected")] + .peer(peer) + [.init(key: "reason", value: .string(reason))])
        case .read(let peer, let attribute, let offset):
            .object(
                [.event("read")] + .peer(peer) + attribute.members + [.init(key: "offset", value: .integer(offset))]
            )
        case .write(let peer, let attribute, let value, let offset, let kind):
            .object(
                [.event("write")] + .peer(peer) + attribute.members
                    + .value(value, of: attribute.isDescriptor || offset > 0 ? nil : attribute.uuid) + [
                        .init(key: "offset", value: .integer(offset)),
                        .init(key: "kind", value: .string(kind.rawValue)),
                    ]
            )
        case .subscribed(let peer, let attribute, let kind):
            .object(
                [.event("subscribed")] + .peer(peer) + attribute.members
                    + [.init(key: "kind", value: .string(kind.rawValue))]
            )
        case .unsubscribed(let peer, let attribute, let kind):
            .object(
                [.event("unsubscribed")] + .peer(peer) + attribute.members
                    + [.init(key: "kind", value: .string(kind.rawValue))]
            )
        case .transferred(let peer, let serviceData):
            .object(
                [.event("transferred")] + .peer(peer)
                    + [.init(key: "serviceData", value: .integer(Int(serviceData)))]
            )
        case .mtu(let peer, let mtu):
            .object([.event("mtu")] + .peer(peer) + [.init(key: "mtu", value: .integer(mtu))])
        case .encryption(let peer, let strength):
            .object(
                [.event("encryption")] + .peer(peer) + [.init(key: "encrypted", value: .bool(strength != nil))]
                    + (strength?.members ?? [])
            )
        case .pairing(let peer):
            .object([.event("pairing")] + .peer(peer))
        case .paired(let peer, let result):
            .object([.event("paired")] + .peer(peer) + result.members)
        case .pairingFailed(let peer, let reason):
            .object([.event("pairingFailed")] + .peer(peer) + [.init(key: "reason", value: .string(reason))])
        case .window(let time):
            .object([.event("window"), .init(key: "seconds", value: .decimal((time?.duration ?? .zero) / .seconds(1)))])
        case .error(let message):
            ["event": "error", "message": .string(message)]
        }
    }
}

extension ServeEvent.Attribute {
    fileprivate var members: [JSON.Member] {
        [
            .init(key: "characteristic", value: JSON(uuid?.description)),
            .init(key: "handle", value: JSON(Int(handle.rawValue))),
        ]
    }
}

extension JSON.Member {
    static func event(_ name: String) -> JSON.Member {
        JSON.Member(key: "event", value: .string(name))
    }
}

extension [JSON.Member] {
    static func peer(_ address: DeviceAddress) -> [JSON.Member] {
        [
            .init(key: "address", value: .string("\(address)")),
            .init(key: "addressType", value: .string(address.typeName)),
        ]
    }
}
