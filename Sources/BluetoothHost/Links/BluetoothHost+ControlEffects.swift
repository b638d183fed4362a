import BLEHCI
import BluetoothTypes

// The connection between the host and the Link Layer control of its links: events, and the effects of all inputs.
extension BluetoothHost {
    var controlContext: ControlContext {
        ControlContext(now: loop.now, isPoweredOn: power == .on, commandTimeout: configuration.commandTimeout)
    }

    // MARK: Events

    func connectionUpdated(_ event: LEConnectionUpdateComplete) {
        guard let link = links[event.connectionHandle] else { return }
        perform(link.control.received(event, controlContext), of: link)
    }

    func phyUpdated(_ event: LEPHYUpdateComplete) {
        guard let link = links[event.connectionHandle] else { return }
        perform(link.control.received(event, controlContext), of: link)
    }

    private func physRead(_ phys: LEReadPHY.ReturnParameters, of identifier: LinkIdentifier) {
        guard let link = links[identifier] else { return }
        perform(link.control.received(phys), of: link)
    }

    func remoteFeaturesRead(_ event: LEReadRemoteFeaturesComplete) {
        guard let link = links[event.connectionHandle] else { return }
        if event.status == .success { establish(link) }
        perform(link.control.received(event, controlContext), of: link)
    }

    func dataLengthChanged(_ event: LEDataLengthChange) {
        links[event.connectionHandle]?.control.received(event)
    }

    func subrateChanged(_ event: LESubrateChange) {
        guard let link = links[event.connectionHandle] else { return }
        perform(link.control.received(event, controlContext), of: link)
    }

    func transmitPowerReported(_ event: LETransmitPowerReporting) {
        guard let link = links[event.connectionHandle] else { return }
        perform(link.control.received(event, controlContext), of: link)
    }

    func pathLossReported(_ event: LEPathLossThreshold) {
        guard let link = links[event.connectionHandle] else { return }
        perform(link.control.received(event), of: link)
    }

    /// Answers a peer that requests other parameters through the Link Layer.
    func parametersRequested(_ event: LERemoteConnectionParameterRequest) {
        guard links[event.connectionHandle]?.control.accepts(event) == true else {
            return sendAndForget(
                LERemoteConnectionParameterRequestNegativeReply(connectionHandle: event.connectionHandle)
            )
        }
        sendAndForget(
            LERemoteConnectionParameterRequestReply(
                connectionHandle: event.connectionHandle,
                intervalMin: event.intervalMin,
                intervalMax: event.intervalMax,
                maxLatency: event.maxLatency,
                timeout: event.timeout
            )
        )
    }

    // MARK: Ends of links

    /// Ends a link by the host's own decision.
    ///
    /// - Parameter told: the reason that is sent to the peer.
    func giveUp(
        _ link: Link,
        _ reason: DisconnectionReason,
        telling told: HCIErrorCode = .remoteUserTerminatedConnection
    ) {
        perform(link.control.disconnect(reason, telling: told, controlContext), of: link)
    }

    /// Has the controller end a link, unless the link ends already.
    func beginDisconnection(of link: Link, _ reason: HCIErrorCode) {
        let effects = link.control.disconnect(nil, telling: reason, controlContext)
        guard !effects.isEmpty else { return }
        armTimer(of: link)
        // Earlier calls are sent first.
        endInput()
        guard links[link.identifier] != nil else { return }
        perform(effects, of: link)
    }

    // MARK: Effects

    func perform(_ effects: [ControlEffect], of link: Link) {
        for effect in effects { perform(effect, of: link) }
        if let deadline = link.control.deadline, links[link.identifier] != nil { armTimer(of: link, by: deadline) }
    }

    private func perform(_ effect: ControlEffect, of link: Link) {
        switch effect {
        case .command(let command, let step): send(command, step, of: link)
        case .requestBySignaling(let request): requestBySignaling(request, of: link)
        case .finish(let call, let failure): finish(call, failure)
        case .finishPowerRead(let call, let power): finishPowerRead(call, power)
        case .report(let event): report(event, of: link)
        case .endObservation(let observation, let error): endObservation(observation, error)
        case .notEnding: controllerFailed("it did not end the link to \(link.peer)")
        case .hasEnded: endLink(link.handle, .controller(.connectionTerminatedByLocalHost))
        }
    }

    private func send(_ command: ControlCommand, _ step: ControlStep, of link: Link) {
        switch command {
        case .connectionUpdate(let command): send(command, step, of: link)
        case .setPHY(let command): send(command, step, of: link)
        case .readPHY(let command): sendRead(command, step, of: link)
        case .readFeatures(let command): send(command, step, of: link)
        case .setDataLength(let command): send(command, step, of: link)
        case .disconnect(let command): send(command, step, of: link)
        case .requestSubrate(let command): send(command, step, of: link)
        case .readRemotePower(let command):
            enableEvents(.transmitPowerReporting)
            send(command, step, of: link)
        case .reportTransmitPower(let command):
            enableEvents(.transmitPowerReporting)
            send(command, step, of: link)
        case .setPathLossThresholds(let command): send(command, step, of: link)
        case .reportPathLoss(let command):
            enableEvents(.pathLossThreshold)
            send(command, step, of: link)
        }
    }

    private func send(_ command: some BLEHCI.Command, _ step: ControlStep, of link: Link) {
        let identifier = link.identifier
        send(command) { [weak self] result in
            switch (result, step) {
            case (.failure(let failure), _): self?.assumeIsolated { $0.commandFailed(step, failure, of: identifier) }
            case (.success, .reports(let step)): self?.assumeIsolated { $0.reportsChanged(step, of: identifier) }
            case (.success, _): break
            }
        }
    }

    private func sendRead(_ command: LEReadPHY, _ step: ControlStep, of link: Link) {
        let identifier = link.identifier
        send(command) { [weak self] result in
            self?.assumeIsolated { host in
                switch result {
                case .success(let phys): host.physRead(phys, of: identifier)
                case .failure(let failure): host.commandFailed(step, failure, of: identifier)
                }
            }
        }
    }

    private func commandFailed(_ step: ControlStep, _ failure: CommandFailure, of identifier: LinkIdentifier) {
        logger.debug("\(failure)")
        guard let link = links[identifier] else { return }
        perform(link.control.commandFailed(step, failure, controlContext), of: link)
    }

    private func reportsChanged(_ step: LinkReportStep, of identifier: LinkIdentifier) {
        guard let link = links[identifier] else { return }
        perform(link.control.reportsChanged(step), of: link)
    }
}
