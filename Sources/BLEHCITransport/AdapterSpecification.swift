import BluetoothTypes

/// A controller and the way to reach it, in one notation for all programs.
///
/// - `hci0`, `hci:0`: the kernel's adapter, for this program alone (user channel). `hci0?channel=raw` shares it with
///   the kernel's own stack.
/// - `addr:00:11:22:33:44:55`: the kernel's adapter with this public address, whatever its number is. It may be
///   followed by `?channel=raw` too.
/// - `auto`: the kernel's first adapter that is free; see ``candidates(in:)``.
/// - `unix:PATH`, `tcp:HOST:PORT`: a stream of H4 packets. An IPv6 address is written in brackets.
/// - `seqpacket:PATH`: a UNIX socket with one packet in each read and write, like the kernel's HCI sockets.
/// - `serial:PATH,BAUD[,flow=rtscts]`: a UART.
/// - `virtual`, `virtual:NAME`: a controller in this process, on the air with that name.
public enum AdapterSpecification: Hashable, Sendable {
    /// The channel of an HCI socket.
    public enum Channel: String, Hashable, Sendable {
        /// The program has exclusive use of the adapter. The adapter must be down.
        case user
        /// The program shares the adapter with the kernel's stack. The adapter must be up.
        case raw
    }

    /// An adapter of the kernel. The index is below 65535.
    case hci(index: Int, channel: Channel)
    /// The adapter of the kernel that has this public address.
    case address(DeviceAddress, channel: Channel)
    /// The first free adapter of the kernel, on the user channel.
    case automatic
    /// A UNIX stream socket. The path has at most 107 bytes.
    case unix(path: String)
    /// A UNIX socket of sequenced packets, in place of a kernel adapter. The path has at most 107 bytes.
    case seqpacket(path: String)
    /// A TCP stream. The host is a name or an address; an IPv6 address has no brackets here.
    case tcp(host: String, port: UInt16)
    /// A UART. The rate is one of ``baudRates``.
    case serial(path: String, baudRate: Int, usesFlowControl: Bool)
    /// A controller in this process. The air without a name has the empty name.
    case virtual(name: String)

    /// The rates at which a serial line can run, in baud.
    public static let baudRates = [
        1200, 2400, 4800, 9600, 19_200, 38_400, 57_600, 115_200, 230_400, 460_800, 500_000, 576_000, 921_600, 1_000_000,
        1_152_000, 1_500_000, 2_000_000, 2_500_000, 3_000_000, 3_500_000, 4_000_000,
    ]

    /// Parses the notation.
    public init(parsing text: String) throws(AdapterSpecificationError) {
        do throws(Complaint) {
            self = try AdapterSpecification.parse(text)
        } catch {
            throw AdapterSpecificationError(text: text, advice: error.advice)
        }
    }

    /// The reason why a part cannot be parsed, or the accepted form.
    struct Complaint: Error {
        let advice: String
    }

    /// - Parameter lowestPort: 0 if the system may choose a TCP port.
    static func parse(_ text: String, lowestPort: Int = 1) throws(Complaint) -> AdapterSpecification {
        if text == "auto" { return .automatic }
        if let adapter = text.suffix(after: "addr:") { return try parseAddress(adapter) }
        if text == "virtual" { return .virtual(name: "") }
        if let name = text.suffix(after: "virtual:") { return try parseVirtual(name) }
        if let path = text.suffix(after: "unix:") { return .unix(path: try parsePath(path, of: "unix")) }
        if let path = text.suffix(after: "seqpacket:") { return .seqpacket(path: try parsePath(path, of: "seqpacket")) }
        if let address = text.suffix(after: "tcp:") { return try parseTCP(address, lowestPort) }
        if let line = text.suffix(after: "serial:") { return try parseSerial(line) }
        if let adapter = text.suffix(after: "hci:") ?? text.suffix(after: "hci") { return try parseHCI(adapter) }
        throw Complaint(
            advice: "use hci0, addr:ADDRESS, auto, unix:PATH, seqpacket:PATH, tcp:HOST:PORT, serial:PATH,BAUD "
                + "or virtual"
        )
    }

    private static func parseVirtual(_ name: Substring) throws(Complaint) -> AdapterSpecification {
        guard !name.isEmpty else { throw Complaint(advice: "virtual: needs the name of an air, as in virtual:lab") }
        return .virtual(name: String(name))
    }

    private static func parsePath(_ path: Substring, of kind: String) throws(Complaint) -> String {
        guard !path.isEmpty else { throw Complaint(advice: "\(kind): needs a path, as in \(kind):/tmp/bt-server-le") }
        guard path.utf8.count < 108 else { throw Complaint(advice: "a socket's path has at most 107 bytes") }
        return String(path)
    }

    private static func parseHCI(_ text: Substring) throws(Complaint) -> AdapterSpecification {
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard let index = parts[0].decimal, index < 0xFFFF else {
            throw Complaint(advice: "hci needs the adapter's number, as in hci0")
        }
        return .hci(index: index, channel: try parseChannel(parts.dropFirst().first))
    }

    private static func parseAddress(_ text: Substring) throws(Complaint) -> AdapterSpecification {
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = DeviceAddress(String(parts[0]), isRandom: false), address.value != 0 else {
            throw Complaint(advice: "addr: needs the adapter's address, as in addr:00:1A:7D:DA:71:13")
        }
        return .address(address, channel: try parseChannel(parts.dropFirst().first))
    }

    private static func parseChannel(_ text: Substring?) throws(Complaint) -> Channel {
        guard let text else { return .user }
        guard let channel = text.suffix(after: "channel=").flatMap({ Channel(rawValue: String($0)) }) else {
            throw Complaint(advice: "only ?channel=user or ?channel=raw may follow the adapter")
        }
        return channel
    }

    private static func parseTCP(_ text: Substring, _ lowestPort: Int) throws(Complaint) -> AdapterSpecification {
        guard let colon = text.lastIndex(of: ":"),
            let port = text[text.index(after: colon)...].decimal, (lowestPort...0xFFFF).contains(port)
        else {
            throw Complaint(
                advice: "tcp: needs a host and a port from \(lowestPort) to 65535, as in tcp:127.0.0.1:6402"
            )
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            throw Complaint(advice: "an IPv6 address stands in brackets, as in tcp:[::1]:6402")
        }
        guard !host.isEmpty, !host.contains(where: { "[]/ ".contains($0) }) else {
            throw Complaint(advice: "tcp: needs a host's name or address, as in tcp:127.0.0.1:6402")
        }
        return .tcp(host: String(host), port: UInt16(port))
    }

    private static func parseSerial(_ text: Substring) throws(Complaint) -> AdapterSpecification {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        guard (2...3).contains(parts.count), !parts[0].isEmpty, let rate = parts[1].decimal else {
            throw Complaint(
                advice: "serial: needs a path and a baud rate, as in serial:/dev/ttyAMA0,115200,flow=rtscts"
            )
        }
        guard baudRates.contains(rate) else {
            throw Complaint(
                advice: "\(rate) is no rate of a serial line; use \(baudRates.map(String.init).joined(separator: ", "))"
            )
        }
        if parts.count == 3, parts[2] != "flow=rtscts" {
            throw Complaint(advice: "only flow=rtscts may follow the baud rate")
        }
        return .serial(path: String(parts[0]), baudRate: rate, usesFlowControl: parts.count == 3)
    }
}

extension AdapterSpecification: CustomStringConvertible {
    /// The notation that ``init(parsing:)`` reads.
    public var description: String {
        switch self {
        case .hci(let index, .user): "hci\(index)"
        case .hci(let index, .raw): "hci\(index)?channel=raw"
        case .address(let address, .user): "addr:\(address)"
        case .address(let address, .raw): "addr:\(address)?channel=raw"
        case .automatic: "auto"
        case .unix(let path): "unix:\(path)"
        case .seqpacket(let path): "seqpacket:\(path)"
        case .tcp(let host, let port): host.contains(":") ? "tcp:[\(host)]:\(port)" : "tcp:\(host):\(port)"
        case .serial(let path, let rate, let usesFlowControl):
            "serial:\(path),\(rate)" + (usesFlowControl ? ",flow=rtscts" : "")
        case .virtual(let name): name.isEmpty ? "virtual" : "virtual:\(name)"
        }
    }
}

/// The error for an adapter's name that cannot be parsed. The description lists the accepted forms.
public struct AdapterSpecificationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The text that was parsed.
    public let text: String
    /// The reason why it cannot be parsed, or the accepted form.
    public let advice: String

    public var description: String { "\"\(text)\" names no adapter: \(advice)" }
}

extension StringProtocol where SubSequence == Substring {
    fileprivate func suffix(after prefix: String) -> Substring? {
        hasPrefix(prefix) ? dropFirst(prefix.count) : nil
    }

    /// The value of a string of decimal digits, or nil if it contains any other character.
    fileprivate var decimal: Int? {
        utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int(self) : nil
    }
}
