import BluetoothHost
import Foundation
import L2CAP

/// A channel of the host, for its streams.
///
/// What comes is taken from the host only as far as the app keeps up, which is what stops the peer.
final class HostChannelEngine: ChannelEngine {
    /// How many octets either direction holds here at most, beside those that the host holds.
    private static let capacity = 16384

    private struct State {
        var deliver: (@Sendable (ChannelEvent) -> Void)?
        /// What happened before somebody wanted to know.
        var early: [ChannelEvent] = []
        var outbound: [UInt8] = []
        /// Whether an app was told that there is no room.
        var isRoomAwaited = false
        /// Whether the channel ends once all is sent.
        var isClosing = false
        var isDrainPosted = false
        /// Octets that the app has and has not read.
        var unread = 0
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
        run { engine, _ in
            let early = engine.state.withLock { state in
                state.deliver = deliver
                defer { state.early = [] }
                return state.early
            }
            for event in early { deliver(event) }
        }
    }

    func send(_ octets: UnsafeBufferPointer<UInt8>) -> Int {
        let count = state.withLock { state in
            guard !state.isClosing else { return 0 }
            let count = min(octets.count, HostChannelEngine.capacity - state.outbound.count)
            state.outbound.append(contentsOf: octets.prefix(count))
            if count < octets.count { state.isRoomAwaited = true }
            return count
        }
        if count > 0 { postDrain() }
        return count
    }

    func consumed(_ count: Int) {
        run { engine, host in
            engine.state.withLock { $0.unread -= count }
            engine.receive(on: host)
        }
    }

    func close() {
        state.withLock { $0.isClosing = true }
        postDrain()
    }

    // MARK: From the host

    /// Takes what the host says of the channel.
    func take(_ event: HostChannelEvent, on host: isolated BluetoothHost) {
        switch event {
        case .readable: receive(on: host)
        case .hasRoom: drain(on: host)
        case .peerReconfigured: break
        case .ended(let end, let unread):
            for unit in unread { tell(.received(unit)) }
            state.withLock { $0.outbound = [] }
            tell(.closed(EngineError(end)))
        }
    }

    // MARK: On the loop

    private func run(_ action: @escaping @Sendable (HostChannelEngine, isolated BluetoothHost) -> Void) {
        host.loop.execute { self.host.assumeIsolated { action(self, $0) } }
    }

    private func postDrain() {
        let isPosted = state.withLock { state in
            defer { state.isDrainPosted = true }
            return state.isDrainPosted
        }
        guard !isPosted else { return }
        run { engine, host in
            engine.state.withLock { $0.isDrainPosted = false }
            engine.drain(on: host)
        }
    }

    private func tell(_ event: ChannelEvent) {
        let deliver = state.withLock { state in
            if state.deliver == nil { state.early.append(event) }
            return state.deliver
        }
        deliver?(event)
    }

    /// Takes what has come, as far as the app keeps up.
    private func receive(on host: isolated BluetoothHost) {
        while true {
            let room = HostChannelEngine.capacity - state.withLock { $0.unread }
            guard room > 0 else { return }
            let units = host.read(from: identifier, octets: room)
            guard !units.isEmpty else { return }
            for unit in units {
                state.withLock { $0.unread += unit.count }
                tell(.received(unit))
            }
        }
    }

    /// Hands the host what the app has written, as far as it has room.
    private func drain(on host: isolated BluetoothHost) {
        let octets = state.withLock { $0.outbound }
        var count = 0
        if !octets.isEmpty, case .taken(let taken) = host.send(octets[...], on: identifier) { count = taken }
        let (isReady, isDone) = state.withLock { state in
            state.outbound.removeFirst(min(count, state.outbound.count))
            let isReady = state.isRoomAwaited && state.outbound.count <= HostChannelEngine.capacity / 2
            if isReady { state.isRoomAwaited = false }
            return (isReady, state.isClosing && state.outbound.isEmpty)
        }
        if isReady { tell(.readyToSend) }
        if isDone { host.finishChannel(identifier) }
    }
}

extension ChannelStreams {
    /// The streams of a channel that the host has opened, and who is told what happens on it.
    static func make(_ channel: OpenedChannel, of host: BluetoothHost) -> (streams: ChannelStreams, ChannelHandler) {
        let engine = HostChannelEngine(channel, of: host)
        // The host tells on its loop.
        let handler: ChannelHandler = { event in host.assumeIsolated { engine.take(event, on: $0) } }
        return (ChannelStreams(engine), handler)
    }
}

extension EngineError {
    /// How a channel has ended; nil where either side has closed it.
    init?(_ end: ChannelEnd) {
        switch end {
        case .byUs, .byPeer: return nil
        case .violation: self = .core(.unknown)
        case .unverifiedPeer: self = .attribute(.insufficientEncryption)
        case .disconnected(let reason):
            guard let error = EngineError(reason) else { return nil }
            self = error
        }
    }

    /// Why a channel could not be opened.
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
            case .ended(let end): EngineError(end) ?? .core(.peripheralDisconnected)
            case .refused, .invalidResponse, .reconfigurationRefused: .core(.connectionFailed)
            }
    }
}
