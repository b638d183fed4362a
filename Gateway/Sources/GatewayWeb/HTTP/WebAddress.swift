/// Where the web server listens: a port of the loopback interface, `HOST:PORT`, or `:PORT` for all addresses.
package struct WebAddress: Hashable, Sendable, CustomStringConvertible {
    /// The host's name or address; `::` for all addresses.
    package var host: String
    /// The TCP port; 0 for a free one.
    package var port: Int

    /// Creates an address.
    package init(host: String = "127.0.0.1", port: Int) {
        self.host = host
        self.port = port
    }

    /// Parses an address. Returns nil for another text.
    package init?(parsing text: some StringProtocol) {
        let text = String(text)
        guard let colon = text.lastIndex(of: ":") else {
            guard let port = Self.port(text[...]) else { return nil }
            self.init(port: port)
            return
        }
        var host = text[..<colon]
        guard let port = Self.port(text[text.index(after: colon)...]) else { return nil }
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
            guard !host.isEmpty else { return nil }
        } else if host.contains(":") {
            return nil
        }
        let isAllowed = host.unicodeScalars.allSatisfy {
            $0.isASCII && $0.value > 32 && $0 != "/" && $0 != "[" && $0 != "]"
        }
        guard isAllowed else { return nil }
        self.init(host: host.isEmpty ? "::" : String(host), port: port)
    }

    private static func port(_ text: Substring) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let number = Int(text), number <= 65_535
        else { return nil }
        return number
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
