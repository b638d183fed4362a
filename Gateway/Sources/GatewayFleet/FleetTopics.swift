/// The topics of a fleet at a broker.
public struct FleetTopics: Hashable, Sendable {
    /// What a topic is about.
    public enum Subject: Hashable, Sendable {
        /// The readings of a tag, by a gateway.
        case readings(address: UInt64, gateway: String)
        /// The state of a gateway: `online` or `offline`.
        case status(gateway: String)
        /// The connections that a gateway can make.
        case connections(gateway: String)
    }

    /// The first part of all topics.
    public let prefix: String

    /// Creates the topics with a prefix, for example `ble`.
    public init(prefix: String) {
        self.prefix = prefix
    }

    /// What a consumer subscribes to.
    public var filters: [String] {
        ["\(prefix)/gateways/+/status", "\(prefix)/gateways/+/connections", "\(prefix)/sensors/+/+"]
    }

    /// Returns the subject of a topic; nil for another topic.
    public func subject(of topic: String) -> Subject? {
        var topic = topic
        return topic.withUTF8 { subject(of: $0) }
    }

    private func subject(of topic: UnsafeBufferPointer<UInt8>) -> Subject? {
        guard topic.starts(with: prefix.utf8) else { return nil }
        let levels = topic.dropFirst(prefix.utf8.count).split(
            separator: UInt8(ascii: "/"),
            maxSplits: 4,
            omittingEmptySubsequences: false
        )
        guard levels.count == 4, levels[0].isEmpty else { return nil }
        if levels[1].elementsEqual("sensors".utf8), let address = Self.address(levels[2]),
            let gateway = Self.name(levels[3])
        {
            return .readings(address: address, gateway: gateway)
        }
        guard levels[1].elementsEqual("gateways".utf8), let gateway = Self.name(levels[2]) else { return nil }
        if levels[3].elementsEqual("status".utf8) { return .status(gateway: gateway) }
        return levels[3].elementsEqual("connections".utf8) ? .connections(gateway: gateway) : nil
    }

    private static func name(_ level: Slice<UnsafeBufferPointer<UInt8>>) -> String? {
        guard (1...FleetMessage.nameLimit).contains(level.count), level.allSatisfy(FleetMessage.isIdentifierByte) else {
            return nil
        }
        return String(decoding: level, as: UTF8.self)
    }

    private static func address(_ level: Slice<UnsafeBufferPointer<UInt8>>) -> UInt64? {
        guard level.count == 12 else { return nil }
        var address: UInt64 = 0
        for byte in level {
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            default: return nil
            }
            address = address << 4 | UInt64(digit)
        }
        return address
    }

    /// The topic of the combined observations of a tag.
    public func observations(of address: UInt64) -> String { "\(prefix)/fleet/sensors/\(Self.digits(of: address))" }

    /// The topic of the gateway that should connect to a tag.
    public func election(of address: UInt64) -> String { "\(prefix)/fleet/gateways/\(Self.digits(of: address))" }

    /// What to subscribe to for the gateways that should connect to tags.
    public var electionFilter: String { "\(prefix)/fleet/gateways/+" }

    /// Returns the tag whose gateway a topic is about; nil for another topic.
    public func electedTag(of topic: String) -> UInt64? {
        let start = "\(prefix)/fleet/gateways/"
        guard topic.hasPrefix(start) else { return nil }
        var digits = topic.dropFirst(start.count)
        guard let address = digits.withUTF8({ Self.address($0[...]) }), election(of: address) == topic else {
            return nil
        }
        return address
    }

    /// The twelve hexadecimal digits of an address.
    static func digits(of address: UInt64) -> String {
        let digits = String(address, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 12 - digits.utf8.count)) + digits
    }

    /// An address as six pairs of hexadecimal digits with colons.
    static func text(of address: UInt64) -> String {
        var digits = digits(of: address)[...]
        var pairs: [Substring] = []
        while !digits.isEmpty {
            pairs.append(digits.prefix(2))
            digits = digits.dropFirst(2)
        }
        return pairs.joined(separator: ":")
    }
}
