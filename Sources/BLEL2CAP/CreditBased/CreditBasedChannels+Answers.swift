import BLEByteCoding
import BluetoothTypes

extension CreditBasedChannels {
    /// Takes the peer's answer to one of our requests.
    mutating func receive(
        response command: borrowing SignalingCommand,
        at now: Instant
    ) throws(PacketDecodingError) -> CommandOutcome {
        let code = command.code
        let identifier = command.identifier
        guard let position = unanswered.firstIndex(where: { $0.identifier == identifier }) else {
            // A stale response is ignored. A reject or an update may belong to the signaling channel.
            return code == .commandReject || code == .connectionParameterUpdateResponse ? .notForChannels : .handled
        }
        switch (code, unanswered[position].request) {
        case (.leCreditBasedConnectionResponse, .leConnection(let request)):
            let response = try LECreditBasedConnectionResponse(decoding: command.data)
            unanswered.remove(at: position)
            open(request, response)
        case (.creditBasedConnectionResponse, .connection(let request)):
            let response = try CreditBasedConnectionResponse(decoding: command.data)
            if response.result.isPending {
                // Only the first of these answers gives the peer more time. Otherwise it could delay the end forever.
                if !unanswered[position].isPending {
                    unanswered[position].isPending = true
                    unanswered[position].deadline = now + CreditBasedChannels.extendedResponseTimeout
                }
            } else {
                unanswered.remove(at: position)
                open(request, response)
            }
        case (.creditBasedReconfigureResponse, .reconfigure(let request)):
            let response = try CreditBasedReconfigureResponse(decoding: command.data)
            unanswered.remove(at: position)
            finish(request, .answered(response.result))
        case (.disconnectionResponse, .disconnection(let request)):
            let response = try DisconnectionResponse(decoding: command.data)
            // A response with other endpoints is silently discarded (Vol 3, Part A, 4.7).
            guard response.destination == request.destination, response.source == request.source else { break }
            unanswered.remove(at: position)
            remove(request)
        case (.commandReject, let request):
            let reject = try CommandReject(decoding: command.data)
            unanswered.remove(at: position)
            receive(reject, of: request)
        case (.connectionParameterUpdateResponse, _):
            return .notForChannels
        default:
            break
        }
        return .handled
    }

    private mutating func receive(_ reject: CommandReject, of request: Request) {
        switch request {
        case .leConnection(let request): fail(request.source, .rejected(reject))
        case .connection(let request):
            for source in request.sources { fail(source, .rejected(reject)) }
        case .reconfigure(let request): finish(request, .rejected(reject))
        case .disconnection(let request): remove(request)
        }
    }

    private mutating func open(_ request: LECreditBasedConnectionRequest, _ response: LECreditBasedConnectionResponse) {
        guard response.result == .successful else { return fail(request.source, .refused(response.result)) }
        open(request.source, response.destination, response.mtu, response.mps, response.initialCredits)
    }

    private mutating func open(_ request: CreditBasedConnectionRequest, _ response: CreditBasedConnectionResponse) {
        for (position, source) in request.sources.enumerated() {
            guard response.result.allowsChannels else {
                fail(source, .refused(response.result))
                continue
            }
            guard position < response.destinations.count else {
                fail(source, .invalidResponse)
                continue
            }
            let destination = response.destinations[position]
            if destination == .null {
                fail(source, response.result == .successful ? .invalidResponse : .refused(response.result))
            } else {
                open(source, destination, response.mtu, response.mps, response.initialCredits)
            }
        }
    }

    /// Opens a channel that the peer reports as open.
    private mutating func open(
        _ source: ChannelIdentifier,
        _ destination: ChannelIdentifier,
        _ mtu: UInt16,
        _ mps: UInt16,
        _ initialCredits: UInt16
    ) {
        guard let index = index(of: source) else { return }
        guard destination.isDynamic else { return fail(source, .invalidResponse) }
        if let other = self.index(ofRemote: destination) {
            close(other, .violation(.destinationAlreadyAllocated))
            return fail(source, .destinationAlreadyAllocated)
        }
        let variant = channels[index].variant
        let isAcceptable = variant.allows(mtu: mtu, mps: mps) && variant.allows(initialCredits: initialCredits)
        let isWanted = channels[index].phase == .connecting
        if isAcceptable, isWanted {
            channels[index].open(remote: destination, mtu: mtu, mps: mps, credits: initialCredits)
            events.append(.opened(source))
            return
        }
        // The peer believes that the channel is open.
        if isWanted { events.append(.failed(source, .invalidResponse)) }
        _ = channels[index].startDisconnecting(from: destination)
        outgoing.append(.request(.disconnection(DisconnectionRequest(destination: destination, source: source))))
    }
}
