import BLEL2CAP
import BluetoothHost
import Foundation

/// A channel of the host, for its streams.
///
/// The backend reads from the host only as fast as the app reads. This stops the peer when the app is slow.
///
/// After ``close()`` no app reads, so received bytes are dropped. Otherwise a peer that answers each SDU before it
/// reads the next one would wait forever, and so would the bytes to send. The channel ends once all bytes are sent, or
/// when none was sent for ``progressTimeout``.
final class HostChannelBackend: ChannelBackend {
    /// Maximum number of bytes in each direction here, in addition to the bytes in the host.
    private static let capacity = 16384
    /// The time in which a closing channel must send at least one byte. It is checked at this interval.
    ///
    /// It is longer than the longest supervision timeout, 32 s (Vol 6, Part B, 4.5.2). So a link that recovers keeps
    /// the channel.
    private static let progressTimeout = Duration.seconds(40)

    private struct State {
        var deliver: (@Sendable (ChannelEvent) -> Void)?
        /// The events before ``start(_:)``.
        var early: [ChannelEvent] = []
        var outbound: [UInt8] = []
        /// Whether the app waits for space, because a call of ``send(_:)`` has left none.
        var isRoomAwaited = false
        /// Whether the channel ends after all bytes are sent. Received bytes are dropped.
        var isClosing = false
        var isDrainSubmitted = false
        /// The number of bytes that were passed to the streams and not read by the app.
        var unread = 0
        /// The timer of a closing channel; see ``progressTimeout``.
        var progressTimer: BluetoothHost.ActionTimer?
    }

    private let host: BluetoothHost
    private let identifier: HostChannelIdentifier
    private let state = Guarded(State())

    init(_ channel: OpenedChannel, of host: BluetoothHost) {
        self.host = host
        identifier = channel.identifier
    }

    // MARK: From the streams

    func start(_ deliver: @escaping @Sendable (ChannelEvent) -> Void) {
        run { backend, _ in
            let early = backend.state.withLock { state in
                state.deliver = deliver
                defer { state.early = [] }
                return state.early
            }
            for event in early { deliver(event) }
        }
    }

    func send(_ octets: UnsafeBufferPointer<UInt8>) -> (count: Int, hasRoom: Bool) {
        let (count, hasRoom) = state.withLock { state -> (Int, Bool) in
            guard !state.isClosing else { return (0, false) }
            let count = min(octets.count, HostChannelBackend.capacity - state.outbound.count)
            unsafe state.outbound.append(contentsOf: octets.prefix(count))
            let hasRoom = state.outbound.count < HostChannelBackend.capacity
            if !hasRoom { state.isRoomAwaited = true }
            return (count, hasRoom)
        }
        if count > 0 { submitDrain() }
        return (count, hasRoom)
    }

    func consumed(_ count: Int) {
        run { backend, host in
            backend.state.withLock { $0.unread -= count }
            backend.receive(on: host)
        }
    }

    func close() {
        let isClosing = state.withLock { state in
            defer { state.isClosing = true }
            return state.isClosing
        }
        guard !isClosing else { return }
        run { backend, host in
            backend.receive(on: host)
            backend.drain(on: host)
            if let unsent = backend.unsentCount(on: host) { backend.awaitProgress(from: unsent, on: host) }
        }
    }

    // MARK: From the host

    /// Handles an event of the channel from the host.
    func take(_ event: HostChannelEvent, on host: isolated BluetoothHost) {
        switch event {
        case .readable: receive(on: host)
        case .hasRoom: drain(on: host)
        case .peerReconfigured: break
        case .ended(let end, let unread):
            for unit in unread { tell(.received(unit)) }
            let timer = state.withLock { state in
                state.outbound = []
                return state.progressTimer.take()
            }
            if let timer { host.cancel(timer) }
            tell(.closed(BackendError(end)))
        }
    }

    // MARK: On the loop

    private func run(_ action: @escaping @Sendable (HostChannelBackend, isolated BluetoothHost) -> Void) {
        host.loop.execute { self.host.assumeIsolated { action(self, $0) } }
    }

    private func submitDrain() {
        let isSubmitted = state.withLock { state in
            defer { state.isDrainSubmitted = true }
            return state.isDrainSubmitted
        }
        guard !isSubmitted else { return }
        run { backend, host in
            backend.state.withLock { $0.isDrainSubmitted = false }
            backend.drain(on: host)
        }
    }

    private func tell(_ event: ChannelEvent) {
        let deliver = state.withLock { state in
            if state.deliver == nil { state.early.append(event) }
            return state.deliver
        }
        deliver?(event)
    }

    /// Reads received bytes from the host, up to the limit of unread bytes. Drops them all if the channel is closing.
    private func receive(on host: isolated BluetoothHost) {
        while true {
            let (unread, isClosing) = state.withLock { ($0.unread, $0.isClosing) }
            if isClosing {
                _ = host.readAll(from: identifier)
                return
            }
            let room = HostChannelBackend.capacity - unread
            guard room > 0 else { return }
            let units = host.read(from: identifier, byteLimit: room)
            guard !units.isEmpty else { return }
            for unit in units {
                state.withLock { $0.unread += unit.count }
                tell(.received(unit))
            }
        }
    }

    /// Passes the app's bytes to the host, as far as it has room for them.
    private func drain(on host: isolated BluetoothHost) {
        let octets = state.withLock { $0.outbound }
        var count = 0
        if !octets.isEmpty, case .taken(let taken) = host.send(octets[...], on: identifier) { count = taken }
        let (isReady, isDone) = state.withLock { state in
            state.outbound.removeFirst(min(count, state.outbound.count))
            let isReady = state.isRoomAwaited && state.outbound.count <= HostChannelBackend.capacity / 2
            if isReady { state.isRoomAwaited = false }
            return (isReady, state.isClosing && state.outbound.isEmpty)
        }
        if isReady { tell(.readyToSend) }
        if isDone { host.finishChannel(identifier) }
    }

    /// The number of bytes here and in the host that are not sent; nil if the channel has ended.
    private func unsentCount(on host: isolated BluetoothHost) -> Int? {
        guard let information = host.information(on: identifier) else { return nil }
        return information.unsentByteCount + state.withLock { $0.outbound.count }
    }

    /// Closes a closing channel if it sends none of its `unsent` bytes for ``progressTimeout``. Ends with the channel.
    private func awaitProgress(from unsent: Int, on host: isolated BluetoothHost) {
        let timer = host.run(after: HostChannelBackend.progressTimeout) { [weak self] in
            self?.checkProgress(from: unsent)
        }
        state.withLock { $0.progressTimer = timer }
    }

    /// Called on the loop.
    private func checkProgress(from earlierCount: Int) {
        host.assumeIsolated { host in
            guard let unsent = unsentCount(on: host) else { return }
            if unsent < earlierCount {
                awaitProgress(from: unsent, on: host)
            } else {
                host.closeChannel(identifier)
            }
        }
    }
}

extension ChannelStreams {
    /// Returns the streams of a channel that the host has opened, and the handler of the channel's events.
    static func make(_ channel: OpenedChannel, of host: BluetoothHost) -> (streams: ChannelStreams, ChannelHandler) {
        let backend = HostChannelBackend(channel, of: host)
        // The host calls the handler on its loop.
        let handler: ChannelHandler = { event in host.assumeIsolated { backend.take(event, on: $0) } }
        return (ChannelStreams(backend), handler)
    }
}

extension BackendError {
    /// Creates the app's error for the end of a channel; nil if either side has closed it.
    init?(_ end: ChannelEnd) {
        switch end {
        case .byUs, .byPeer: return nil
        case .violation: self = .core(.unknown)
        case .unverifiedPeer: self = .attribute(.insufficientEncryption)
        case .disconnected(let reason):
            guard let error = BackendError(reason) else { return nil }
            self = error
        }
    }

    /// Creates the app's error for a channel that could not be opened.
    init(_ error: ChannelError) {
        self =
            switch error {
            case .refused(.spsmNotSupported), .notUnderstood: .core(.operationNotSupported)
            case .refused(.noResourcesAvailable), .tooManyChannels, .noPSMLeft: .core(.outOfSpace)
            case .refused(.insufficientAuthentication): .attribute(.insufficientAuthentication)
            case .refused(.insufficientEncryption): .attribute(.insufficientEncryption)
            case .refused(.insufficientAuthorization): .attribute(.insufficientAuthorization)
            case .refused(.encryptionKeySizeTooShort): .attribute(.encryptionKeySizeTooShort)
            case .psmInUse, .exceedsMTU: .core(.invalidParameters)
            case .ended(let end): BackendError(end) ?? .core(.peripheralDisconnected)
            case .refused, .invalidResponse, .reconfigurationRefused: .core(.connectionFailed)
            }
    }
}
