import Foundation

/// Requests the status of a running gateway.
struct StatusClient {
    let path: String
    /// How long the gateway may take to accept the connection, and then to send each part of its answer, in seconds.
    var timeout = 5

    /// Returns the status as JSON.
    ///
    /// - Throws: ``StateError`` if no gateway answers.
    func read() throws(StateError) -> Data {
        let descriptor = try connect()
        defer { close(descriptor) }
        var answer = Data()
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = Foundation.read(descriptor, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw error(errno) }
            if count == 0 { return answer }
            answer.append(contentsOf: buffer[..<count])
        }
    }

    /// Connects to the socket.
    ///
    /// - Returns: the descriptor of the connection, which the caller closes.
    func connect() throws(StateError) -> Int32 {
        try StatusServer.checkLength(of: path)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .failed("no socket", path, errno) }
        var limit = timeval(tv_sec: timeout, tv_usec: 0)
        // The limit of sending is that of connecting too, which waits while too many other connections do.
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let number = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> Int32 in
                let size = socklen_t(MemoryLayout<sockaddr_un>.size)
                while Foundation.connect(descriptor, address, size) != 0 {
                    if errno != EINTR { return errno }
                }
                return 0
            }
        }
        guard number == 0 else {
            close(descriptor)
            throw error(number)
        }
        return descriptor
    }

    /// The error of a system call on the socket.
    func error(_ number: Int32) -> StateError {
        if let refusal = StateError.refusal(path, number) { return refusal }
        switch number {
        case ENOENT, ECONNREFUSED, ENOTDIR:
            return StateError(
                path: path,
                failure: "no gateway runs with this state directory",
                advice: "start one with `ble-gateway run`, or name its directory with --state-dir"
            )
        case EAGAIN:
            return StateError(
                path: path,
                failure: "the gateway did not answer within \(timeout) s",
                advice: "try again, and restart the gateway if it still does not answer"
            )
        default:
            return StateError(
                path: path,
                failure: "the gateway cannot be reached: \(String(cString: strerror(number)))",
                advice: "try again, and restart the gateway if it still cannot be reached"
            )
        }
    }
}
