import ESPHomeMessages
import NIOCore

/// One client's session of the ESPHome native API, on the server's side, without I/O.
///
/// ## Overview
///
/// The caller passes received bytes to ``receive(_:now:)`` and then performs each effect that ``next(_:)`` returns,
/// until there is none. It calls ``advance(to:)`` at ``deadline``. To send a message, it writes the bytes of
/// ``frame(_:into:)``.
///
/// ## States
///
/// An encrypted session first waits for the client's hello, whose content is part of the handshake, and for its
/// handshake message. Then, as without encryption, it waits for HelloRequest. From then on, requests are accepted.
/// After ``Effect/close(_:)`` the session ignores everything.
public struct APISession: Sendable {
    /// What the caller has to do.
    public enum Effect: Hashable, Sendable {
        /// Write these bytes to the client.
        case write(ByteBuffer)
        /// Send the time: a message of type ``MessageType/getTimeResponse``.
        case timeRequest
        /// Handle a request about Bluetooth.
        case request(BluetoothRequest)
        /// Close the connection once everything has been written.
        case close(SessionEnd)
    }

    /// Which of the received messages are handled.
    public enum MessageHandling: Sendable {
        /// All of them.
        case all
        /// Pings, requests to disconnect and the responses to both. The other messages wait, in their order. If the
        /// client then ends the session or violates the protocol, they are handled before the end.
        case control
        /// None. The received bytes wait.
        case nothing
    }

    private enum State {
        /// Waits for the frame that begins an encrypted session.
        case encryptedHello(NoiseKey)
        /// Waits for the message of the handshake.
        case handshake(NoiseResponder)
        /// Messages are exchanged.
        case open(SessionCiphers?, hasGreeted: Bool)
        case closed
    }

    /// What ends the session as soon as the messages that wait have been handled.
    private enum PendingEnd {
        /// A request to disconnect, or the response to one.
        case disconnection(Message)
        case violation(ProtocolError)
    }

    /// The time for the handshake and Hello.
    public static let handshakeTimeout = TimeAmount.seconds(10)
    /// The time without received bytes after which the client is asked for a sign of life.
    public static let pingInterval = TimeAmount.seconds(60)
    /// The time without received bytes after which the session ends.
    public static let silenceLimit = TimeAmount.seconds(150)

    /// What the client says it is, without control characters and of at most 128 scalars; empty before Hello.
    public private(set) var clientInformation = ""
    /// The version of the API that the client implements; 0.0 before Hello, or if the client does not say it.
    public private(set) var clientVersion = APIVersion(major: 0, minor: 0)
    /// The number of received messages of types that are not known, which are ignored.
    public private(set) var ignoredMessageCount: UInt64 = 0

    private let server: ServerInformation
    private let isEncrypted: Bool
    private var state: State
    private var received = ByteBuffer()
    private var waiting = WaitingMessages()
    private var pendingEnd: PendingEnd?
    private var effects: CircularBuffer<Effect> = []
    private let start: NIODeadline
    private var lastReceived: NIODeadline
    private var hasPinged = false

    /// - Parameters:
    ///   - server: what the client is told about the server.
    ///   - key: the key of the encryption; nil for a session without.
    ///   - now: the present time.
    public init(server: ServerInformation, key: NoiseKey?, now: NIODeadline) {
        self.server = server
        isEncrypted = key != nil
        state = if let key { .encryptedHello(key) } else { .open(nil, hasGreeted: false) }
        start = now
        lastReceived = now
    }

    /// Whether the client has greeted, so that it can be sent messages.
    public var isReady: Bool {
        if case .open(_, hasGreeted: true) = state { true } else { false }
    }

    private var isClosed: Bool {
        if case .closed = state { true } else { false }
    }

    // MARK: Input

    /// Takes bytes that the client sent.
    public mutating func receive(_ bytes: ByteBuffer, now: NIODeadline) {
        lastReceived = now
        hasPinged = false
        guard !isClosed else { return }
        if received.readableBytes == 0 {
            received = bytes
        } else {
            // Otherwise the buffer grows as long as each read ends within a frame.
            received.discardReadBytes()
            received.writeImmutableBuffer(bytes)
        }
    }

    /// The capacity of the buffer for received bytes.
    var receivedCapacity: Int { received.capacity }

    /// Whether messages can wait while only some are handled. If not, the session handles none until all are handled
    /// again, and the caller should not read.
    public var hasRoomForWaitingMessages: Bool { !waiting.isFull }

    /// Returns the next effect of the bytes received so far; nil if there is none.
    ///
    /// - Parameter handling: the messages to handle now. The others wait for a later call. The effects of time and of
    ///   ``end(_:)`` are returned in any case.
    public mutating func next(_ handling: MessageHandling = .all) -> Effect? {
        while true {
            if let effect = effects.popFirst() { return effect }
            do throws(ProtocolError) {
                guard try handleNext(handling) else {
                    // An idle session keeps no memory.
                    if received.readableBytes == 0 { received = ByteBuffer() }
                    return nil
                }
            } catch {
                fail(error)
            }
        }
    }

    /// Handles a message that waits, or a frame.
    ///
    /// - Returns: false if there is none, or if it has to wait.
    private mutating func handleNext(_ handling: MessageHandling) throws(ProtocolError) -> Bool {
        guard handling != .nothing else { return false }
        if handling == .all || pendingEnd != nil, let message = waiting.popFirst() {
            try handle(message)
            return true
        }
        switch pendingEnd {
        case .disconnection(let message):
            try handle(message)
            return true
        case .violation(let error): throw error
        case nil: break
        }
        guard handling == .all || !waiting.isFull else { return false }
        do throws(ProtocolError) {
            return try handleFrame(handling)
        } catch {
            guard !waiting.isEmpty else { throw error }
            pendingEnd = .violation(error)
            return true
        }
    }

    /// When ``advance(to:)`` has to be called; nil if never.
    public var deadline: NIODeadline? {
        if isClosed { return nil }
        guard isReady else { return start + Self.handshakeTimeout }
        return lastReceived + (hasPinged ? Self.silenceLimit : Self.pingInterval)
    }

    /// Handles the passing of time. ``next(_:)`` returns the effects.
    public mutating func advance(to now: NIODeadline) {
        guard let deadline, now >= deadline else { return }
        if !isReady {
            close(.handshakeTimedOut)
        } else if hasPinged {
            close(.unresponsive)
        } else {
            hasPinged = true
            send(Message(.pingRequest))
        }
    }

    /// Leaves out the time of silence until now. To be called if the caller did not read in that time, so it could not
    /// receive a sign of life.
    public mutating func excuseSilence(until now: NIODeadline) {
        lastReceived = now
        hasPinged = false
    }

    // MARK: Output

    /// Appends the frame of a message to `buffer`; nothing before the handshake and after the end.
    ///
    /// - Returns: false if nothing was appended, also if the payload is too long for a frame.
    @discardableResult
    public mutating func frame(_ message: Message, into buffer: inout ByteBuffer) -> Bool {
        guard case .open(var ciphers, let hasGreeted) = state,
            message.payload.readableBytes <= FrameLimits.maximumSentPayload
        else { return false }
        if let content = ciphers?.encrypt(message) {
            EncryptedFraming.encode(content, into: &buffer)
            state = .open(ciphers, hasGreeted: hasGreeted)
        } else {
            PlaintextFraming().encode(message, into: &buffer)
        }
        return true
    }

    /// Ends the session: the client is asked to disconnect if it has greeted. ``next(_:)`` returns the effects.
    public mutating func end(_ reason: SessionEnd) {
        guard !isClosed else { return }
        if isReady { send(Message(.disconnectRequest)) }
        close(reason)
    }

    private mutating func send(_ message: Message) {
        var buffer = ByteBuffer()
        if frame(message, into: &buffer) { effects.append(.write(buffer)) }
    }

    private mutating func close(_ reason: SessionEnd) {
        state = .closed
        received = ByteBuffer()
        waiting = WaitingMessages()
        pendingEnd = nil
        effects.append(.close(reason))
    }

    // MARK: Frames

    /// Handles a frame; false if none is complete.
    private mutating func handleFrame(_ handling: MessageHandling) throws(ProtocolError) -> Bool {
        switch state {
        case .encryptedHello(let key):
            guard let content = try EncryptedFraming.decode(from: &received) else { return false }
            state = .handshake(NoiseResponder(key: key, prologue: NoiseResponder.makePrologue(content)))
            sendHandshake(server.handshakeHello)
        case .handshake(let responder):
            guard let content = try EncryptedFraming.decode(from: &received) else { return false }
            guard let first = content.first else { throw .malformedHandshake("the message is empty") }
            guard first == 0 else { throw .malformedHandshake("the client reports an error") }
            let result = try responder.respond(to: Array(content.dropFirst()))
            let ciphers = SessionCiphers(decrypting: result.decrypting, encrypting: result.encrypting)
            state = .open(ciphers, hasGreeted: false)
            sendHandshake([0] + result.response)
        case .open(nil, _):
            guard let message = try PlaintextFraming().decode(from: &received) else { return false }
            try take(message, handling)
        case .open(var ciphers?, let hasGreeted):
            guard let content = try EncryptedFraming.decode(from: &received) else { return false }
            let message = try ciphers.decrypt(content)
            state = .open(ciphers, hasGreeted: hasGreeted)
            try take(message, handling)
        case .closed:
            return false
        }
        return true
    }

    private mutating func sendHandshake(_ content: [UInt8]) {
        var buffer = ByteBuffer()
        EncryptedFraming.encode(content, into: &buffer)
        effects.append(.write(buffer))
    }

    /// Ends the session after a violation, in the form in which clients recognize its reason.
    private mutating func fail(_ error: ProtocolError) {
        switch (state, error) {
        case (.encryptedHello, .wrongIndicator(let indicator)):
            // The first byte of this frame informs a client without encryption.
            rejectHandshake("Bad indicator byte")
            close(indicator == PlaintextFraming.indicator ? .clientWithoutEncryption : .protocolError(error))
        case (.encryptedHello, _), (.handshake, _):
            rejectHandshake(error == .wrongKey ? "Handshake MAC failure" : "Bad handshake")
            close(.protocolError(error))
        case (.open(nil, _), .wrongIndicator(let indicator)):
            // The first byte, which is that of a frame without encryption, informs a client with encryption.
            effects.append(.write(ByteBuffer(bytes: [0x00] + Array("Bad indicator byte".utf8))))
            let isEncrypted = indicator == EncryptedFraming.indicator && !isReady
            close(isEncrypted ? .clientWithEncryption : .protocolError(error))
        case (.open, _), (.closed, _):
            close(.protocolError(error))
        }
    }

    private mutating func rejectHandshake(_ text: String) {
        sendHandshake([0x01] + Array(text.utf8))
    }

    // MARK: Messages

    /// Handles a message, or lets it wait.
    private mutating func take(_ message: Message, _ handling: MessageHandling) throws(ProtocolError) {
        if handling == .control, !message.type.isControl {
            waiting.append(message)
        } else if !waiting.isEmpty, message.type == .disconnectRequest || message.type == .disconnectResponse {
            pendingEnd = .disconnection(message)
        } else {
            try handle(message)
        }
    }

    private mutating func handle(_ message: Message) throws(ProtocolError) {
        switch message.type {
        case .helloRequest:
            let request = try message.decode(as: ESPHomeHelloRequest.self)
            clientInformation = request.clientInfo.printable(limit: 128)
            clientVersion = APIVersion(major: request.apiVersionMajor, minor: request.apiVersionMinor)
            if case .open(let ciphers, _) = state { state = .open(ciphers, hasGreeted: true) }
            send(server.hello())
        case .disconnectRequest:
            send(Message(.disconnectResponse))
            close(.clientDisconnected)
        case .disconnectResponse:
            close(.clientDisconnected)
        case .pingRequest:
            send(Message(.pingResponse))
        case .pingResponse:
            break
        default:
            guard isReady else { throw .requestBeforeHello(message.type) }
            try handleRequest(message)
        }
    }

    private mutating func handleRequest(_ message: Message) throws(ProtocolError) {
        switch message.type {
        case .authenticationRequest:
            // The API has no passwords any more: the key authenticates clients.
            send(Message(.authenticationResponse, ESPHomeAuthenticationResponse()))
        case .deviceInfoRequest:
            send(server.deviceInformation(isEncrypted: isEncrypted))
        case .listEntitiesRequest:
            send(Message(.listEntitiesDoneResponse))
        case .subscribeStatesRequest, .subscribeLogsRequest, .subscribeHomeAssistantServicesRequest,
            .subscribeHomeAssistantStatesRequest, .getTimeResponse:
            // There are no entities, logs or actions.
            break
        case .getTimeRequest:
            effects.append(.timeRequest)
        default:
            if let request = try BluetoothRequest(message) {
                effects.append(.request(request))
            } else {
                ignoredMessageCount += 1
            }
        }
    }
}
