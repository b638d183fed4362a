import Foundation

/// Requests the status of a running gateway.
struct StatusClient {
    let path: String
    /// How long the gateway may take to answer, in seconds.
    var timeout = 5

    /// Whether a process listens on the socket.
    var isServed: Bool {
        guard let descriptor = try? connect() else { return false }
        close(descriptor)
        return true
    }

    /// Returns the status as JSON.
    ///
    /// - Throws: ``StateError`` if no gateway answers.
    func read() throws(StateError) -> Data {
        let descriptor = try connect()
        defer { close(descriptor) }
        var limit = timeval(tv_sec: timeout, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var answer = Data()
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = Foundation.read(descriptor, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw .failed("the gateway does not answer", path, errno) }
            if count == 0 { return answer }
            answer.append(contentsOf: buffer[..<count])
        }
    }

    private func connect() throws(StateError) -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .failed("no socket", path, errno) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let isLongEnough = withUnsafeMutableBytes(of: &address.sun_path) { target in
            guard bytes.count < target.count else { return false }
            target.copyBytes(from: bytes)
            return true
        }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                isLongEnough ? Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) : -1
            }
        }
        guard result == 0 else {
            close(descriptor)
            throw StateError(
                path: path,
                failure: "no gateway runs with this state directory",
                advice: "start one with `ble-gateway run`, or name its directory with --state-dir"
            )
        }
        return descriptor
    }
}
