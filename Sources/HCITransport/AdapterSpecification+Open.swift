import CBluetooth
import Dispatch
import Glibc

extension AdapterSpecification {
    /// How long a stream's other end may take to answer.
    private static let connectTimeout: Int32 = 5000

    /// Opens a transport to the controller on `queue`.
    ///
    /// - Parameter makeVirtual: makes a controller in this process on the air of a name; without it ``virtual(name:)``
    ///   cannot be opened.
    public func open(
        on queue: DispatchQueue,
        makeVirtual: (@Sendable (_ name: String) -> any Transport)? = nil
    ) async throws(TransportError) -> any Transport {
        switch self {
        case .virtual(let name):
            guard let makeVirtual else { throw .unsupported("a virtual adapter") }
            return makeVirtual(name)
        case .hci(let index, let channel):
            let descriptor = try AdapterSpecification.openHCI(index: index, channel: channel)
            return DescriptorTransport(descriptor: descriptor, framing: .packets, queue: queue)
        case .unix, .tcp:
            let descriptor = try await offLoop { () throws(TransportError) in try self.connectStream() }
            var isTCP = false
            if case .tcp = self { isTCP = true }
            if isTCP {
                _ = ble_tcp_set_no_delay(descriptor)
                _ = ble_tcp_set_quick_ack(descriptor)
            }
            return DescriptorTransport(descriptor: descriptor, framing: .stream(.fail), isTCP: isTCP, queue: queue)
        case .serial(let path, let rate, let usesFlowControl):
            let descriptor = ble_open(path, O_RDWR | O_NOCTTY | O_NONBLOCK, 0)
            guard descriptor >= 0 else { throw .serialLine(path, errno: -descriptor) }
            let result = ble_serial_configure(descriptor, UInt32(clamping: rate), usesFlowControl ? 1 : 0)
            guard result >= 0 else {
                _ = Glibc.close(descriptor)
                throw .serialLine(path, errno: -result)
            }
            return DescriptorTransport(descriptor: descriptor, framing: .stream(.search), queue: queue)
        }
    }

    private static func openHCI(index: Int, channel: Channel) throws(TransportError) -> Int32 {
        let descriptor = ble_hci_socket()
        guard descriptor >= 0 else { throw hciError(-descriptor, index: index) }
        let number = UInt16(channel == .user ? HCI_CHANNEL_USER : HCI_CHANNEL_RAW)
        var result = ble_hci_bind(descriptor, UInt16(clamping: index), number)
        if result >= 0, channel == .raw { result = ble_hci_pass_everything(descriptor) }
        guard result >= 0 else {
            _ = Glibc.close(descriptor)
            throw hciError(-result, index: index)
        }
        return descriptor
    }

    /// What the errno of an HCI socket means.
    static func hciError(_ errno: Int32, index: Int) -> TransportError {
        switch errno {
        case EBUSY, EALREADY, EUSERS: .adapterBusy(index: index)
        case EPERM, EACCES: .permissionDenied("the HCI socket of hci\(index)")
        case ENODEV: .noSuchAdapter(index: index)
        case EAFNOSUPPORT, EPROTONOSUPPORT: .bluetoothUnavailable
        case ble_ERFKILL: .blockedByRFKill(index: index)
        default: .connectionFailed("hci\(index)", errno: errno)
        }
    }

    // MARK: Streams

    private func connectStream() throws(TransportError) -> Int32 {
        switch self {
        case .unix(let path): try connectUNIX(path)
        case .tcp(let host, let port): try connectTCP(host, port)
        default: throw .unsupported("\(self)")
        }
    }

    private func connectUNIX(_ path: String) throws(TransportError) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8) + [0]
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        return try unsafe withUnsafePointer(to: &address) { pointer throws(TransportError) in
            try unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address throws(TransportError) in
                try unsafe connect(AF_UNIX, address, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    private func connectTCP(_ host: String, _ port: UInt16) throws(TransportError) -> Int32 {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard unsafe getaddrinfo(host, String(port), &hints, &list) == 0 else { throw .unknownHost(host) }
        defer { unsafe freeaddrinfo(list) }
        var failure = TransportError.unknownHost(host)
        var entry = unsafe list
        while let address = unsafe entry {
            do throws(TransportError) {
                return try unsafe connect(address.pointee.ai_family, address.pointee.ai_addr, address.pointee.ai_addrlen)
            } catch {
                failure = error
            }
            unsafe entry = address.pointee.ai_next
        }
        throw failure
    }

    private func connect(
        _ family: Int32, _ address: UnsafePointer<sockaddr>?, _ length: socklen_t
    ) throws(TransportError) -> Int32 {
        let descriptor = ble_stream_socket(family)
        guard descriptor >= 0 else { throw .connectionFailed("\(self)", errno: -descriptor) }
        var failure: TransportError?
        if unsafe Glibc.connect(descriptor, address, length) != 0 {
            if errno != EINPROGRESS {
                failure = .connectionFailed("\(self)", errno: errno)
            } else if !poll(descriptor, events: Int32(POLLOUT), milliseconds: AdapterSpecification.connectTimeout) {
                failure = .connectTimedOut("\(self)")
            } else if case let error = ble_socket_error(descriptor), error != 0 {
                failure = .connectionFailed("\(self)", errno: error)
            }
        }
        if let failure {
            _ = Glibc.close(descriptor)
            throw failure
        }
        return descriptor
    }
}

/// Does what may block on a thread of its own.
private func offLoop<Value: Sendable>(
    _ body: @escaping @Sendable () throws(TransportError) -> Value
) async throws(TransportError) -> Value {
    try await withCheckedContinuation { (continuation: CheckedContinuation<Result<Value, TransportError>, Never>) in
        DispatchQueue.global().async {
            continuation.resume(returning: Result { () throws(TransportError) in try body() })
        }
    }.get()
}
