/// The address at which hosts reach the harness.
enum ListenAddress: Equatable, Sendable {
    /// A UNIX socket with one packet in each read and write, as in the kernel's HCI sockets.
    case seqpacket(path: String)
    /// A UNIX socket with a stream of H4 packets.
    case unix(path: String)
    /// A TCP socket with a stream of H4 packets, on this machine.
    case tcp(host: String, port: UInt16)
    /// The kernel's virtual controllers: hosts then open a real HCI socket.
    case vhci

    init(parsing text: String) throws(Complaint) {
        if text == "vhci" {
            self = .vhci
            return
        }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let rest = parts.count > 1 ? parts[1] : ""
        switch parts[0] {
        case "seqpacket" where !rest.isEmpty && rest.utf8.count < 108: self = .seqpacket(path: String(rest))
        case "unix" where !rest.isEmpty && rest.utf8.count < 108: self = .unix(path: String(rest))
        case "tcp":
            guard let colon = rest.lastIndex(of: ":"), let port = UInt16(rest[rest.index(after: colon)...]),
                colon != rest.startIndex
            else { throw Complaint("tcp: needs an address and a port, as in tcp:127.0.0.1:0") }
            self = .tcp(host: String(rest[..<colon]), port: port)
        default:
            throw Complaint(
                "\"\(text)\" is nothing to listen on; use seqpacket:PATH, unix:PATH, tcp:ADDRESS:PORT or vhci, "
                    + "a path of at most 107 bytes"
            )
        }
    }
}
