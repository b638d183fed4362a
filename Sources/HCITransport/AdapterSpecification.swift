/// Which controller is meant, and how to reach it, in one notation everywhere.
///
/// - `hci0`, `hci:0`: the kernel's adapter, for this program alone (user channel); `hci0?channel=raw`: beside the
///   kernel's own stack.
/// - `unix:PATH`, `tcp:HOST:PORT`: a stream of H4 packets.
/// - `serial:PATH,BAUD[,flow=rtscts]`: a UART.
/// - `virtual`, `virtual:NAME`: a controller in this process, on the air of that name.
public enum AdapterSpecification: Hashable, Sendable {
    /// The channel of an HCI socket.
    public enum Channel: String, Hashable, Sendable {
        case user
        case raw
    }

    case hci(index: Int, channel: Channel)
    case unix(path: String)
    case tcp(host: String, port: UInt16)
    case serial(path: String, baudRate: Int, usesFlowControl: Bool)
    case virtual(name: String)

    /// Reads the notation.
    public init(parsing text: String) throws(AdapterSpecificationError) {
        if text == "virtual" {
            self = .virtual(name: "")
        } else if let name = text.suffix(after: "virtual:") {
            self = .virtual(name: String(name))
        } else if let path = text.suffix(after: "unix:") {
            guard !path.isEmpty else { throw AdapterSpecificationError(text, "unix: needs a path, as in unix:/tmp/hci") }
            guard path.utf8.count < 108 else { throw AdapterSpecificationError(text, "a socket's path has at most 107 octets") }
            self = .unix(path: String(path))
        } else if let address = text.suffix(after: "tcp:") {
            self = try AdapterSpecification.parseTCP(address, of: text)
        } else if let line = text.suffix(after: "serial:") {
            self = try AdapterSpecification.parseSerial(line, of: text)
        } else if let adapter = text.suffix(after: "hci:") ?? text.suffix(after: "hci") {
            self = try AdapterSpecification.parseHCI(adapter, of: text)
        } else {
            throw AdapterSpecificationError(
                text, "use hci0, unix:PATH, tcp:HOST:PORT, serial:PATH,BAUD or virtual")
        }
    }

    private static func parseHCI(
        _ text: Substring, of whole: String
    ) throws(AdapterSpecificationError) -> AdapterSpecification {
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard let index = parts.first.flatMap({ UInt16($0) }), index < 0xFFFF else {
            throw AdapterSpecificationError(whole, "hci needs the adapter's number, as in hci0")
        }
        guard parts.count > 1 else { return .hci(index: Int(index), channel: .user) }
        guard let channel = parts[1].suffix(after: "channel=").flatMap({ Channel(rawValue: String($0)) }) else {
            throw AdapterSpecificationError(whole, "only ?channel=user or ?channel=raw may follow the adapter")
        }
        return .hci(index: Int(index), channel: channel)
    }

    private static func parseTCP(
        _ text: Substring, of whole: String
    ) throws(AdapterSpecificationError) -> AdapterSpecification {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
            throw AdapterSpecificationError(whole, "tcp: needs a host and a port from 1 to 65535, as in tcp:127.0.0.1:6402")
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            throw AdapterSpecificationError(whole, "an IPv6 address stands in brackets, as in tcp:[::1]:6402")
        }
        guard !host.isEmpty else { throw AdapterSpecificationError(whole, "tcp: needs a host, as in tcp:127.0.0.1:6402") }
        return .tcp(host: String(host), port: port)
    }

    private static func parseSerial(
        _ text: Substring, of whole: String
    ) throws(AdapterSpecificationError) -> AdapterSpecification {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        guard (2...3).contains(parts.count), !parts[0].isEmpty, let rate = Int(parts[1]), rate > 0 else {
            throw AdapterSpecificationError(
                whole, "serial: needs a path and a baud rate, as in serial:/dev/ttyAMA0,115200,flow=rtscts")
        }
        if parts.count == 3, parts[2] != "flow=rtscts" {
            throw AdapterSpecificationError(whole, "only flow=rtscts may follow the baud rate")
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
        case .unix(let path): "unix:\(path)"
        case .tcp(let host, let port): host.contains(":") ? "tcp:[\(host)]:\(port)" : "tcp:\(host):\(port)"
        case .serial(let path, let rate, let usesFlowControl):
            "serial:\(path),\(rate)" + (usesFlowControl ? ",flow=rtscts" : "")
        case .virtual(let name): name.isEmpty ? "virtual" : "virtual:\(name)"
        }
    }
}

/// An adapter's name that cannot be read; the description says what is accepted.
public struct AdapterSpecificationError: Error, Hashable, Sendable, CustomStringConvertible {
    public let text: String
    public let advice: String

    init(_ text: String, _ advice: String) {
        self.text = text
        self.advice = advice
    }

    public var description: String { "\"\(text)\" names no adapter: \(advice)" }
}

extension StringProtocol where SubSequence == Substring {
    fileprivate func suffix(after prefix: String) -> Substring? {
        hasPrefix(prefix) ? dropFirst(prefix.count) : nil
    }
}
