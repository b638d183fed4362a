import BLEHCI
import BluetoothTypes

extension LinkEnd {
    /// Maximum time for the peer's answer (Vol 6, Part B, 5.2).
    private static let responseTimeout = Duration.seconds(40)
    /// Maximum number of procedures of the host's commands that wait.
    private static let maximumWaiting = 64

    /// Whether a command of the host may begin a procedure. Otherwise, the controller is busy.
    var canBegin: Bool { waiting.count < LinkEnd.maximumWaiting }

    /// Returns the answer to a command that begins a procedure: Controller Busy if too many procedures wait.
    func answer(beginning new: Procedure) -> CommandTable.Beginning {
        canBegin ? .begun { [self] in begin(new) } : .refused(.controllerBusy)
    }

    /// Starts the procedures that the Link Layer runs on its own after a connection.
    func beginDefaultProcedures() {
        if transmitLength.maxTXOctets > 27 { begin(.dataLength) }
        if let wanted = controller.linkDefaults.phys,
            !wanted.transmit.contains(.le1M) || !wanted.receive.contains(.le1M)
        {
            begin(.phys(wanted, isWantedByHost: false))
        }
    }

    /// Starts a procedure after all earlier ones.
    func begin(_ new: Procedure) {
        waiting.append(new)
        beginNext()
    }

    /// Starts the next waiting procedure, unless one is active or encryption is being started (Vol 6, Part B, 5.1.3.1).
    func beginNext() {
        // A procedure that ends at once calls this method again. The loop starts the next one, without recursion.
        guard !isBeginning else { return }
        isBeginning = true
        defer { isBeginning = false }
        while procedure == nil, !isGone, !encryption.pausesData, let next = waiting.popFirst() {
            procedure = next
            procedures += 1
            start(next)
            if procedure != nil { watchResponse() }
        }
    }

    /// Ends the link if the active procedure does not end in time.
    private func watchResponse() {
        let number = procedures
        air.schedule(after: LinkEnd.responseTimeout) { [weak self] in
            guard let self, procedure != nil, procedures == number else { return }
            end(.lmpOrLLResponseTimeout)
        }
    }

    /// Ends the active procedure.
    func finish() {
        procedure = nil
        advanceEncryption()
        beginNext()
    }

    private func start(_ procedure: Procedure) {
        switch procedure {
        case .features:
            if peerFeatures != nil { tellFeatures() } else { send(.featureRequest(controller.linkFeatures)) }
        case .version:
            if peerVersion != nil { tellVersion() } else { send(ownVersion) }
        case .connectionUpdate(let wanted, _):
            if role == .central { indicate(wanted.chosen) } else { send(.connectionParametersRequest(wanted)) }
        case .channelMap(let map): indicate(map)
        case .dataLength: send(.lengthRequest(transmitLength))
        case .phys(let choice, _): send(.phyRequest(choice))
        case .encryption(let command): startEncryption(command)
        case .ping: send(.pingRequest)
        case .subrate(let wanted): startSubrate(wanted)
        case .power(let phy, let delta, _): startPowerRequest(phy, delta: delta)
        case .channelSounding(let request): send(.channelSounding(request))
        case .message(let pdu): send(pdu)
        }
    }

    /// Ends the procedure of a PDU without response, because the peer has acknowledged it.
    func wasAcknowledged(_ pdu: ControlPDU) {
        if case .message(let sent)? = procedure, sent == pdu { finish() }
    }

    /// Reports failure for the procedures whose results the host awaits.
    func failProcedures(_ reason: HCIErrorCode) {
        let all = [procedure].compactMap { $0 } + waiting
        procedure = nil
        waiting.removeAll()
        for each in all {
            switch each {
            case .features:
                controller.tellLE(
                    LEReadRemoteFeaturesComplete(status: reason, connectionHandle: handle, leFeatures: [])
                )
            case .version:
                controller.tell(
                    ReadRemoteVersionInformationComplete(
                        status: reason,
                        connectionHandle: handle,
                        version: CoreVersion(rawValue: 0),
                        companyIdentifier: 0,
                        subversion: 0
                    )
                )
            default: break
            }
        }
    }

    // MARK: PDUs of the peer

    func receive(_ pdu: ControlPDU) {
        switch pdu {
        case .terminate(let reason):
            if role == .central { link.acknowledgeTermination() }
            end(reason)
        case .connectionUpdate(let parameters, let instant): take(parameters, at: instant)
        case .channelMap(let map, let instant):
            if !link.change(at: instant, { [link] in link.apply(map) }) { end(.instantPassed) }
        case .connectionParametersRequest(let wanted): consider(wanted)
        case .connectionParametersResponse(let agreed): indicate(agreed.chosen)
        case .featureRequest(let features):
            peerFeatures = features
            send(.featureResponse(controller.linkFeatures))
        case .featureResponse(let features):
            peerFeatures = features
            if case .features? = procedure { tellFeatures() }
        case .version(let version, let company, let subversion):
            let isAnswer = if case .version? = procedure { true } else { false }
            if peerVersion == nil, !isAnswer { send(ownVersion) }
            peerVersion = (version, company, subversion)
            if isAnswer { tellVersion() }
        case .lengthRequest(let peer):
            agree(on: peer)
            send(.lengthResponse(transmitLength))
        case .lengthResponse(let peer):
            agree(on: peer)
            if case .dataLength? = procedure { finish() }
        case .phyRequest(let choice): consider(choice)
        case .phyResponse(let choice): indicate(choice)
        case .phyUpdate(let toPeripheral, let toCentral, let instant):
            take(centralToPeripheral: toPeripheral, peripheralToCentral: toCentral, at: instant)
        case .pingRequest: answerPing()
        case .pingResponse:
            if case .ping? = procedure { finish() }
        case .periodicSync(let transfer): receive(transfer)
        case .channelSounding(let pdu): receive(pdu)
        case .subrateRequest(let wanted): consider(wanted)
        case .subrateIndication(let subrate): take(subrate)
        case .powerRequest(let phy, let delta, let power): consider(phy, delta: delta, peerPower: power)
        case .powerResponse(let limits, let delta, let power): takePower(limits, delta: delta, power)
        case .powerChange(let phy, let limits, let delta, let power):
            peerChangedPower(phy, limits, delta: delta, power)
        case .reject(let what, let reason): wasRejected(what, reason)
        default: receiveEncryption(pdu)
        }
    }

    private func wasRejected(_ what: ControlPDU.Rejected, _ reason: HCIErrorCode) {
        switch (what, procedure) {
        case (.connectionParameters, .connectionUpdate(_, let isWanted)?):
            if isWanted { tellUpdated(reason) }
            finish()
        case (.phy, .phys(_, let isWanted)?):
            if isWanted { tellPHYs(reason) }
            finish()
        case (.encryption, .encryption?): encryptionWasRejected(reason)
        case (.ping, .ping?): finish()
        case (.subrate, .subrate?): subrateWasRefused(reason)
        case (.power, .power?): powerWasRefused(reason)
        default: break
        }
    }

    // MARK: Features and version

    private func tellFeatures() {
        controller.tellLE(
            LEReadRemoteFeaturesComplete(connectionHandle: handle, leFeatures: peerFeatures ?? [])
        )
        finish()
    }

    private var ownVersion: ControlPDU {
        .version(VirtualController.version, company: VirtualController.company, subversion: 0)
    }

    private func tellVersion() {
        if let peerVersion {
            controller.tell(
                ReadRemoteVersionInformationComplete(
                    connectionHandle: handle,
                    version: peerVersion.version,
                    companyIdentifier: peerVersion.company,
                    subversion: peerVersion.subversion
                )
            )
        }
        finish()
    }

    // MARK: Connection parameters

    /// As the central: informs the peripheral of new parameters, which apply from an event on.
    private func indicate(_ parameters: LinkParameters) {
        let instant = link.futureInstant()
        send(.connectionUpdate(parameters, instant: instant))
        take(parameters, at: instant)
    }

    private func take(_ parameters: LinkParameters, at instant: UInt64) {
        let isInTime = link.change(at: instant) { [self] in
            guard !isGone else { return }
            let isNew = parameters != toldParameters
            toldParameters = parameters
            link.apply(parameters)
            if case .connectionUpdate(_, let isWanted)? = procedure {
                if isNew || isWanted { tellUpdated(.success) }
                finish()
            } else if isNew {
                tellUpdated(.success)
            }
        }
        if !isInTime { end(.instantPassed) }
    }

    private func tellUpdated(_ status: HCIErrorCode) {
        let parameters = link.parameters
        controller.tellLE(
            LEConnectionUpdateComplete(
                status: status,
                connectionHandle: handle,
                connectionInterval: parameters.interval,
                peripheralLatency: parameters.latency,
                supervisionTimeout: parameters.supervisionTimeout
            )
        )
    }

    /// Handles the peer's request for other parameters. The host decides (Vol 6, Part B, 5.1.7).
    private func consider(_ wanted: ConnectionParameters) {
        guard controller.configuration.features.contains(.connectionParametersRequestProcedure),
            controller.host.wants(subevent: LERemoteConnectionParameterRequest.subeventCode)
        else { return send(.reject(.connectionParameters, .unsupportedRemoteFeature)) }
        guard wanted.areValid else { return send(.reject(.connectionParameters, .invalidLMPOrLLParameters)) }
        if role == .central, case .connectionUpdate? = procedure {
            return send(.reject(.connectionParameters, .lmpErrorTransactionCollision))
        }
        askedParameters = wanted
        controller.tellLE(
            LERemoteConnectionParameterRequest(
                connectionHandle: handle,
                intervalMin: wanted.intervalMin,
                intervalMax: wanted.intervalMax,
                maxLatency: wanted.latency,
                timeout: wanted.supervisionTimeout
            )
        )
    }

    /// Accepts the peer's request with the host's parameters.
    func answer(_ agreed: ConnectionParameters) {
        askedParameters = nil
        if role == .central { indicate(agreed.chosen) } else { send(.connectionParametersResponse(agreed)) }
    }

    func refuseParameters(_ reason: HCIErrorCode) {
        askedParameters = nil
        send(.reject(.connectionParameters, reason))
    }

    // MARK: Channel map

    private func indicate(_ map: ChannelMap) {
        let instant = link.futureInstant()
        send(.channelMap(map, instant: instant))
        let isInTime = link.change(at: instant) { [self] in
            link.apply(map)
            if case .channelMap? = procedure { finish() }
        }
        if !isInTime { end(.instantPassed) }
    }

    // MARK: Data length

    /// Sets the effective lengths: in each direction, the smaller of the sender's and the receiver's limit (Vol 6, Part
    /// B, 4.5.10).
    private func agree(on peer: DataLength) {
        let effective = DataLength(
            maxRXOctets: max(27, min(transmitLength.maxRXOctets, peer.maxTXOctets)),
            maxRXTime: max(328, min(transmitLength.maxRXTime, peer.maxTXTime)),
            maxTXOctets: max(27, min(transmitLength.maxTXOctets, peer.maxRXOctets)),
            maxTXTime: max(328, min(transmitLength.maxTXTime, peer.maxRXTime))
        )
        guard effective != effectiveLength else { return }
        effectiveLength = effective
        controller.tellLE(
            LEDataLengthChange(
                connectionHandle: handle,
                maxTXOctets: effective.maxTXOctets,
                maxTXTime: effective.maxTXTime,
                maxRXOctets: effective.maxRXOctets,
                maxRXTime: effective.maxRXTime
            )
        )
    }

    // MARK: PHYs

    private var ownPHYs: PHYChoice {
        if case .phys(let choice, _)? = procedure { return choice }
        return preferredPHYs
    }

    /// Handles the peer's request for other PHYs.
    private func consider(_ peer: PHYChoice) {
        guard role == .central else { return send(.phyResponse(ownPHYs)) }
        if case .phys? = procedure { return send(.reject(.phy, .lmpErrorTransactionCollision)) }
        indicate(peer)
    }

    /// As the central: chooses PHYs that both sides support, and informs the peripheral.
    private func indicate(_ peer: PHYChoice) {
        let own = ownPHYs
        let supported = controller.configuration.phys
        let toPeripheral = PHYChoice.fastest(of: own.transmit.intersection(peer.receive).intersection(supported))
        let toCentral = PHYChoice.fastest(of: own.receive.intersection(peer.transmit).intersection(supported))
        let instant = link.futureInstant()
        let new = (
            toPeripheral: toPeripheral == link.phys.central ? .none : toPeripheral,
            toCentral: toCentral == link.phys.peripheral ? .none : toCentral
        )
        send(.phyUpdate(centralToPeripheral: new.toPeripheral, peripheralToCentral: new.toCentral, instant: instant))
        take(centralToPeripheral: new.toPeripheral, peripheralToCentral: new.toCentral, at: instant)
    }

    private func take(centralToPeripheral: PHY, peripheralToCentral: PHY, at instant: UInt64) {
        // Without a change there is nothing to wait for.
        guard centralToPeripheral != .none || peripheralToCentral != .none else { return endPHYUpdate(isNew: false) }
        let isInTime = link.change(at: instant) { [self] in
            guard !isGone else { return }
            link.apply(centralToPeripheral: centralToPeripheral, peripheralToCentral: peripheralToCentral)
            endPHYUpdate(isNew: true)
        }
        if !isInTime { end(.instantPassed) }
    }

    private func endPHYUpdate(isNew: Bool) {
        if case .phys(_, let isWanted)? = procedure {
            if isNew || isWanted { tellPHYs(.success) }
            finish()
        } else if isNew {
            tellPHYs(.success)
        }
    }

    private func tellPHYs(_ status: HCIErrorCode) {
        controller.tellLE(
            LEPHYUpdateComplete(
                status: status,
                connectionHandle: handle,
                txPHY: link.phy(from: self),
                rxPHY: link.phy(from: other)
            )
        )
    }
}
