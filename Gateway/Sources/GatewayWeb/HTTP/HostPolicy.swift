import NIOCore

/// Which values of the Host field are those of this machine.
///
/// A web page of the internet can let its own name lead to this machine, and then read from it like from its own server
/// (DNS rebinding). Its name is in the Host field then. So only these are accepted: addresses, names without a dot,
/// names that exist in local networks only, and the names that the configuration has.
struct HostPolicy: Sendable {
    private let names: Set<String>
    /// The top-level domains of local networks (RFC 6761, RFC 6762, RFC 8375), and two that are in common use.
    private static let localDomains = [".localhost", ".local", ".home.arpa", ".internal", ".lan"]

    /// - Parameter names: further names of this machine.
    init(names: [String]) {
        self.names = Set(names.map { $0.lowercased() })
    }

    /// Whether the value of a Host field, with or without a port, is accepted.
    func accepts(_ value: String) -> Bool {
        var host = value.lowercased()
        if host.hasPrefix("[") {
            guard let end = host.firstIndex(of: "]") else { return false }
            let rest = host[host.index(after: end)...]
            guard rest.isEmpty || rest.hasPrefix(":") else { return false }
            return Self.isAddress(String(host[host.index(after: host.startIndex)..<end]))
        }
        if let colon = host.firstIndex(of: ":") { host = String(host[..<colon]) }
        if host.hasSuffix(".") { host.removeLast() }
        guard !host.isEmpty else { return false }
        return !host.contains(".") || Self.isAddress(host) || names.contains(host)
            || Self.localDomains.contains { host.hasSuffix($0) }
    }

    private static func isAddress(_ text: String) -> Bool {
        (try? SocketAddress(ipAddress: text, port: 0)) != nil
    }
}
