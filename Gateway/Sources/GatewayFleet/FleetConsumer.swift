/// A consumer of what the gateways of a fleet publish: combines their messages, and chooses the gateway of each tag.
///
/// It has no input and output of its own. The caller gives it messages and the time, and performs the ``Output``.
public struct FleetConsumer: Sendable {
    /// What the caller has to write, and which messages it need not keep.
    public struct Output: Sendable {
        /// The observations that are complete, each with the gateway that should connect to the tag.
        public var observations: [(observation: CombinedObservation, elected: String?)] = []
        /// The tags whose gateway for connections has changed.
        public var changes: [GatewayElection.Change] = []
        /// The tokens of messages that will not be in an observation: duplicates, late ones and refused ones.
        public var discarded: [UInt64] = []

        /// Creates an output of nothing.
        public init() {}

        /// Whether there is nothing to do.
        public var isEmpty: Bool { observations.isEmpty && changes.isEmpty && discarded.isEmpty }
    }

    /// After this time without a message, a gateway is silent.
    public static let silence = Duration.seconds(60)

    private var window: FleetWindow
    private var election: GatewayElection
    private var retained: RetainedElections
    private var malformedCount: UInt64 = 0

    /// Creates a consumer. The first gateway of a tag is chosen when the tag's first window ends, so the collection
    /// time of the election is the window.
    public init(
        window: FleetWindow.Configuration = FleetWindow.Configuration(),
        election: GatewayElection.Configuration = GatewayElection.Configuration()
    ) {
        self.window = FleetWindow(window)
        var election = election
        election.collectionTime = window.window
        self.election = GatewayElection(election)
        retained = RetainedElections(limit: election.tagLimit, time: election.timeout * 4)
    }

    /// Takes the messages that an earlier consumer took, in their order. To be called first.
    ///
    /// - Parameters:
    ///   - messages: the messages, oldest first.
    ///   - now: the time, since any moment. It must not decrease from call to call.
    ///   - systemTime: the system's time now, since 1970; nil if it is not known.
    public mutating func restore(
        _ messages: [FleetWindow.Restored],
        at now: Duration,
        systemTime: Duration? = nil
    ) -> Output {
        let (observations, discarded) = window.restore(messages, at: now, systemTime: systemTime)
        var output = Output()
        output.discarded = discarded
        add(observations, to: &output)
        return output
    }

    /// Takes a message.
    ///
    /// - Parameters:
    ///   - message: the decoded message.
    ///   - token: comes back once, in an observation of the output or in its discarded ones.
    ///   - now: the time of the arrival, by the clock of ``restore(_:at:systemTime:)``.
    ///   - systemTime: the system's time of the arrival; see ``FleetWindow/receive(_:token:at:systemTime:)``.
    public mutating func receive(
        _ message: FleetMessage,
        token: UInt64,
        at now: Duration,
        systemTime: Duration? = nil
    ) -> Output {
        let outcome = window.receive(message, token: token, at: now, systemTime: systemTime)
        var output = Output()
        // Before the message: it is not a part of the collections that have ended.
        add(election.advance(to: now), to: &output)
        switch outcome.kind {
        case .first, .another:
            if let rssi = message.rssi,
                let change = election.receive(
                    message.address,
                    by: message.gateway,
                    rssi: rssi,
                    delay: outcome.delay,
                    at: now
                )
            {
                add([change], to: &output)
            }
        case .duplicate, .late, .refused: output.discarded.append(token)
        }
        add(outcome.observations, to: &output)
        return output
    }

    /// Takes the state of a gateway.
    public mutating func setOnline(_ isOnline: Bool, gateway: String, at now: Duration) -> Output {
        var output = Output()
        add(election.setOnline(isOnline, gateway, at: now), to: &output)
        return output
    }

    /// Takes the connections that a gateway can make.
    ///
    /// - Throws: ``FleetMessageError`` if the payload is not an object of JSON with the number `free`.
    public mutating func setConnections(
        _ payload: String,
        gateway: String,
        at now: Duration
    ) throws(FleetMessageError) -> Output {
        var output = Output()
        add(election.setFreeSlots(try FreeSlots.decode(payload), gateway, at: now), to: &output)
        return output
    }

    /// Takes an election that an earlier consumer published, and that the broker has kept.
    ///
    /// If the tag has no gateway after four times the timeout of the election, a later output has the change to none.
    /// So the caller can remove the election at the broker.
    ///
    /// - Parameters:
    ///   - address: the address of the tag.
    ///   - payload: the change as JSON. A malformed one is removed too.
    ///   - now: the time, by the clock of ``restore(_:at:systemTime:)``.
    public mutating func addRetainedElection(of address: UInt64, payload: String, at now: Duration) {
        guard !payload.isEmpty else { return }
        retained.insert(address, gateway: RetainedElections.gateway(in: payload), at: now)
    }

    /// Counts a message that cannot be decoded.
    ///
    /// - Returns: whether it was the first.
    public mutating func countMalformed() -> Bool {
        malformedCount &+= 1
        return malformedCount == 1
    }

    /// Returns the observations that are complete. To be called at least as often as windows should end.
    public mutating func advance(to now: Duration) -> Output {
        var output = Output()
        add(election.advance(to: now), to: &output)
        for (address, gateway) in retained.takeEnded(at: now) where election.gateway(for: address) == nil {
            output.changes.append(.init(address: address, gateway: nil, previous: gateway, rssi: nil))
        }
        add(window.advance(to: now), to: &output)
        return output
    }

    /// Ends all windows.
    public mutating func finish(at now: Duration) -> Output {
        var output = Output()
        add(election.finish(at: now), to: &output)
        add(window.finish(at: now), to: &output)
        return output
    }

    /// What the consumer has done.
    public func status(at now: Duration) -> FleetStatus {
        var status = FleetStatus()
        status.messages = window.counters
        status.malformedCount = malformedCount
        status.openWindowCount = window.openWindowCount
        status.tagCount = election.tagCount
        status.electionRefusedCount = election.refusedCount
        status.gatewayCount = window.gatewayCount
        status.silentGatewayCount = window.silentGatewayCount(for: Self.silence, at: now)
        status.offlineGatewayCount = election.offlineGatewayCount
        return status
    }

    private mutating func add(_ changes: [GatewayElection.Change], to output: inout Output) {
        // The caller publishes the change, which replaces what the broker has kept.
        for change in changes { retained.remove(change.address) }
        output.changes += changes
    }

    private func add(_ observations: [CombinedObservation], to output: inout Output) {
        for observation in observations {
            output.observations.append((observation, election.gateway(for: observation.address)))
        }
    }
}
