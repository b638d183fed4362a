import Foundation
import NIOCore

/// The reason why the gateway cannot accept clients.
public struct ListenError: Error, Hashable, CustomStringConvertible {
    /// The address to listen on.
    public let host: String
    /// The TCP port to listen on.
    public let port: Int
    /// The number of the system's error.
    public let errorNumber: Int32

    public var description: String {
        let reason = String(cString: strerror(errorNumber))
        return "cannot listen on \(host), port \(port): \(reason); \(advice)"
    }

    private var advice: String {
        switch errorNumber {
        case EADDRINUSE: "the port is in use: stop the other program, or choose another port with --port"
        case EACCES where port < 1024: "use a port from 1024, or give the process CAP_NET_BIND_SERVICE"
        case EADDRNOTAVAIL: "use an address of this machine with --host"
        default: "check --host and --port"
        }
    }
}
