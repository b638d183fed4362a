/// The address of a broker, with the user name for it: `mqtt://host`, `mqtts://user@host:8883`.
package struct BrokerAddress: Hashable, Sendable, CustomStringConvertible {
    /// The host's name or address.
    package var host: String
    /// The TCP port.
    package var port: Int
    /// Whether the connection uses TLS.
    package var usesTLS: Bool
    /// The user's name; nil if the broker needs none.
    package var user: String?

    /// Parses an address. Returns nil for another text, also for one with a password, which other users of the machine
    /// could see.
    package init?(parsing text: some StringProtocol) {
        let (scheme, separator, rest) = Self.split(String(text), at: "://")
        guard separator, scheme == "mqtt" || scheme == "mqtts" else { return nil }
        usesTLS = scheme == "mqtts"
        let parts = rest.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
        if parts.count == 2 {
            guard !parts[0].isEmpty, !parts[0].contains(":") else { return nil }
            user = String(parts[0])
        }
        var place = parts.last.map(String.init) ?? ""
        if place.hasSuffix("/") { place.removeLast() }
        var portText: Substring?
        if place.hasPrefix("["), let end = place.firstIndex(of: "]") {
            let rest = place[place.index(after: end)...]
            guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
            portText = rest.isEmpty ? nil : rest.dropFirst()
            host = String(place[place.index(after: place.startIndex)..<end])
        } else {
            let pieces = place.split(separator: ":", omittingEmptySubsequences: false)
            guard (1...2).contains(pieces.count) else { return nil }
            host = String(pieces[0])
            portText = pieces.count == 2 ? pieces[1] : nil
        }
        port = usesTLS ? 8883 : 1883
        if let portText {
            guard let number = Int(portText), (1...65_535).contains(number) else { return nil }
            port = number
        }
        let isAllowed = host.unicodeScalars.allSatisfy { $0.isASCII && $0.value > 32 && $0 != "/" }
        guard !host.isEmpty, isAllowed else { return nil }
    }

    private static func split(_ text: String, at separator: String) -> (String, Bool, String) {
        guard let range = text.firstRange(of: separator) else { return (text, false, "") }
        return (String(text[..<range.lowerBound]), true, String(text[range.upperBound...]))
    }

    package var description: String {
        let place = host.contains(":") ? "[\(host)]" : host
        return "\(usesTLS ? "mqtts" : "mqtt")://\(user.map { "\($0)@" } ?? "")\(place):\(port)"
    }
}
