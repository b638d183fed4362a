import CBLEBluetooth
import Dispatch
import Glibc

/// Listens for hosts on a UNIX or TCP socket, and creates a transport for each connection: the controller's end of HCI.
///
/// The listener and its transports work on one queue. If a host sends bytes that are not an H4 stream, only its own
/// transport ends.
package final class StreamListener: Sendable {
    /// The number of connections accepted before other work on the queue gets a turn.
    private static let acceptBudget = 32
    /// The pause before the next accept if the process has no descriptors left.
    private static let pause = DispatchTimeInterval.milliseconds(100)

    /// The listening address. If port 0 was requested, it has the port that the system chose.
    package let address: ListeningAddress

    private final class State {
        private let descriptor: OwnedDescriptor
        private let file: SocketFile?
        var source: (any DispatchSourceRead)?
        var isPaused = false
        private(set) var isClosed = false
        var onConnection: (@Sendable (any Transport) -> Void)?

        init(_ socket: ListeningSocket) {
            descriptor = socket.descriptor
            file = socket.file
        }

        deinit {
            end()
        }

        func end() {
            guard !isClosed else { return }
            isClosed = true
            file?.remove()
            // The source closes the descriptor later, when it is cancelled.
            _ = shutdown(descriptor.number, Int32(SHUT_RDWR))
            source?.cancel()
            // A suspended source does not run its cancel handler.
            if isPaused { source?.resume() }
            source = nil
        }
    }

    private let descriptor: OwnedDescriptor
    private let loop: LoopQueue
    private let options: TransportOptions
    private let confined: LoopConfined<State>
    private var state: State { confined.value }

    private init(_ socket: ListeningSocket, loop: LoopQueue, options: TransportOptions) {
        address = socket.address
        descriptor = socket.descriptor
        self.loop = loop
        self.options = options
        confined = LoopConfined(State(socket), to: loop.queue)
    }

    /// Opens the socket, so that hosts can connect. Connections wait until ``start(onConnection:)``.
    package static func open(
        _ address: ListeningAddress,
        on loop: LoopQueue,
        options: TransportOptions = TransportOptions()
    ) async throws(ListeningError) -> StreamListener {
        let socket = try await offLoop { () throws(ListeningError) in try ListeningSocket(address) }
        return StreamListener(socket, loop: loop, options: options)
    }

    /// Starts to accept connections. Called once, on the queue. `onConnection` is called there too.
    package func start(onConnection: @escaping @Sendable (any Transport) -> Void) {
        let state = state
        guard !state.isClosed, state.source == nil else { return }
        state.onConnection = onConnection
        let descriptor = descriptor
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor.number, queue: loop.queue)
        source.setEventHandler { [weak self] in self?.accept() }
        source.setCancelHandler { withExtendedLifetime(descriptor) {} }
        state.source = source
        source.activate()
    }

    /// Stops accepting connections, and removes the UNIX socket. Existing transports remain open. Called on the queue.
    package func close() {
        state.onConnection = nil
        state.end()
    }

    private func accept() {
        for _ in 0..<StreamListener.acceptBudget where !state.isClosed && !state.isPaused {
            let result = ble_accept(descriptor.number)
            switch result {
            case 0...: state.onConnection?(transport(OwnedDescriptor(result)))
            // The connection was closed before it was accepted.
            case -EINTR, -ECONNABORTED: continue
            case -EAGAIN, -EWOULDBLOCK: return
            default: takeBreath()
            }
        }
    }

    private func transport(_ connection: OwnedDescriptor) -> any Transport {
        let kind: DescriptorTransport.Kind
        switch address {
        case .unix: kind = .unix
        case .tcp:
            kind = .tcp
            _ = ble_tcp_set_no_delay(connection.number)
        }
        return DescriptorTransport(connection, kind: kind, from: .host, loop: loop, options: options)
    }

    /// Pauses the source. Otherwise it would fire continuously while no descriptor is available for a waiting
    /// connection.
    private func takeBreath() {
        state.isPaused = true
        state.source?.suspend()
        loop.queue.asyncAfter(deadline: .now() + StreamListener.pause) { [weak self] in
            guard let state = self?.state, !state.isClosed else { return }
            state.isPaused = false
            state.source?.resume()
        }
    }
}

/// A socket that is bound and listening.
private struct ListeningSocket: Sendable {
    let descriptor: OwnedDescriptor
    let address: ListeningAddress
    let file: SocketFile?

    init(_ address: ListeningAddress) throws(ListeningError) {
        switch address {
        case .unix(let path): self = try ListeningSocket.unix(path)
        case .tcp(let host, let port): self = try ListeningSocket.tcp(host, port)
        }
    }

    private init(_ descriptor: OwnedDescriptor, _ address: ListeningAddress, _ file: SocketFile? = nil) {
        self.descriptor = descriptor
        self.address = address
        self.file = file
    }

    private static func unix(_ path: String) throws(ListeningError) -> ListeningSocket {
        let address = ListeningAddress.unix(path: path)
        guard let socketAddress = SocketAddress(path: path) else { throw .failed(address, errno: ENAMETOOLONG) }
        let descriptor = try open(address, AF_UNIX)
        var failure = bind(descriptor, to: socketAddress)
        if failure == EADDRINUSE {
            guard SocketFile(path: path) != nil else { throw .occupied(path: path) }
            guard try isStale(socketAddress, address) else { throw .addressInUse(address) }
            _ = unsafe unlink(path)
            failure = bind(descriptor, to: socketAddress)
        }
        guard failure == 0 else { throw ListeningError(address, errno: failure) }
        let file = SocketFile(path: path)
        failure = listen(descriptor)
        guard failure == 0 else {
            file?.remove()
            throw ListeningError(address, errno: failure)
        }
        return ListeningSocket(descriptor, address, file)
    }

    /// Returns whether no process listens on an existing socket, as after its process was killed.
    private static func isStale(
        _ socketAddress: SocketAddress,
        _ address: ListeningAddress
    ) throws(ListeningError) -> Bool {
        let descriptor = try open(address, AF_UNIX)
        return switch uninterrupted({ socketAddress.connect(descriptor.number) }) {
        case .failure(let error): error.code == ECONNREFUSED
        case .success: false
        }
    }

    private static func tcp(_ host: String, _ port: UInt16) throws(ListeningError) -> ListeningSocket {
        let address = ListeningAddress.tcp(host: host, port: port)
        var error = ListeningError.unknownHost(host)
        for socketAddress in SocketAddress.all(ofHost: host, port: port) {
            let descriptor = try open(address, socketAddress.family)
            _ = ble_reuse_address(descriptor.number)
            var failure = bind(descriptor, to: socketAddress)
            if failure == 0 { failure = listen(descriptor) }
            let found = ble_tcp_port(descriptor.number)
            if failure == 0, found > 0 {
                return ListeningSocket(descriptor, .tcp(host: host, port: UInt16(clamping: found)))
            }
            error = ListeningError(address, errno: failure)
        }
        throw error
    }

    private static func open(_ address: ListeningAddress, _ family: Int32) throws(ListeningError) -> OwnedDescriptor {
        let descriptor = OwnedDescriptor(ble_stream_socket(family))
        guard descriptor.number >= 0 else { throw .failed(address, errno: -descriptor.number) }
        return descriptor
    }

    /// Returns the errno, or zero on success.
    private static func bind(_ descriptor: OwnedDescriptor, to address: SocketAddress) -> Int32 {
        if case .failure(let error) = uninterrupted({ address.bind(descriptor.number) }) { error.code } else { 0 }
    }

    /// Returns the errno, or zero on success.
    private static func listen(_ descriptor: OwnedDescriptor) -> Int32 {
        if case .failure(let error) = uninterrupted({ Int(Glibc.listen(descriptor.number, 64)) }) {
            error.code
        } else {
            0
        }
    }
}

/// The file of a UNIX socket, distinguished from another file that may have replaced it.
private struct SocketFile: Sendable {
    private let path: String
    private let device: dev_t
    private let number: ino_t

    /// Reads the file at the path. Returns nil if it is not a socket.
    init?(path: String) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
        self.path = path
        device = status.st_dev
        number = status.st_ino
    }

    /// Removes the file, unless another file has replaced it.
    func remove() {
        guard let now = SocketFile(path: path), now.device == device, now.number == number else { return }
        _ = unsafe unlink(path)
    }
}
