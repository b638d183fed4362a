import CBLEBluetooth
import Glibc

/// The controller's end of HCI: accepts a host, and moves whole packets.
final class Endpoint {
    /// The adapter's name for a host.
    let adapter: String
    private let listener: Descriptor?
    /// Whether packets must be separated in a stream.
    private let isStream: Bool
    private var connection: Descriptor?
    private var stream: [UInt8] = []
    /// A buffer for the longest packet: an ACL packet of 65535 bytes.
    private var buffer = [UInt8](repeating: 0, count: 66_000)
    private let socketPath: String?

    /// The kernel's number of the adapter; nil if it is not a kernel adapter.
    let adapterIndex: UInt16?

    init(_ address: ListenAddress) throws(SystemError) {
        switch address {
        case .seqpacket(let path):
            listener = try Endpoint.listen(at: path, on: ble_seqpacket_socket(AF_UNIX))
            adapter = "seqpacket:\(path)"
            (isStream, socketPath, adapterIndex) = (false, path, nil)
        case .unix(let path):
            listener = try Endpoint.listen(at: path, on: ble_stream_socket(AF_UNIX))
            adapter = "unix:\(path)"
            (isStream, socketPath, adapterIndex) = (true, path, nil)
        case .tcp(let host, let port):
            let (socket, port) = try Endpoint.listen(on: host, port)
            listener = socket
            adapter = "tcp:\(host):\(port)"
            (isStream, socketPath, adapterIndex) = (true, nil, nil)
        case .vhci:
            let (device, index) = try Endpoint.makeVirtualController()
            listener = nil
            connection = device
            adapter = "hci\(index)"
            (isStream, socketPath, adapterIndex) = (false, nil, index)
        }
    }

    deinit {
        if let socketPath { unlink(socketPath) }
    }

    var isConnected: Bool { connection != nil }

    /// The descriptor that becomes readable when there is work.
    var awaited: Int32? { connection?.number ?? listener?.number }

    /// Ends the connection to the host. The host can connect again.
    func close() {
        connection = nil
        stream = []
    }

    // MARK: Packets

    /// Accepts a waiting connection, or receives waiting packets.
    ///
    /// - Throws: the error of a read; ECONNRESET if the connection has ended. Packets received before the error are
    ///   delivered first.
    func receive(_ deliver: ([UInt8]) -> Void) throws(SystemError) {
        guard let connection else { return try accept() }
        do throws(SystemError) {
            while true {
                let count = try uninterrupted { read(connection.number, &buffer, buffer.count) }
                guard count > 0 else { throw SystemError(code: ECONNRESET) }
                if isStream {
                    stream += buffer.prefix(count)
                    while let packet = try takePacket() { deliver(packet) }
                } else {
                    deliver(Array(buffer.prefix(count)))
                }
            }
        } catch {
            if error.wouldBlock { return }
            close()
            throw error
        }
    }

    private func accept() throws(SystemError) {
        guard let listener else { throw SystemError(code: ENOTCONN) }
        let number = Glibc.accept(listener.number, nil, nil)
        if number < 0, SystemError.last.wouldBlock || errno == ECONNABORTED || errno == EINTR { return }
        let accepted = try Descriptor(number)
        _ = fcntl(number, F_SETFD, FD_CLOEXEC)
        setNonBlocking(accepted)
        connection = accepted
    }

    /// Removes and returns the packet at the start of the stream; nil until it is complete (Vol 4, Part A, 2).
    private func takePacket() throws(SystemError) -> [UInt8]? {
        guard let indicator = stream.first else { return nil }
        let length: Int
        switch indicator {
        case 1 where stream.count >= 4: length = 4 + Int(stream[3])
        case 2 where stream.count >= 5: length = 5 + Int(stream.number(at: 3))
        case 3 where stream.count >= 4: length = 4 + Int(stream[3])
        case 5 where stream.count >= 5: length = 5 + Int(stream.number(at: 3) & 0x3FFF)
        case 1, 2, 3, 5: return nil
        default: throw SystemError(code: EPROTO)
        }
        guard stream.count >= length else { return nil }
        defer { stream.removeFirst(length) }
        return Array(stream.prefix(length))
    }

    /// Sends a packet with its indicator. Waits while the host does not read.
    func send(_ packet: [UInt8]) throws(SystemError) {
        guard let connection else { throw SystemError(code: ENOTCONN) }
        var rest = packet[...]
        while !rest.isEmpty {
            do throws(SystemError) {
                let count = try uninterrupted {
                    rest.withUnsafeBytes { octets in
                        adapterIndex == nil
                            ? Glibc.send(connection.number, octets.baseAddress, octets.count, Int32(MSG_NOSIGNAL))
                            : write(connection.number, octets.baseAddress, octets.count)
                    }
                }
                rest = rest.dropFirst(count)
            } catch {
                guard error.wouldBlock else { throw error }
                var entry = pollfd(fd: connection.number, events: Int16(POLLOUT), revents: 0)
                guard poll(&entry, 1, 10_000) > 0 else { throw SystemError(code: ETIMEDOUT) }
            }
        }
    }

    // MARK: Creation

    private static func listen(at path: String, on number: Int32) throws(SystemError) -> Descriptor {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8).prefix($0.count - 1)) }
        let socket = try Descriptor(number)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket.number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0, Glibc.listen(socket.number, 8) == 0 else { throw SystemError.last }
        return socket
    }

    private static func listen(on host: String, _ port: UInt16) throws(SystemError) -> (Descriptor, UInt16) {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { throw SystemError(code: EADDRNOTAVAIL) }
        let socket = try Descriptor(ble_stream_socket(AF_INET))
        var one: Int32 = 1
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = setsockopt(socket.number, SOL_SOCKET, SO_REUSEADDR, &one, 4)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket.number, $0, length) == 0 && Glibc.listen(socket.number, 8) == 0
                    && getsockname(socket.number, $0, &length) == 0
            }
        }
        guard result else { throw SystemError.last }
        return (socket, UInt16(bigEndian: address.sin_port))
    }

    /// Creates a virtual controller of the kernel that uses the returned descriptor.
    private static func makeVirtualController() throws(SystemError) -> (Descriptor, UInt16) {
        let device = try Descriptor(open("/dev/vhci", O_RDWR | O_CLOEXEC))
        let vendorPacket: UInt8 = 0xFF
        let request = [vendorPacket, 0x00]
        _ = try uninterrupted { write(device.number, request, request.count) }
        var answer = [UInt8](repeating: 0, count: 64)
        let count = try uninterrupted { read(device.number, &answer, answer.count) }
        guard count >= 4, answer[0] == vendorPacket else { throw SystemError(code: EPROTO) }
        setNonBlocking(device)
        return (device, answer.number(at: 2))
    }
}
