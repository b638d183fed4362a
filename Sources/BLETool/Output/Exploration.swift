import BLEATT
import BLEProfiles
import BluetoothSensors
import BluetoothTypes

/// All that a peer's attribute database holds, with the values that could be read.
struct Exploration: Hashable, Sendable {
    struct Service: Hashable, Sendable {
        var uuid: BluetoothUUID
        var isPrimary: Bool
        var handle: AttributeHandle
        var endHandle: AttributeHandle
        /// The handles of the services that it includes.
        var includes: [AttributeHandle]
        var characteristics: [Characteristic]
    }

    struct Characteristic: Hashable, Sendable {
        var uuid: BluetoothUUID
        var handle: AttributeHandle
        var valueHandle: AttributeHandle
        var properties: [CharacteristicProperty]
        /// Nil if the characteristic cannot be read.
        var value: Reading?
        var descriptors: [Descriptor]

        /// The content of the Characteristic Presentation Format descriptor; nil if there is none, or several.
        var format: PresentationFormat? {
            let formats = descriptors.filter { $0.uuid == .characteristicPresentationFormat }
            guard formats.count == 1, case .value(let value) = formats[0].value else { return nil }
            return PresentationFormat(decoding: value)
        }
    }

    struct Descriptor: Hashable, Sendable {
        var uuid: BluetoothUUID
        var handle: AttributeHandle
        var value: Reading?
    }

    /// The result of reading an attribute.
    enum Reading: Hashable, Sendable {
        case value([UInt8])
        case failed(ATTErrorCode)
    }

    var address: DeviceAddress
    var mtu: Int
    /// The ATT_MTU of each enhanced bearer.
    var enhancedBearerMTUs: [Int] = []
    var services: [Service]
}

extension Exploration {
    var json: JSON {
        .object(
            [.init(key: "address", value: .string("\(address)")), .init(key: "mtu", value: .integer(mtu))]
                + enhancedBearerMembers + [.init(key: "services", value: .array(services.map(\.json)))]
        )
    }

    /// Nothing if the link has no enhanced bearers.
    private var enhancedBearerMembers: [JSON.Member] {
        enhancedBearerMTUs.isEmpty
            ? [] : [.init(key: "enhancedBearerMTUs", value: .array(enhancedBearerMTUs.map { .integer($0) }))]
    }

    private var enhancedBearerText: String {
        if enhancedBearerMTUs.isEmpty { return "" }
        let mtus = enhancedBearerMTUs.map { "\($0)" }.joined(separator: ", ")
        return "  enhanced bearers: \(enhancedBearerMTUs.count), MTU \(mtus)"
    }

    /// A tree with a line for each attribute that has a meaning of its own.
    var tree: [String] {
        let nodes = services.map { service in
            Node(text: service.title, children: service.nodes)
        }
        return ["\(address)  MTU \(mtu)\(enhancedBearerText)"] + Node.lines(of: nodes)
    }
}

extension Exploration.Service {
    fileprivate var json: JSON {
        [
            "uuid": .string("\(uuid)"),
            "name": JSON(uuid.name),
            "primary": .bool(isPrimary),
            "handle": JSON(Int(handle.rawValue)),
            "endHandle": JSON(Int(endHandle.rawValue)),
            "includes": .array(includes.map { JSON(Int($0.rawValue)) }),
            "characteristics": .array(characteristics.map(\.json)),
        ]
    }

    fileprivate var title: String {
        "\(handle)-\(endHandle)  \(uuid.title)" + (isPrimary ? "" : "  (secondary)")
    }

    fileprivate var nodes: [Node] {
        includes.map { Node(text: "includes the service at \($0)") }
            + characteristics.map { Node(text: $0.title, children: $0.descriptors.map { Node(text: $0.title) }) }
    }
}

extension Exploration.Characteristic {
    fileprivate var json: JSON {
        .object(
            [
                .init(key: "uuid", value: .string("\(uuid)")),
                .init(key: "name", value: JSON(uuid.name)),
                .init(key: "handle", value: JSON(Int(handle.rawValue))),
                .init(key: "valueHandle", value: JSON(Int(valueHandle.rawValue))),
                .init(key: "properties", value: .array(properties.map { .string($0.rawValue) })),
            ] + value.members(of: uuid, format) + [.init(key: "descriptors", value: .array(descriptors.map(\.json)))]
        )
    }

    fileprivate var title: String {
        let properties = properties.map(\.rawValue).joined(separator: ", ")
        return "\(valueHandle)  \(uuid.title)  [\(properties)]\(value.text(of: uuid, format))"
    }
}

extension Exploration.Descriptor {
    fileprivate var json: JSON {
        .object(
            [
                .init(key: "uuid", value: .string("\(uuid)")),
                .init(key: "handle", value: JSON(Int(handle.rawValue))),
            ] + value.members(of: uuid)
        )
    }

    fileprivate var title: String { "\(handle)  \(uuid.title)\(value.text(of: uuid))" }
}

extension Exploration.Reading? {
    fileprivate func members(of uuid: BluetoothUUID, _ format: PresentationFormat? = nil) -> [JSON.Member] {
        switch self {
        case .value(let value): .value(value, of: uuid, format: format)
        case .failed(let error): [.init(key: "error", value: .string(error.identifier))]
        case nil: []
        }
    }

    fileprivate func text(of uuid: BluetoothUUID, _ format: PresentationFormat? = nil) -> String {
        switch self {
        case .value(let value): "  \(readable(value, of: uuid, format: format, greatestCount: 64))"
        case .failed(let error): "  (\(error))"
        case nil: ""
        }
    }
}

extension BluetoothUUID {
    /// The name before the UUID, if it has one: `Battery Level 2A19`.
    fileprivate var title: String { name.map { "\($0) \(self)" } ?? description }
}

/// A line of a tree with those under it.
private struct Node {
    var text: String
    var children: [Node] = []

    static func lines(of nodes: [Node], indent: String = "") -> [String] {
        nodes.enumerated().flatMap { index, node in
            let isLast = index == nodes.count - 1
            return [indent + (isLast ? "└── " : "├── ") + node.text]
                + lines(of: node.children, indent: indent + (isLast ? "    " : "│   "))
        }
    }
}
