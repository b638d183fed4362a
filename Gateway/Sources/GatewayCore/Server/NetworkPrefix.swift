import NIOCore

/// The part of a network address that one owner has: an IPv4 address, or the first 64 bits of an IPv6 address (RFC
/// 4291, section 2.5.4).
package struct NetworkPrefix: Hashable, Sendable {
    private let text: String

    /// - Parameter address: a network address, or another text, which stands for itself.
    package init(_ address: String) {
        guard case .v6(let socketAddress) = try? SocketAddress(ipAddress: address, port: 0) else {
            text = address
            return
        }
        var number = socketAddress.address.sin6_addr
        let bytes = withUnsafeBytes(of: &number) { Array($0) }
        // An IPv4 client of an IPv6 socket has the IPv4 address in the last four bytes.
        let isMapped = bytes.prefix(12) == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
        text = bytes[isMapped ? 12..<16 : 0..<8].map { "\($0)" }.joined(separator: ".")
    }
}
