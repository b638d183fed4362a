import BLEByteCoding
import BluetoothTypes

extension CreditBasedChannels {
    /// Maximum number of waiting commands before the peer's commands are dropped.
    private static let outgoingLimit = 64

    /// Takes the payload of a frame from the signaling channel.
    ///
    /// - Parameters:
    ///   - payload: the frame's payload.
    ///   - services: the services that the peer may request channels to.
    ///   - security: the link's security, for services that require it.
    ///   - now: the time at which the frame was received.
    public mutating func receive(
        command payload: RawSpan,
        services: borrowing SPSMRegistry,
        security: LinkSecurity,
        at now: Instant
    ) -> CommandOutcome {
        guard payload.byteCount <= SignalingChannel.maximumTransmissionUnit,
            let command = try? SignalingCommand(decoding: payload)
        else { return .notForChannels }
        if !command.code.isResponse, outgoing.count >= CreditBasedChannels.outgoingLimit { return .overloaded }
        do throws(PacketDecodingError) {
            return command.code.isResponse
                ? try receive(response: command, at: now)
                : try receive(request: command, services: services, security: security)
        } catch {
            refuseMalformed(command)
            return .malformed(error)
        }
    }

    /// Answers a request that could not be decoded, so that the peer need not wait for its timer.
    ///
    /// An enhanced connection request has a result for this case: All Connections Refused - Invalid Parameters
    /// (Vol 3, Part A, 4.26). The response lists no channels, because the request's list cannot be read. The other
    /// requests get Command Reject, because their corresponding response would be inappropriate (Vol 3, Part A, 4.1).
    /// Responses are not answered. Credits are an indication and not answered either.
    private mutating func refuseMalformed(_ command: borrowing SignalingCommand) {
        let response: Response
        switch command.code {
        case .creditBasedConnectionRequest:
            response = .connection(CreditBasedConnectionResponse(refusing: .invalidParameters))
        case .leCreditBasedConnectionRequest, .creditBasedReconfigureRequest, .disconnectionRequest:
            response = .reject(.commandNotUnderstood)
        default: return
        }
        outgoing.append(.response(response, identifier: command.identifier))
    }

    private mutating func receive(
        request command: borrowing SignalingCommand,
        services: borrowing SPSMRegistry,
        security: LinkSecurity
    ) throws(PacketDecodingError) -> CommandOutcome {
        let response: Response?
        switch command.code {
        case .leCreditBasedConnectionRequest:
            let request = try LECreditBasedConnectionRequest(decoding: command.data)
            response = .leConnection(accept(request, services: services, security: security))
        case .creditBasedConnectionRequest:
            let request = try CreditBasedConnectionRequest(decoding: command.data)
            response = .connection(accept(request, services: services, security: security))
        case .creditBasedReconfigureRequest:
            let result = reconfigurePeer(try CreditBasedReconfigureRequest(decoding: command.data))
            response = .reconfigure(CreditBasedReconfigureResponse(result: result))
        case .disconnectionRequest:
            response = end(try DisconnectionRequest(decoding: command.data))
        case .flowControlCredit:
            add(try FlowControlCredit(decoding: command.data))
            response = nil
        default:
            return .notForChannels
        }
        if let response { outgoing.append(.response(response, identifier: command.identifier)) }
        return .handled
    }

    // MARK: Channels that the peer asks for

    private enum Admission {
        case admitted(SPSMRegistry.Service)
        case refused(CreditBasedConnectionResult)
    }

    /// Whether a service accepts channels with these values from this link.
    private func admission(
        to spsm: SPSM,
        _ variant: CreditBasedChannel.Variant,
        mtu: UInt16,
        mps: UInt16,
        initialCredits: UInt16,
        services: borrowing SPSMRegistry,
        security: LinkSecurity
    ) -> Admission {
        guard let service = services[spsm], service.variant ?? variant == variant else {
            return .refused(.spsmNotSupported)
        }
        if let refusal = service.security.refusal(for: security) { return .refused(refusal) }
        guard variant.allows(mtu: mtu, mps: mps), variant.allows(initialCredits: initialCredits) else {
            return .refused(.unacceptableParameters)
        }
        return .admitted(service)
    }

    /// The reason why a channel with this endpoint of the peer cannot be opened; nil if it can.
    private func refusal(
        ofSource source: ChannelIdentifier,
        to spsm: SPSM,
        channelLimit: Int?
    ) -> CreditBasedConnectionResult? {
        guard source.isDynamic else { return .invalidSourceCID }
        guard index(ofRemote: source) == nil else { return .sourceCIDAlreadyAllocated }
        if let channelLimit, countForLimit(of: spsm) >= channelLimit { return .noResourcesAvailable }
        return channels.count < limit ? nil : .noResourcesAvailable
    }

    /// The number of channels to a service that count for its limit.
    private func countForLimit(of spsm: SPSM) -> Int {
        channels.count { channel in
            guard channel.spsm == spsm else { return false }
            return switch channel.phase {
            case .open: true
            case .connecting: !yieldsToPeer
            case .abandoned, .disconnecting: false
            }
        }
    }

    private mutating func accept(
        _ request: LECreditBasedConnectionRequest,
        services: borrowing SPSMRegistry,
        security: LinkSecurity
    ) -> LECreditBasedConnectionResponse {
        let admission = admission(
            to: request.spsm,
            .le,
            mtu: request.mtu,
            mps: request.mps,
            initialCredits: request.initialCredits,
            services: services,
            security: security
        )
        switch admission {
        case .refused(let result):
            return LECreditBasedConnectionResponse(refusing: result)
        case .admitted(let service):
            let configuration = service.configuration
            if let result = refusal(ofSource: request.source, to: request.spsm, channelLimit: service.channelLimit) {
                return LECreditBasedConnectionResponse(refusing: result)
            }
            let identifier = addChannel(to: request.spsm, .le, configuration)
            let initialCredits = openLast(request.source, request.mtu, request.mps, request.initialCredits)
            return LECreditBasedConnectionResponse(
                destination: identifier,
                mtu: configuration.mtu,
                mps: configuration.mps,
                initialCredits: initialCredits,
                result: .successful
            )
        }
    }

    private mutating func accept(
        _ request: CreditBasedConnectionRequest,
        services: borrowing SPSMRegistry,
        security: LinkSecurity
    ) -> CreditBasedConnectionResponse {
        var response = CreditBasedConnectionResponse(refusing: .successful)
        let admission = admission(
            to: request.spsm,
            .enhanced,
            mtu: request.mtu,
            mps: request.mps,
            initialCredits: request.initialCredits,
            services: services,
            security: security
        )
        switch admission {
        case _ where request.sources.isEmpty:
            response.result = .invalidParameters
        case .refused(let result):
            response.result = result
            for _ in request.sources { response.destinations.append(.null) }
        case .admitted(let service) where service.refusesMixedSources && request.mixesSources:
            response.result = .invalidParameters
            for _ in request.sources { response.destinations.append(.null) }
        case .admitted(let service):
            let raised = service.configuration.raised(for: .enhanced)
            response.mtu = raised.mtu
            response.mps = raised.mps
            // If there are several reasons, we may choose which to report: the first one.
            for source in request.sources {
                if let refusal = refusal(ofSource: source, to: request.spsm, channelLimit: service.channelLimit) {
                    if response.result == .successful { response.result = refusal }
                    response.destinations.append(.null)
                    continue
                }
                response.destinations.append(addChannel(to: request.spsm, .enhanced, raised))
                response.initialCredits = openLast(source, request.mtu, request.mps, request.initialCredits)
            }
        }
        return response
    }

    /// Opens the channel that was added last and returns the initial credits of the peer.
    private mutating func openLast(
        _ remote: ChannelIdentifier,
        _ mtu: UInt16,
        _ mps: UInt16,
        _ credits: UInt16
    ) -> UInt16 {
        let index = channels.count - 1
        channels[index].open(remote: remote, mtu: mtu, mps: mps, credits: credits)
        events.append(.accepted(channels[index].identifier))
        return channels[index].inbound.takeGrant() ?? 0
    }

    // MARK: Changes that the peer asks for

    private mutating func reconfigurePeer(_ request: CreditBasedReconfigureRequest) -> CreditBasedReconfigureResult {
        guard CreditBasedChannel.Variant.enhanced.allows(mtu: request.mtu, mps: request.mps) else {
            return .unacceptableParameters
        }
        guard !request.destinations.isEmpty else { return .invalidDestinationCIDs }
        for remote in request.destinations {
            guard let index = index(ofRemote: remote), channels[index].isOpen, channels[index].variant == .enhanced
            else { return .invalidDestinationCIDs }
            guard request.mtu >= channels[index].peerMTU else { return .reductionOfMTUNotAllowed }
            guard request.destinations.count == 1 || request.mps >= channels[index].peerMPS else {
                return .reductionOfMPSNotAllowed
            }
        }
        for remote in request.destinations {
            guard let index = index(ofRemote: remote) else { continue }
            channels[index].outbound.reconfigure(mtu: request.mtu, mps: request.mps)
            events.append(.peerReconfigured(channels[index].identifier))
        }
        return .successful
    }

    private mutating func end(_ request: DisconnectionRequest) -> Response? {
        guard let index = index(of: request.destination) else {
            return .reject(
                .invalidChannel(local: request.destination.rawValue, remote: request.source.rawValue)
            )
        }
        // A request with the wrong source is silently discarded (Vol 3, Part A, 4.6).
        guard channels[index].remote == request.source else { return nil }
        if channels[index].isOpen {
            events.append(.closed(request.destination, .byPeer, unread: channels[index].inbound.readAll()))
        }
        channels.remove(at: index)
        unanswered.removeAll {
            if case .disconnection(let own) = $0.request { own.source == request.destination } else { false }
        }
        return .disconnection(DisconnectionResponse(destination: request.destination, source: request.source))
    }

    /// Adds credits to a channel. Credits for an unknown channel are ignored.
    ///
    /// The peer may send credits before it learns that a channel has ended. Command Reject answers a command whose
    /// corresponding response would be inappropriate (Vol 3, Part A, 4.1). This command is an indication and has no
    /// response (Vol 3, Part A, 4.24).
    private mutating func add(_ grant: FlowControlCredit) {
        guard let index = index(ofRemote: grant.channel), channels[index].isOpen else { return }
        do throws(CreditBasedChannel.Violation) {
            try channels[index].outbound.add(credits: grant.credits)
        } catch {
            close(index, .violation(error))
        }
    }
}

extension CreditBasedConnectionRequest {
    /// Whether the last of several channels is the first in the list.
    fileprivate var mixesSources: Bool {
        guard let first = sources.first, sources.count > 1 else { return false }
        let others = sources.dropFirst()
        return others.allSatisfy { $0.rawValue < first.rawValue }
            && zip(others, others.dropFirst()).allSatisfy { $0.rawValue < $1.rawValue }
    }
}
