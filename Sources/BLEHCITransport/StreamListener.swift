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

    init(_ socket: ListeningSocket, loop: LoopQueue, options: TransportOptions) {
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
        let socket = try await runBlocking { () throws(ListeningError) in try ListeningSocket(address) }
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
            let result = ListeningSocket.accept(descriptor)
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
            _ = ble_tcp_notice_silence(connection.number)
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
