/// The topics of a fleet at a broker.
public struct FleetTopics: Hashable, Sendable {
    /// What a topic is about.
    public enum Subject: Hashable, Sendable {
        /// The readings of a tag, by a gateway.
        case readings(address: UInt64, gateway: String)
        /// The state of a gateway: `online` or `offline`.
        case status(gateway: String)
    }

    /// The first part of all topics.
    public let prefix: String

    /// Creates the topics with a prefix, for example `ble`.
    public init(prefix: String) {
        self.prefix = prefix
    }

    /// What a consumer subscribes to.
    public var filters: [String] { ["\(prefix)/gateways/+/status", "\(prefix)/sensors/+/+"] }

    /// Returns the subject of a topic; nil for another topic.
    public func subject(of topic: String) -> Subject? {
        guard topic.hasPrefix(prefix) else { return nil }
        let levels = topic.utf8.dropFirst(prefix.utf8.count).split(
            separator: UInt8(ascii: "/"),
            maxSplits: 4,
            omittingEmptySubsequences: false
        ).map { Substring($0) }
        guard levels.count == 4, levels[0].isEmpty else { return nil }
        if levels[1] == "sensors", let address = Self.address(levels[2]), FleetMessage.isName(levels[3]) {
            return .readings(address: address, gateway: String(levels[3]))
        }
        if levels[1] == "gateways", levels[3] == "status", FleetMessage.isName(levels[2]) {
            return .status(gateway: String(levels[2]))
        }
        return nil
    }

    private static func address(_ text: Substring) -> UInt64? {
        guard text.utf8.count == 12, text.allSatisfy({ $0.isASCII && $0.isHexDigit }) else { return nil }
        return UInt64(text, radix: 16)
    }

    /// The topic of the combined observations of a tag.
    public func observations(of address: UInt64) -> String { "\(prefix)/fleet/sensors/\(Self.digits(of: address))" }

    /// The topic of the gateway that should connect to a tag.
    public func election(of address: UInt64) -> String { "\(prefix)/fleet/gateways/\(Self.digits(of: address))" }

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
