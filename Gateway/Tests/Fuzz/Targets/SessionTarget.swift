import NIOCore

@testable import ESPHomeProtocol

/// Runs a script against one session.
///
/// The action of the first step selects the kind of session and of client; see ``Kind``. The low three bits of the
/// others select what happens; see ``perform(_:)``.
struct SessionFuzzing {
    /// The kind of the session and of its client.
    private enum Kind: UInt8 {
        case plaintext
        /// The client has the key.
        case encrypted
        /// The client has another key.
        case wrongKey
        /// The client sends only the bytes of the script to a session that requires encryption.
        case unknown
    }

    private static let server = ServerInformation(name: "fuzzed", address: 0xC0DE_0000_0001, version: "1")
    private static let key = NoiseKey(bytes: [UInt8](repeating: 7, count: NoiseKey.length))!
    private static let otherKey = NoiseKey(bytes: [UInt8](repeating: 8, count: NoiseKey.length))!
    private static let pieceLimit = 64

    private let kind: Kind
    private var session: APISession
    private var client: FuzzedClient
    private var now = NIODeadline.uptimeNanoseconds(1_000_000_000)
    private var isClosed = false
    /// Whether the client has sent bytes that it did not make, so that the server may close the session at any time.
    private var hasSentOthers = false

    static func run(_ script: FuzzScript) {
        guard let first = script.steps.first else { return }
        var fuzzing = SessionFuzzing(Kind(rawValue: first.action & 3) ?? .plaintext)
        if fuzzing.kind != .unknown { fuzzing.receive(fuzzing.client.greeting()) }
        for step in script.steps.dropFirst() { fuzzing.perform(step) }
        fuzzing.session.end(.serverStopped)
        fuzzing.takeEffects()
        require(fuzzing.isClosed, "a session did not end")
        require(fuzzing.session.deadline == nil, "a session that has ended has a deadline")
        if fuzzing.kind == .plaintext { comparePieces(script) }
    }

    private init(_ kind: Kind) {
        self.kind = kind
        session = APISession(server: Self.server, key: kind == .plaintext ? nil : Self.key, now: now)
        client = FuzzedClient(key: kind == .plaintext ? nil : kind == .wrongKey ? Self.otherKey : Self.key)
    }

    private mutating func perform(_ step: FuzzScript.Step) {
        let choice = Int(step.action >> 3)
        switch step.action & 7 {
        case 0:
            hasSentOthers = hasSentOthers || !step.octets.isEmpty
            receive(step.octets)
        case 1: send(step.octets) { $0 }
        case 2:
            send(step.octets) { frame in
                var frame = frame
                frame[choice % frame.count] ^= 0x41
                return frame
            }
        case 3: send(step.octets) { Array($0.dropLast(1 + choice)) }
        case 4:
            now = now + .seconds(Int64(choice) * 5)
            session.advance(to: now)
            takeEffects()
        case 5:
            let isMade = client.isOpen && kind != .unknown
            hasSentOthers = hasSentOthers || !isMade
            let frame = isMade ? client.frame(message(step.octets)) : step.octets
            for byte in frame.prefix(Self.pieceLimit) { receive([byte]) }
            receive(Array(frame.dropFirst(Self.pieceLimit)))
        case 6:
            sendFromServer(step.octets.reduce(0) { ($0 * 7 + Int($1)) % (kind == .plaintext ? 70_000 : 32_000) })
        default:
            session.receive(ByteBuffer(bytes: step.octets), now: now)
            hasSentOthers = hasSentOthers || !step.octets.isEmpty
            takeEffects(choice & 1 == 0 ? .nothing : .control)
        }
    }

    /// Sends a message of the server with a value of some length.
    private mutating func sendFromServer(_ length: Int) {
        var buffer = ByteBuffer()
        let value = [UInt8](repeating: 0x55, count: length)
        let message = Message.value(.readResponse, address: 1, handle: 2, value: value)
        let isOpen = client.isOpen && !isClosed
        let isSent = session.frame(message, into: &buffer)
        guard isOpen else { return }
        let fits = message.payload.readableBytes <= FrameLimits.maximumSentPayload
        require(isSent == fits, "a message of \(message.payload.readableBytes) bytes: \(isSent)")
        // The decoder of frames accepts no longer ones, because clients send none.
        if isSent, message.payload.readableBytes <= FrameLimits.maximumLength {
            require(client.read(buffer) == [message], "a message of the server was changed")
        }
    }

    private func message(_ octets: [UInt8]) -> Message {
        let type = octets.first.map { UInt16($0) } ?? 0
        return Message(MessageType(rawValue: type), payload: ByteBuffer(bytes: octets.dropFirst()))
    }

    /// Sends a message whose frame is changed.
    private mutating func send(_ octets: [UInt8], _ change: ([UInt8]) -> [UInt8]) {
        guard client.isOpen, kind != .unknown else {
            hasSentOthers = true
            return receive(octets)
        }
        let frame = client.frame(message(octets))
        let changed = change(frame)
        if changed != frame { hasSentOthers = true }
        receive(changed)
    }

    private mutating func receive(_ octets: [UInt8]) {
        session.receive(ByteBuffer(bytes: octets), now: now)
        takeEffects()
        // A frame that is incomplete waits, and nothing else.
        require(
            session.receivedCapacity <= 4 * (FrameLimits.maximumLength + octets.count) + 1024,
            "\(session.receivedCapacity) bytes wait"
        )
    }

    private mutating func takeEffects(_ handling: APISession.MessageHandling = .all) {
        var isEnding = false
        while let effect = session.next(handling) {
            require(!isClosed, "an effect after the end: \(effect)")
            switch effect {
            case .write(let bytes): _ = client.read(bytes)
            case .timeRequest: require(session.isReady, "a request before Hello")
            case .request(let request):
                require(handling != .nothing, "a request that has to wait is handled: \(request)")
                // Requests that wait are handled before the client's end.
                isEnding = isEnding || handling == .control
                check(request)
            case .close(let reason):
                isClosed = true
                require(!session.isReady, "a session that has ended is ready")
                if case .protocolError(.failedDecryption) = reason {
                    require(hasSentOthers, "a correct frame could not be decrypted")
                }
            }
        }
        require(!isEnding || isClosed, "a request that has to wait is handled")
        if kind == .wrongKey || kind == .unknown {
            require(!session.isReady, "a client without the key is accepted")
        }
        require(session.clientInformation.unicodeScalars.count <= 128, "the client's information is too long")
    }

    private func check(_ request: BluetoothRequest) {
        require(session.isReady, "a request before Hello: \(request)")
        let address: UInt64 =
            switch request {
            case .subscribeAdvertisements, .unsubscribeAdvertisements, .setScannerMode, .subscribeConnectionsFree: 0
            case .connect(let address, _, _), .disconnect(let address), .pair(let address), .unpair(let address),
                .clearCache(let address), .setConnectionParameters(let address, _), .getServices(let address),
                .read(let address, _, _), .write(let address, _, _, _, _), .notify(let address, _, _):
                address
            }
        require(address >> 48 == 0, "an address of more than 48 bits: \(request)")
    }

    /// The effects of bytes do not depend on the pieces in which they arrive.
    private static func comparePieces(_ script: FuzzScript) {
        let octets = script.steps.dropFirst().flatMap { $0.action & 1 == 0 ? $0.octets : frame($0.octets) }
        func effects(pieces: [ArraySlice<UInt8>]) -> [APISession.Effect] {
            let now = NIODeadline.uptimeNanoseconds(1_000_000_000)
            var session = APISession(server: server, key: nil, now: now)
            var effects: [APISession.Effect] = []
            for piece in pieces {
                session.receive(ByteBuffer(bytes: piece), now: now)
                while let effect = session.next() { effects.append(effect) }
            }
            return effects
        }
        let pieceLength = 1 + Int(script.steps[0].action >> 2)
        let pieces = stride(from: 0, to: octets.count, by: pieceLength).map { start in
            octets[start..<min(start + pieceLength, octets.count)]
        }
        require(effects(pieces: pieces) == effects(pieces: [octets[...]]), "pieces of a stream have other effects")
    }

    private static func frame(_ octets: [UInt8]) -> [UInt8] {
        var client = FuzzedClient(key: nil)
        let type = MessageType(rawValue: octets.first.map { UInt16($0) } ?? 0)
        return client.frame(Message(type, payload: ByteBuffer(bytes: octets.dropFirst())))
    }
}
