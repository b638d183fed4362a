import BLE
import GRPCCore

/// The device that the services act on: an adapter that each factory reset opens again, and its connections.
actor Device {
    /// The name by which the tests refer to a connection: the value of its cookie.
    typealias ConnectionNumber = UInt32

    /// A connection, from its first event on. After its end it stays until the next reset.
    struct Connection {
        /// The connection of a number from before the last reset.
        static let beforeReset = Connection(link: nil, isEnded: true)

        /// Nil for a connection from before the last reset, because the adapter may use its link's identifier again.
        let link: LinkIdentifier?
        /// The peer, if this device is the central.
        var peripheral: RemotePeripheral?
        /// Whether a pairing is in progress.
        var isPairing = false
        /// The result of the last pairing; nil if there was none since the last pairing began.
        var pairing: Result<KeyStrength, SecurityError>?
        /// The strength of the key that encrypts the link; nil if it is not encrypted.
        var strength: KeyStrength?
        var isEnded = false
    }

    private let specification: AdapterSpecification
    private let hasRandomIdentity: Bool
    private let ioCapability: IOCapability
    private let capturePath: String?

    private var current: Adapter?
    private var isResetting = false
    private var tasks: [Task<Void, Never>] = []
    private var connections: [ConnectionNumber: Connection] = [:]
    private var numbers: [LinkIdentifier: ConnectionNumber] = [:]
    private var lastNumber: ConnectionNumber = 0
    private var changes = Changes()
    /// The streams that are informed of each client.
    private var clientStreams: [UInt64: AsyncStream<ConnectionNumber>.Continuation] = [:]
    private var lastStream: UInt64 = 0
    /// The static random address of advertisements, if the adapter's identity is public.
    private var advertisingAddress = DeviceAddress.randomStatic(from: 0)
    let pairings = PairingConversation()

    init(
        adapter: AdapterSpecification,
        hasRandomIdentity: Bool,
        _ ioCapability: IOCapability,
        _ capturePath: String?
    ) {
        specification = adapter
        self.hasRandomIdentity = hasRandomIdentity
        self.ioCapability = ioCapability
        self.capturePath = capturePath
    }

    // MARK: The adapter

    var adapter: Adapter {
        get throws {
            guard let current else { throw RPCError(code: .unavailable, message: "the device is being reset") }
            return current
        }
    }

    /// Opens the adapter. Nothing of an earlier one is kept.
    func open() async throws {
        advertisingAddress = .randomStatic(from: .random(in: 0...UInt64.max))
        var configuration = Adapter.Configuration()
        configuration.stateLocation = .nowhere
        configuration.capturePath = capturePath
        configuration.deviceName = "avatar"
        configuration.identityAddress = hasRandomIdentity ? .randomStatic(from: .random(in: 0...UInt64.max)) : nil
        configuration.security.ioCapability = ioCapability
        configuration.security.justWorks = .always
        // The suite expects an event from both devices before it answers either.
        configuration.security.delaysJustWorksConsent = true
        configuration.pairingDelegate = PairingQuestions(device: self)
        let adapter = try await Adapter.open(specification, configuration: configuration)
        current = adapter
        let clientEvents = await adapter.peripheral.events()
        let securityEvents = await adapter.securityEvents()
        tasks = [
            Task { for await event in clientEvents { receive(event) } },
            Task { for await event in securityEvents { receive(event) } },
        ]
    }

    /// Ends all connections and calls, forgets all bonds and opens the adapter again.
    func factoryReset() async throws {
        guard !isResetting else { throw RPCError(code: .unavailable, message: "the device is being reset") }
        isResetting = true
        defer { isResetting = false }
        if let current { await current.close() }
        current = nil
        for task in tasks {
            task.cancel()
            await task.value
        }
        forgetConnections()
        for stream in clientStreams.values { stream.finish() }
        clientStreams = [:]
        await pairings.reset()
        try await open()
    }

    /// Ends all connections and refuses the open questions of pairings. Bonds stay.
    func reset() async {
        await pairings.reset()
        for number in connections.keys.sorted() { try? await disconnect(number) }
        forgetConnections()
    }

    /// Forgets the state of all connections. Calls that wait for one of them find that it has ended.
    private func forgetConnections() {
        connections = [:]
        numbers = [:]
        changes.signal()
    }

    /// The own address for an advertisement; nil for the adapter's identity address.
    func advertisingAddress(_ type: Pandora_OwnAddressType) throws -> DeviceAddress? {
        let wantsRandom = type == .random || type == .resolvableOrRandom
        if wantsRandom { return hasRandomIdentity ? nil : advertisingAddress }
        guard !hasRandomIdentity else {
            throw RPCError(code: .failedPrecondition, message: "the identity address is random: use --identity public")
        }
        return nil
    }

    // MARK: Connections

    /// The number of a link, which is made if there is none yet.
    func number(of link: LinkIdentifier) -> ConnectionNumber {
        if let number = numbers[link] { return number }
        lastNumber += 1
        numbers[link] = lastNumber
        connections[lastNumber] = Connection(link: link)
        return lastNumber
    }

    func connection(_ number: ConnectionNumber) throws -> Connection {
        if let connection = connections[number] { return connection }
        guard number > 0, number <= lastNumber else {
            throw RPCError(code: .invalidArgument, message: "there is no connection \(number)")
        }
        return .beforeReset
    }

    /// Connects to a peripheral.
    func connect(to address: DeviceAddress) async throws -> ConnectionNumber {
        let peripheral = try await adapter.central.connect(to: address, timeout: nil)
        let number = number(of: try await peripheral.linkInformation.identifier)
        connections[number]?.peripheral = peripheral
        tasks.append(
            Task {
                _ = try? await peripheral.disconnection()
                end(number)
            }
        )
        return number
    }

    func disconnect(_ number: ConnectionNumber) async throws {
        let connection = try connection(number)
        guard !connection.isEnded, let link = connection.link else { return }
        if let peripheral = connection.peripheral {
            await peripheral.disconnect()
        } else {
            try await adapter.peripheral.disconnect(link)
        }
        end(number)
    }

    private func end(_ number: ConnectionNumber) {
        connections[number]?.isEnded = true
        changes.signal()
    }

    // MARK: Events

    private func receive(_ event: PeripheralEvent) {
        switch event {
        case .connected(let client, _):
            let number = number(of: client)
            for stream in clientStreams.sorted(by: { $0.key < $1.key }) { stream.value.yield(number) }
        case .disconnected(let client, _): if let number = numbers[client] { end(number) }
        default: break
        }
    }

    private func receive(_ event: SecurityEvent) {
        switch event {
        case .pairingStarted(let link, _): update(link) { ($0.isPairing, $0.pairing) = (true, nil) }
        case .paired(let link, let result):
            update(link) { ($0.isPairing, $0.pairing) = (false, .success(result.strength)) }
        case .pairingFailed(let link, _, let error):
            update(link) { ($0.isPairing, $0.pairing) = (false, .failure(error)) }
        case .encryptionChanged(let link, let strength): update(link) { $0.strength = strength }
        default: break
        }
    }

    private func update(_ link: LinkIdentifier, _ body: (inout Connection) -> Void) {
        body(&connections[number(of: link), default: Connection(link: link)])
        changes.signal()
    }

    /// Returns the numbers of the clients that connect from now on.
    func clients() -> AsyncStream<ConnectionNumber> {
        let (stream, continuation) = AsyncStream.makeStream(of: ConnectionNumber.self)
        lastStream += 1
        let number = lastStream
        clientStreams[number] = continuation
        continuation.onTermination = { _ in Task { await self.removeClientStream(number) } }
        return stream
    }

    private func removeClientStream(_ number: UInt64) { clientStreams[number] = nil }

    // MARK: Waiting

    /// Returns the value that `body` returns for the connection's state. It is called again after each change until the
    /// value is not nil.
    func value<Value: Sendable>(
        of number: ConnectionNumber,
        _ body: @Sendable (Connection) -> Value?
    ) async throws -> Value {
        while true {
            if let value = body(try connection(number)) { return value }
            try await nextChange()
        }
    }

    private func nextChange() async throws {
        let number = changes.makeNumber()
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled { return continuation.resume() }
                changes.add(number, continuation)
            }
        } onCancel: {
            Task { await self.stopWaiting(number) }
        }
        try Task.checkCancellation()
    }

    private func stopWaiting(_ number: UInt64) { changes.remove(number) }
}
