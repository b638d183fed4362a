import BLECapture
import BluetoothTypes

/// A condition that selects packets. Several filters must all accept a packet.
package enum PacketFilter: Hashable, Sendable {
    /// Packets of this adapter.
    case adapter(UInt16)
    /// Packets that contain the address, and packets of links to it.
    case address(UInt64)
    /// Packets of the link or stream with this connection handle.
    case link(UInt16)
    /// Packets that have this layer.
    case layer(Layer.Kind)
    /// Packets with this opcode: commands, events that answer the command, or ATT PDUs, whose opcode is one byte.
    case opcode(UInt16)
    /// ATT PDUs that name this attribute.
    case handle(UInt16)
    /// Packets that are malformed.
    case malformed

    /// Parses `adapter=hci0`, `address=F0:01:02:03:04:05`, `link=0x40`, `layer=att`, `opcode=0x200D`, `handle=0x2A` or
    /// `malformed`. Returns nil otherwise.
    package init?(parsing text: String) {
        if text == "malformed" {
            self = .malformed
            return
        }
        let parts = text.split(separator: "=", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        let value = String(parts[1])
        switch parts[0] {
        case "adapter":
            guard let index = UInt16(value.hasPrefix("hci") ? String(value.dropFirst(3)) : value) else { return nil }
            self = .adapter(index)
        case "address":
            guard let address = DeviceAddress(value, isRandom: false) else { return nil }
            self = .address(address.value)
        case "layer":
            guard let kind = Layer.Kind(rawValue: value.lowercased()) else { return nil }
            self = .layer(kind)
        case "link":
            guard let number = PacketFilter.number(value), number <= 0x0FFF else { return nil }
            self = .link(number)
        case "opcode":
            guard let number = PacketFilter.number(value) else { return nil }
            self = .opcode(number)
        case "handle":
            guard let number = PacketFilter.number(value) else { return nil }
            self = .handle(number)
        default: return nil
        }
    }

    private static func number(_ text: String) -> UInt16? {
        text.hasPrefix("0x") || text.hasPrefix("0X") ? UInt16(text.dropFirst(2), radix: 16) : UInt16(text)
    }

    /// Whether the filter may accept a packet with this outermost layer. Other packets need not be described.
    package func mayAccept(_ kind: CapturedPacketKind?) -> Bool {
        switch self {
        case .layer(.att), .layer(.smp), .layer(.l2cap), .layer(.acl), .handle: kind == .acl
        case .layer(.command): kind == .command
        case .layer(.event): kind == .event
        case .layer(.synchronous): kind == .synchronous
        case .layer(.iso): kind == .iso
        case .layer(.note): kind == nil
        case .adapter, .address, .link, .opcode, .malformed: true
        }
    }

    /// Whether the filter accepts a described packet.
    package func accepts(_ packet: PacketDescription) -> Bool {
        switch self {
        case .adapter(let index): packet.adapter == index
        case .address(let address):
            packet.link?.peer?.address == address
                || packet.layers.contains { $0.fields.contains { $0.value.contains(address: address) } }
        case .link(let handle):
            packet.link?.handle == handle || packet.layers.contains { $0.contains(connectionHandle: handle) }
        case .layer(let kind): packet.layers.contains { $0.kind == kind }
        case .opcode(let opcode):
            packet.layers.contains { layer in
                layer.head.contains { $0.contains(opcode, named: "opcode") }
                    || layer.fields.contains { $0.contains(opcode, named: "commandOpcode") }
            }
        case .handle(let handle):
            packet.layers.contains { layer in
                layer.kind == .att && layer.fields.contains { $0.containsAttribute(handle) }
            }
        case .malformed: !packet.malformed.isEmpty
        }
    }
}

extension Layer {
    /// Whether the layer names the connection handle of a link or stream.
    fileprivate func contains(connectionHandle handle: UInt16) -> Bool {
        switch kind {
        case .command, .event:
            fields.contains { field in
                ["connectionHandle", "aclConnectionHandle", "cisConnectionHandle"].contains { key in
                    field.contains(handle, named: key)
                }
            }
        case .acl, .synchronous, .iso: head.contains { $0.contains(handle, named: "handle") }
        case .l2cap, .att, .smp, .note: false
        }
    }
}

extension Field {
    fileprivate func contains(_ number: UInt16, named key: String) -> Bool {
        switch value {
        case .hexadecimal(let value, _), .named(let value, _): name.key == key && value == UInt64(number)
        case .list(let values):
            values.contains {
                if case .fields(let fields) = $0 { fields.contains { $0.contains(number, named: key) } } else { false }
            }
        case .fields(let fields): fields.contains { $0.contains(number, named: key) }
        default: false
        }
    }

    /// Whether the field names the attribute, by itself or in a list. The ends of a range do not count.
    fileprivate func containsAttribute(_ handle: UInt16) -> Bool {
        contains(handle, named: "handle") || contains(handle, named: "valueHandle")
    }
}

extension Value {
    fileprivate func contains(address: UInt64) -> Bool {
        switch self {
        case .address(let value): value == address
        case .list(let values): values.contains { $0.contains(address: address) }
        case .fields(let fields): fields.contains { $0.value.contains(address: address) }
        default: false
        }
    }
}
