/// The type of a field: how it is decoded, encoded, documented and dissected.
enum FieldType: Equatable, Sendable {
    /// `u16`, `x64`, `i8`, `i16`; `u16*625us`, whose unit is 0.625 ms.
    case integer(Integer, layout: String, unit: String?)
    /// `handle`: a connection handle.
    case handle
    /// `flag`: a byte that is 0 or 1.
    case flag
    /// `typedAddress`: a type, public or random, and an address.
    case typedAddress
    /// `randomAddress`, `publicAddress`: an address without its type.
    case address(isRandom: Bool)
    /// `PeerAddress`: a type of any value, and an address.
    case peerAddress
    /// A type of `Types.hci`.
    case value(ValueType)

    /// An integer on the wire, least significant byte first.
    enum Integer: String, Sendable {
        case u8, u16, u24, u32, u64, u128, i8, i16

        /// The Swift type.
        var swiftName: String {
            switch self {
            case .u8: "UInt8"
            case .u16: "UInt16"
            case .u24, .u32: "UInt32"
            case .u64: "UInt64"
            case .u128: "UInt128"
            case .i8: "Int8"
            case .i16: "Int16"
            }
        }

        /// The name of the wire type in `ByteReader.read…` and, if it has no Swift type, in `PacketBuffer.append…`.
        var wireName: String { self == .u24 ? "UInt24" : swiftName }

        /// The number of bytes on the wire.
        var byteCount: Int {
            switch self {
            case .u8, .i8: 1
            case .u16, .i16: 2
            case .u24: 3
            case .u32: 4
            case .u64: 8
            case .u128: 16
            }
        }
    }

    /// Finds a type by its name in a table.
    init?(_ name: String, valueTypes: [String: ValueType]) {
        switch name {
        case "handle": self = .handle
        case "flag": self = .flag
        case "typedAddress": self = .typedAddress
        case "randomAddress": self = .address(isRandom: true)
        case "publicAddress": self = .address(isRandom: false)
        case "PeerAddress": self = .peerAddress
        case "i8dBm": self = .integer(.i8, layout: name, unit: "in dBm")
        default:
            if let type = valueTypes[name] {
                self = .value(type)
            } else {
                self.init(integer: name)
            }
        }
    }

    private init?(integer name: String) {
        let parts = name.split(separator: "*", omittingEmptySubsequences: false)
        let width = parts[0].hasPrefix("x") ? "u" + parts[0].dropFirst() : String(parts[0])
        guard parts.count <= 2, let integer = Integer(rawValue: width), name != "x128" else { return nil }
        var unit: String?
        if parts.count == 2 {
            guard parts[0].hasPrefix("u"), let words = Self.unit(parts[1]) else { return nil }
            unit = words
        }
        self = .integer(integer, layout: name, unit: unit)
    }

    /// The words for a unit of time: `625us` becomes "in units of 0.625 ms".
    private static func unit(_ text: Substring) -> String? {
        let digits = text.prefix { $0.isNumber }
        guard let count = Int(digits), count > 0 else { return nil }
        switch text.dropFirst(digits.count) {
        case "us": return count == 1 ? "in microseconds" : "in units of \(thousandths(count)) ms"
        case "ms" where count < 1000: return count == 1 ? "in milliseconds" : "in units of \(count) ms"
        case "ms": return "in units of \(thousandths(count)) s"
        case "s": return count == 1 ? "in seconds" : "in units of \(count) s"
        default: return nil
        }
    }

    /// A number of thousandths as a decimal fraction: 625 becomes `0.625`, 1250 becomes `1.25`.
    private static func thousandths(_ count: Int) -> String {
        var digits = String(count % 1000 + 1000).dropFirst()
        while digits.last == "0" { digits.removeLast() }
        return digits.isEmpty ? "\(count / 1000)" : "\(count / 1000).\(digits)"
    }
}

extension FieldType {
    /// The Swift type of the property.
    var swiftName: String {
        switch self {
        case .integer(let integer, _, _): integer.swiftName
        case .handle: "ConnectionHandle"
        case .flag: "Bool"
        case .typedAddress, .address: "DeviceAddress"
        case .peerAddress: "PeerAddress"
        case .value(let type): type.name
        }
    }

    /// The unit of the property, such as "in dBm".
    var unit: String? {
        guard case .integer(_, _, let unit) = self else { return nil }
        return unit
    }

    /// The documentation of a property whose field has none.
    var documentation: String? {
        switch self {
        case .handle: "The connection, 0x0000 to 0x0EFF."
        case .value(let type): type.documentation
        case .integer, .flag, .typedAddress, .address, .peerAddress: nil
        }
    }

    /// The number of bytes on the wire; nil if it varies.
    var byteCount: Int? {
        switch self {
        case .integer(let integer, _, _): integer.byteCount
        case .handle: 2
        case .flag: 1
        case .address: 6
        case .typedAddress, .peerAddress: 7
        case .value(let type): type.byteCount
        }
    }

    /// Whether the layout has two words: the type of the address, and the address.
    var isTypedAddress: Bool { self == .typedAddress || self == .peerAddress }

    /// The type in the layout; for an address with its type, that of the address.
    var layout: String {
        switch self {
        case .integer(_, let layout, _): layout
        case .handle: "handle"
        case .flag: "@enable"
        case .typedAddress, .peerAddress, .address: "address"
        case .value(let type): type.layout
        }
    }

    /// The expression that reads the field `name` of the specification.
    func decoding(_ name: String) -> String {
        switch self {
        case .integer(.i16, _, _): "Int16(bitPattern: try reader.readUInt16())"
        case .integer(let integer, _, _): "try reader.read\(integer.wireName)()"
        case .handle: "try reader.readConnectionHandle()"
        case .flag: "try reader.readFlag(\"\(name)\")"
        case .typedAddress: "try reader.readDeviceAddress(\"\(name)\")"
        case .address(let isRandom): "DeviceAddress(try reader.readUInt48(), isRandom: \(isRandom))"
        case .peerAddress: "try PeerAddress(decoding: &reader)"
        case .value(let type): type.decoding(name)
        }
    }

    /// The statement that appends the property.
    func encoding(_ property: String) -> String {
        switch self {
        case .integer(.u24, _, _): "buffer.appendUInt24(\(property))"
        case .integer(.i16, _, _): "buffer.append(UInt16(bitPattern: \(property)))"
        case .integer, .typedAddress: "buffer.append(\(property))"
        case .handle: "buffer.append(\(property).rawValue)"
        case .flag: "buffer.append(flag: \(property))"
        case .address: "buffer.appendUInt48(\(property).value)"
        case .peerAddress: "\(property).encode(into: &buffer)"
        case .value(let type): type.encoding(property)
        }
    }
}
