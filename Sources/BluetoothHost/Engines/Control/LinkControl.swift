import BLEHCI
import BLEL2CAP
import BluetoothTypes

/// The Link Layer's view of one link: connection parameters, subrate, PHYs, payload lengths, transmit powers, and the
/// end of the link.
///
/// ## Procedures
///
/// Calls request updates of the connection's parameters, subrate and PHYs, and the peer's features and transmit power.
/// One procedure of each kind runs at a time; the others wait in the order of their calls. A procedure ends with the
/// controller's event, with the refusal of its command or request, or after 40 s. An update of the parameters or PHYs
/// may take longer on a link whose peripheral listens rarely. The 40 s of an update that a peripheral has requested
/// begin again when the central accepts the request, which takes up to 30 s. A refusal ends only the procedure that
/// sent the command. By then, an event may have ended it, and the next one may have begun.
///
/// ## End
///
/// A link may be released before it is disconnected: then its last packets are still sent, and new connection attempts
/// do not use it. A link that the controller does not end in time is reported. After ``linkEnded(_:)`` requests fail at
/// once and all other inputs have no effect.
struct LinkControl {
    private enum Phase: Equatable {
        case connected
        /// The link will be ended once all packets written to it are sent, or at this time.
        case released(until: Instant?)
        /// The controller has been asked to end the link. The time is nil after it was reported as not ending.
        ///
        /// `ownReason` is the host's own reason, if the controller's reason does not express it.
        indirect case disconnecting(until: Instant?, ownReason: DisconnectionReason?)
        indirect case ended(DisconnectionReason)
    }

    /// The time that the Link Layer allows for a procedure (Vol 6, Part B, 5.2).
    static let procedureTimeout = Duration.seconds(40)
    /// How long the event of an update can take, besides ten connection events that the peripheral uses.
    static let reportMargin = Duration.seconds(2)
    /// Maximum time for which values that are not sent yet delay the end of a link that the app ends.
    static let flushLimit = Duration.seconds(2)
    /// Number of PDUs of one link that are dropped before the peer is disconnected.
    static let floodingLimit = 256
    private static let disconnectionMargin = Duration.seconds(2)

    let handle: ConnectionHandle
    private let role: SignalingChannel.Role

    /// The parameters in use. Like the properties that follow, only what the controller reports changes them.
    var parameters: NegotiatedConnectionParameters
    var transmitPHY = PHY.le1M
    var receivePHY = PHY.le1M
    /// Whether the controller has reported the PHYs. Before, a link is taken to use LE 1M.
    var arePHYsReported = false
    var maximumTransmitOctets: UInt16 = 27
    var maximumReceiveOctets: UInt16 = 27
    /// The features that the peer's controller supports; nil until a call has requested them.
    var peerFeatures: LEFeatures?

    var procedures = LinkProcedures()
    /// The observers of the link's events.
    var reports = LinkReports()
    private var phase = Phase.connected
    /// The number of dropped PDUs that ``peerFloods(_:)`` has counted.
    private var floodingCount = 0
    /// The number of holds: successful calls of ``BluetoothHost/connect(toAnyOf:parameters:timeout:)`` and
    /// ``BluetoothHost/hold(_:)`` that were not followed by a release.
    private(set) var holdCount = 0

    init(handle: ConnectionHandle, role: SignalingChannel.Role, parameters: NegotiatedConnectionParameters) {
        self.handle = handle
        self.role = role
        self.parameters = parameters
    }

    // MARK: State

    /// Whether the link will end soon, so that new connection attempts must not use it.
    var isEnding: Bool { phase != .connected }

    /// Whether the controller has been asked to end the link, or the link has ended.
    var isDisconnecting: Bool {
        switch phase {
        case .connected, .released: false
        case .disconnecting, .ended: true
        }
    }

    /// The host's own reason for ending the link, if the controller's reason does not express it.
    var ownReason: DisconnectionReason? {
        if case .disconnecting(_, let reason) = phase { reason } else { nil }
    }

    /// The earliest time at which ``advance(_:)`` is to be called; nil if there is none.
    var deadline: Instant? {
        let end: Instant? =
            switch phase {
            case .connected, .ended: nil
            case .released(let until), .disconnecting(let until, _): until
            }
        return earliest(end, procedures.deadline)
    }

    /// The error of inputs after the end of the link; nil before.
    var endError: HostError? {
        if case .ended(let reason) = phase { .disconnected(reason) } else { nil }
    }

    // MARK: Requests

    /// Requests the longest payload that the controller can send, for a new link.
    func linkBegan(_ controller: ControllerInformation) -> [ControlEffect] {
        guard controller.maximumTransmitOctets > 27, controller.commands.contains(LESetDataLength.self) else {
            return []
        }
        let command = LESetDataLength(
            connectionHandle: handle,
            txOctets: controller.maximumTransmitOctets,
            txTime: controller.maximumTransmitTime
        )
        return [.command(.setDataLength(command), .unawaited)]
    }

    /// Reads the PHYs of a new link that may have others than LE 1M.
    func readPHYs() -> [ControlEffect] { [.command(.readPHY(LEReadPHY(connectionHandle: handle)), .phyRead)] }

    /// Requests a procedure for a call. An earlier procedure of its kind is finished first.
    mutating func request(_ request: LinkRequest, for call: CallToken, _ context: ControlContext) -> [ControlEffect] {
        if let endError { return [.finish(call, endError)] }
        procedures[request.procedure].append(call, request)
        return begin(request.procedure, context)
    }

    /// Requests other parameters, and reports no outcome. A newer request replaces a waiting one.
    mutating func requestUnawaited(_ parameters: ConnectionParameters, _ context: ControlContext) -> [ControlEffect] {
        guard endError == nil else { return [] }
        procedures[.connectionUpdate].appendUnawaited(.parameters(parameters))
        return begin(.connectionUpdate, context)
    }

    /// As the central: carries out the request of a peripheral on the signaling channel, which was accepted.
    mutating func peerRequested(
        _ request: ConnectionParameterUpdateRequest,
        _ context: ControlContext
    ) -> [ControlEffect] {
        guard endError == nil else { return [] }
        procedures[.connectionUpdate].setPeerRequest(.peerParameters(request))
        return begin(.connectionUpdate, context)
    }

    /// Forgets a call that was cancelled. Its procedure continues if it has begun.
    mutating func cancel(_ call: CallToken) {
        procedures.remove(call)
    }

    /// Starts the next procedure of a kind, unless one is running.
    mutating func begin(_ procedure: LinkProcedure, _ context: ControlContext) -> [ControlEffect] {
        guard context.isPoweredOn else { return [] }
        guard let request = procedures[procedure].begin(until: context.now + timeout(of: procedure)) else { return [] }
        if let error = obstacle(to: request) { return end(procedure, error, context) }
        let command: ControlCommand
        switch request {
        case .parameters(let parameters) where role == .peripheral:
            return [.requestBySignaling(ConnectionParameterUpdateRequest(parameters))]
        case .parameters(let parameters):
            command = .connectionUpdate(LEConnectionUpdate(handle, ConnectionParameterUpdateRequest(parameters)))
        case .peerParameters(let parameters):
            command = .connectionUpdate(LEConnectionUpdate(handle, parameters))
        case .phys(let transmit, let receive, let coding):
            command = .setPHY(
                LESetPHY(connectionHandle: handle, txPHYs: transmit, rxPHYs: receive, phyOptions: coding)
            )
        case .features: command = .readFeatures(LEReadRemoteFeatures(connectionHandle: handle))
        case .subrate(let parameters): command = .requestSubrate(LESubrateRequest(handle, parameters))
        case .peerPower(let phy):
            command = .readRemotePower(LEReadRemoteTransmitPowerLevel(connectionHandle: handle, phy: phy))
        }
        return [.command(command, .procedure(procedure, number: procedures[procedure].number))]
    }

    /// Maximum duration of a procedure.
    ///
    /// New parameters and PHYs take effect at an instant. Before it, there are usually at least six connection events
    /// that the peripheral uses (Vol 6, Part B, 5.1). On a link with long intervals or latency, that is more than 40 s.
    func timeout(of procedure: LinkProcedure) -> Duration {
        switch procedure {
        case .connectionUpdate, .phyUpdate: max(LinkControl.procedureTimeout, reportLimit)
        case .featureExchange, .subrateUpdate, .powerRead: LinkControl.procedureTimeout
        }
    }

    /// Maximum time until the controller reports an update.
    var reportLimit: Duration { LinkControl.reportMargin + parameters.longestSilence * 10 }

    /// Why a request cannot begin with the present subrate; nil if it can. The subrate may have changed since the
    /// request.
    private func obstacle(to request: LinkRequest) -> HostError? {
        let update: ConnectionParameterUpdateRequest
        switch request {
        case .parameters(let wanted): update = ConnectionParameterUpdateRequest(wanted)
        case .peerParameters(let wanted): update = wanted
        case .phys, .features, .subrate, .peerPower: return nil
        }
        let limit = parameters.timeoutLimit(of: update)
        guard update.supervisionTimeout <= limit else { return nil }
        return .invalidArgument(
            "the supervision timeout of \(update.supervisionTimeout) is too short for the link's subrate factor of "
                + "\(parameters.subrateFactor); use more than \(limit)"
        )
    }

    /// Ends the current procedure of a kind, and starts the next.
    mutating func end(
        _ procedure: LinkProcedure,
        _ failure: HostError?,
        _ context: ControlContext
    ) -> [ControlEffect] {
        let call = procedures[procedure].end()
        return (call.map { [.finish($0, failure)] } ?? []) + begin(procedure, context)
    }

    // MARK: Outcomes

    /// Takes the failure of a command that was sent for this link.
    mutating func commandFailed(
        _ step: ControlStep,
        _ failure: CommandFailure,
        _ context: ControlContext
    ) -> [ControlEffect] {
        guard endError == nil else { return [] }
        switch step {
        case .procedure(let procedure, let number):
            let current = procedures[procedure]
            guard let error = failure.procedureError, current.isRunning, current.number == number
            else { return [] }
            return end(procedure, error, context)
        case .reports(let step):
            guard let error = failure.procedureError else { return [] }
            return reports.failed(step).map { .endObservation($0, error) } + continueReports()
        case .disconnection: return failure.isUnknownLink ? [.hasEnded] : []
        case .phyRead, .unawaited: return []
        }
    }

    // MARK: End of the link

    /// Adds a hold, which a caller that shares the link releases later.
    mutating func hold() { holdCount += 1 }

    /// Releases one hold.
    ///
    /// - Returns: whether it was the last.
    @discardableResult
    mutating func releaseHold() -> Bool {
        holdCount -= 1
        return holdCount <= 0
    }

    /// Marks a link that is to end once all packets written to it are sent.
    ///
    /// - Parameter isLimited: whether the link ends after ``flushLimit`` even if the peer has not taken all.
    /// - Returns: false if the link is ending already.
    mutating func release(isLimited: Bool, _ context: ControlContext) -> Bool {
        guard phase == .connected else { return false }
        phase = .released(until: isLimited ? context.now + LinkControl.flushLimit : nil)
        return true
    }

    /// Has the controller end the link, unless the link is ending already.
    ///
    /// The controller waits for the peer's answer for at most the supervision timeout (Vol 6, Part B, 5.1.6). If the
    /// link still exists after that, the controller has failed.
    ///
    /// - Parameters:
    ///   - ownReason: the host's reason, if the controller's reason does not express it.
    ///   - told: the reason that is sent to the peer.
    mutating func disconnect(
        _ ownReason: DisconnectionReason?,
        telling told: HCIErrorCode = .remoteUserTerminatedConnection,
        _ context: ControlContext
    ) -> [ControlEffect] {
        guard !isDisconnecting else { return [] }
        let time = parameters.supervisionTimeout + context.commandTimeout + LinkControl.disconnectionMargin
        phase = .disconnecting(until: context.now + time, ownReason: ownReason)
        return [.command(.disconnect(Disconnect(connectionHandle: handle, reason: told)), .disconnection)]
    }

    /// Counts a PDU that was dropped because the peer does not take the answers to earlier ones. A peer that continues
    /// is disconnected.
    mutating func peerFloods(_ context: ControlContext) -> [ControlEffect] {
        guard endError == nil else { return [] }
        floodingCount += 1
        return floodingCount == LinkControl.floodingLimit ? disconnect(.peerFlooding, context) : []
    }

    /// Ends the link's procedures, the oldest first of each kind.
    mutating func linkEnded(_ reason: DisconnectionReason) -> [ControlEffect] {
        guard endError == nil else { return [] }
        phase = .ended(reason)
        let observations = reports.removeAll()
        return procedures.removeAll().map { .finish($0, .disconnected(reason)) }
            + observations.map { .endObservation($0, .disconnected(reason)) }
    }

    // MARK: Time

    /// Ends the procedures whose time has passed, and a release that has taken too long.
    mutating func advance(_ context: ControlContext) -> [ControlEffect] {
        var effects: [ControlEffect] = []
        for procedure in LinkProcedure.allCases {
            if let deadline = procedures[procedure].deadline, deadline <= context.now {
                effects += end(procedure, .timedOut, context)
            }
        }
        switch phase {
        case .released(let until?) where until <= context.now:
            effects += disconnect(.controller(.connectionTerminatedByLocalHost), context)
        case .disconnecting(let until?, let ownReason) where until <= context.now:
            phase = .disconnecting(until: nil, ownReason: ownReason)
            effects.append(.notEnding)
        default: break
        }
        return effects
    }

    // MARK: Requests of the Link Layer

    /// The answer to a peer that requests other parameters through the Link Layer: those that the link can use are
    /// accepted.
    func accepts(_ event: LERemoteConnectionParameterRequest) -> Bool {
        parameters.allow(
            ConnectionParameterUpdateRequest(
                intervalMin: event.intervalMin,
                intervalMax: event.intervalMax,
                latency: event.maxLatency,
                timeout: event.timeout
            )
        )
    }
}

extension ConnectionParameterUpdateRequest {
    fileprivate init(_ parameters: ConnectionParameters) {
        self.init(
            intervalMin: parameters.intervalMinimum,
            intervalMax: parameters.intervalMaximum,
            latency: parameters.latencyInEvents,
            timeout: parameters.timeout
        )
    }
}

extension LEConnectionUpdate {
    fileprivate init(_ handle: ConnectionHandle, _ parameters: ConnectionParameterUpdateRequest) {
        self.init(
            connectionHandle: handle,
            connectionIntervalMin: parameters.intervalMin,
            connectionIntervalMax: parameters.intervalMax,
            maxLatency: parameters.latency,
            supervisionTimeout: parameters.timeout
        )
    }
}
