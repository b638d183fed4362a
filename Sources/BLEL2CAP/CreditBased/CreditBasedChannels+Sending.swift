import BLEByteCoding
import BluetoothTypes

extension CreditBasedChannels {
    /// A command that expects a response.
    enum Request: Equatable {
        case leConnection(LECreditBasedConnectionRequest)
        case connection(CreditBasedConnectionRequest)
        case reconfigure(CreditBasedReconfigureRequest)
        case disconnection(DisconnectionRequest)
    }

    /// A response to a command of the peer.
    enum Response: Equatable {
        case leConnection(LECreditBasedConnectionResponse)
        case connection(CreditBasedConnectionResponse)
        case reconfigure(CreditBasedReconfigureResponse)
        case disconnection(DisconnectionResponse)
        case reject(CommandReject)
    }

    /// A command that waits to be sent.
    enum OutgoingCommand {
        case request(Request)
        case response(Response, identifier: UInt8)
    }

    /// A sent request, and the time until which it waits for its response.
    struct UnansweredRequest {
        let request: Request
        let identifier: UInt8
        var deadline: Instant
        /// Whether the peer has answered that the connection is pending.
        var isPending = false
    }

    /// Writes the next signaling command, to be sent on the signaling channel.
    ///
    /// - Parameters:
    ///   - now: the time from which a request waits for its response.
    ///   - identifiers: the link's ``SignalingChannel/identifiers``.
    ///   - grantsCredits: whether the peer may be granted credits. It may use them from then on, so an owner that
    ///     cannot send them yet does not grant them: credits that are granted later are more at a time.
    ///   - buffer: the buffer that receives the command.
    /// - Returns: whether there was a command.
    public mutating func nextCommand(
        at now: Instant,
        identifiers: inout SignalingIdentifiers,
        grantsCredits: Bool = true,
        into buffer: inout PacketBuffer
    ) -> Bool {
        while let command = outgoing.popFirst() {
            switch command {
            case .response(let response, let identifier):
                response.encode(identifier: identifier, into: &buffer)
                return true
            case .request(let request):
                // The peer may have ended the channel first.
                if case .disconnection(let disconnection) = request, !isDisconnecting(disconnection) { continue }
                write(request, at: now, identifiers: &identifiers, into: &buffer)
                return true
            }
        }
        if !heldReconfigurations.isEmpty, let request = takeReconfiguration(at: now) {
            write(.reconfigure(request), at: now, identifiers: &identifiers, into: &buffer)
            return true
        }
        return grantsCredits && writeCredits(identifiers: &identifiers, into: &buffer)
    }

    /// Writes a request, which then waits for its response.
    private mutating func write(
        _ request: Request,
        at now: Instant,
        identifiers: inout SignalingIdentifiers,
        into buffer: inout PacketBuffer
    ) {
        let identifier = takeIdentifier(from: &identifiers)
        unanswered.append(
            UnansweredRequest(
                request: request,
                identifier: identifier,
                deadline: now + SignalingChannel.responseTimeout
            )
        )
        request.encode(identifier: identifier, into: &buffer)
    }

    private mutating func writeCredits(
        identifiers: inout SignalingIdentifiers,
        into buffer: inout PacketBuffer
    ) -> Bool {
        for index in channels.indices where channels[index].isOpen {
            guard let credits = channels[index].inbound.takeGrant() else { continue }
            FlowControlCredit(channel: channels[index].identifier, credits: credits)
                .encode(identifier: takeIdentifier(from: &identifiers), into: &buffer)
            return true
        }
        return false
    }

    /// An identifier that no unanswered request has, if there is one.
    private func takeIdentifier(from identifiers: inout SignalingIdentifiers) -> UInt8 {
        var identifier = identifiers.take()
        for _ in 1..<UInt8.max where unanswered.contains(where: { $0.identifier == identifier }) {
            identifier = identifiers.take()
        }
        return identifier
    }

    /// Whether the peer has not answered a request that was sent.
    public var hasUnansweredRequest: Bool { !unanswered.isEmpty }

    /// The time at which the owner must call ``advance(to:)``; nil if there is none.
    public var deadline: Instant? {
        let deadline = unanswered.lazy.map { $0.deadline }.min()
        guard let held = heldReconfigurations.lazy.compactMap({ $0.deadline }).min() else { return deadline }
        return deadline.map { min($0, held) } ?? held
    }

    /// Ends the requests whose time has expired.
    public mutating func advance(to now: Instant) {
        while let index = unanswered.firstIndex(where: { $0.deadline <= now }) {
            switch unanswered.remove(at: index).request {
            case .leConnection(let request): fail(request.source, .timedOut)
            case .connection(let request):
                for source in request.sources { fail(source, .timedOut) }
            case .reconfigure(let request): finish(request, .timedOut)
            case .disconnection(let request): remove(request)
            }
        }
        endHeldReconfigurations(at: now)
    }

    // MARK: Ends of requests

    /// Removes a channel that could not be opened.
    mutating func fail(_ identifier: ChannelIdentifier, _ failure: ConnectionFailure) {
        guard let index = index(of: identifier) else { return }
        switch channels[index].phase {
        case .connecting:
            channels.remove(at: index)
            events.append(.failed(identifier, failure))
        case .abandoned:
            channels.remove(at: index)
        case .open, .disconnecting:
            break
        }
    }

    /// Removes a channel whose end we requested.
    mutating func remove(_ request: DisconnectionRequest) {
        guard isDisconnecting(request), let index = index(of: request.source) else { return }
        channels.remove(at: index)
    }

    private func isDisconnecting(_ request: DisconnectionRequest) -> Bool {
        guard let index = index(of: request.source) else { return false }
        return channels[index].phase == .disconnecting(remote: request.destination)
    }
}

extension CreditBasedChannels.Request {
    func encode(identifier: UInt8, into buffer: inout PacketBuffer) {
        switch self {
        case .leConnection(let request): request.encode(identifier: identifier, into: &buffer)
        case .connection(let request): request.encode(identifier: identifier, into: &buffer)
        case .reconfigure(let request): request.encode(identifier: identifier, into: &buffer)
        case .disconnection(let request): request.encode(identifier: identifier, into: &buffer)
        }
    }
}

extension CreditBasedChannels.Response {
    func encode(identifier: UInt8, into buffer: inout PacketBuffer) {
        switch self {
        case .leConnection(let response): response.encode(identifier: identifier, into: &buffer)
        case .connection(let response): response.encode(identifier: identifier, into: &buffer)
        case .reconfigure(let response): response.encode(identifier: identifier, into: &buffer)
        case .disconnection(let response): response.encode(identifier: identifier, into: &buffer)
        case .reject(let reject): reject.encode(identifier: identifier, into: &buffer)
        }
    }
}
