import Glibc

/// An address to which hosts connect to reach a controller of this process. The notation is that of
/// ``AdapterSpecification``: `unix:PATH` or `tcp:HOST:PORT`.
package enum ListeningAddress: Hashable, Sendable {
    case unix(path: String)
    /// Port 0 means any free port.
    case tcp(host: String, port: UInt16)

    /// Parses the notation.
    package init(parsing text: String) throws(ListeningAddressError) {
        guard text.hasPrefix("unix:") || text.hasPrefix("tcp:") else {
            throw ListeningAddressError(text: text, advice: "use unix:PATH or tcp:HOST:PORT")
        }
        do throws(AdapterSpecification.Complaint) {
            switch try AdapterSpecification.parse(text, lowestPort: 0) {
            case .unix(let path): self = .unix(path: path)
            case .tcp(let host, let port): self = .tcp(host: host, port: port)
            case .hci, .address, .automatic, .seqpacket, .serial, .virtual:
                throw AdapterSpecification.Complaint(advice: "use unix:PATH or tcp:HOST:PORT")
            }
        } catch {
            throw ListeningAddressError(text: text, advice: error.advice)
        }
    }
}

extension ListeningAddress: CustomStringConvertible {
    /// The notation that ``init(parsing:)`` parses. A host accepts it as the name of its adapter.
    package var description: String {
        switch self {
        case .unix(let path): AdapterSpecification.unix(path: path).description
        case .tcp(let host, let port): AdapterSpecification.tcp(host: host, port: port).description
        }
    }
}

/// The error for a listening address that cannot be parsed. The description lists the accepted forms.
package struct ListeningAddressError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The text that was parsed.
    package let text: String
    /// The reason why it cannot be parsed, or the accepted form.
    package let advice: String

    package var description: String { "\"\(text)\" is nothing to listen on: \(advice)" }
}

/// The reason why a controller cannot listen on an address. The description says what to do.
package enum ListeningError: Error, Hashable, Sendable {
    /// Another program listens there already.
    case addressInUse(ListeningAddress)
    /// The path exists and is not a socket. It is left unchanged.
    case occupied(path: String)
    /// This user may not use the folder of the socket, or the port.
    case permissionDenied(ListeningAddress)
    /// The folder of the socket does not exist.
    case noFolder(path: String)
    /// The host name has no address.
    case unknownHost(String)
    /// The system could not look up the host name now. It may have an address.
    case hostLookupFailed(String)
    /// The address of the host is not an address of this machine.
    case elsewhere(host: String)
    /// The system refuses for another reason.
    case failed(ListeningAddress, errno: Int32)

    init(_ address: ListeningAddress, errno code: Int32) {
        self =
            switch (address, code) {
            case (_, EADDRINUSE): .addressInUse(address)
            case (_, EACCES), (_, EPERM), (_, EROFS): .permissionDenied(address)
            case (.unix(let path), ENOENT), (.unix(let path), ENOTDIR): .noFolder(path: path)
            case (.tcp(let host, _), EADDRNOTAVAIL): .elsewhere(host: host)
            default: .failed(address, errno: code)
            }
    }
}

extension ListeningError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .addressInUse(.unix(let path)): "another program listens on \(path); stop it or choose another path"
        case .addressInUse(.tcp(_, let port)):
            "port \(port) is in use; stop the program that has it, choose another, or 0 for any that is free"
        case .occupied(let path): "\(path) exists and is not a socket; remove it or choose another path"
        case .permissionDenied(.unix(let path)):
            "no permission to make the socket \(path); choose a folder that you may write to"
        case .permissionDenied(.tcp(_, let port)): "no permission for port \(port); choose one from 1024 on"
        case .noFolder(let path): "the folder of \(path) does not exist; make it or choose another path"
        case .unknownHost(let host): "the host \(host) has no address; check its name"
        case .hostLookupFailed(let host): hostLookupDescription(host)
        case .elsewhere(let host):
            "\(host) is not an address of this machine; use 127.0.0.1, or 0.0.0.0 for all that it has"
        case .failed(let address, let errno):
            "cannot listen on \(address): \(describeWithAdvice(errno))"
        }
    }
}
