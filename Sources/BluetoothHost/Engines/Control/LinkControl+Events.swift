import BLEHCI
import BLEL2CAP
import BluetoothTypes

// The events of the controller about one link, and the outcomes of its requests on the signaling channel.
extension LinkControl {
    mutating func received(_ event: LEConnectionUpdateComplete, _ context: ControlContext) -> [ControlEffect] {
        guard endError == nil else { return [] }
        guard event.status == .success else {
            return end(.connectionUpdate, .command(.status(event.status, LEConnectionUpdate.opcode)), context)
        }
        var new = NegotiatedConnectionParameters(
            interval: event.connectionInterval,
            latency: event.peripheralLatency,
            supervisionTimeout: event.supervisionTimeout
        )
        // Another interval ends subrating (Vol 6, Part B, 5.1.1).
        if new.interval == parameters.interval {
            new.subrateFactor = parameters.subrateFactor
            new.continuationNumber = parameters.continuationNumber
        }
        parameters = new
        return [.report(.parametersChanged(parameters))] + end(.connectionUpdate, nil, context)
    }

    mutating func received(_ event: LEPHYUpdateComplete, _ context: ControlContext) -> [ControlEffect] {
        guard endError == nil else { return [] }
        guard event.status == .success else {
            return end(.phyUpdate, .command(.status(event.status, LESetPHY.opcode)), context)
        }
        arePHYsReported = true
        transmitPHY = event.txPHY
        receivePHY = event.rxPHY
        return [.report(.physChanged(transmit: transmitPHY, receive: receivePHY))] + end(.phyUpdate, nil, context)
    }

    /// Takes the PHYs of a new link, unless an event has reported a change since.
    mutating func received(_ phys: LEReadPHY.ReturnParameters) -> [ControlEffect] {
        guard endError == nil, !arePHYsReported else { return [] }
        arePHYsReported = true
        guard phys.txPHY != transmitPHY || phys.rxPHY != receivePHY else { return [] }
        transmitPHY = phys.txPHY
        receivePHY = phys.rxPHY
        return [.report(.physChanged(transmit: transmitPHY, receive: receivePHY))]
    }

    mutating func received(_ event: LEReadRemoteFeaturesComplete, _ context: ControlContext) -> [ControlEffect] {
        guard endError == nil else { return [] }
        guard event.status == .success else {
            return end(.featureExchange, .command(.status(event.status, LEReadRemoteFeatures.opcode)), context)
        }
        peerFeatures = event.leFeatures
        return end(.featureExchange, nil, context)
    }

    mutating func received(_ event: LEDataLengthChange) {
        guard endError == nil else { return }
        maximumTransmitOctets = event.maxTXOctets
        maximumReceiveOctets = event.maxRXOctets
    }

    // MARK: Signaling channel

    /// As the peripheral: takes the signaling channel's refusal to send a request.
    mutating func signalingRefused(
        _ error: SignalingChannel.RequestError,
        _ context: ControlContext
    ) -> [ControlEffect] {
        guard procedures[.connectionUpdate].isRunning else { return [] }
        guard error == .requestPending else {
            return end(.connectionUpdate, .invalidArgument("\(error)"), context)
        }
        // The peer has not answered an earlier request, whose call has ended. Its answer begins this procedure again.
        procedures[.connectionUpdate].postpone()
        return []
    }

    /// As the peripheral: takes the central's answer to a request on the signaling channel; nil if the central does not
    /// know the command.
    mutating func signalingFinished(
        _ response: ConnectionParameterUpdateResponse?,
        _ context: ControlContext
    ) -> [ControlEffect] {
        guard endError == nil else { return [] }
        guard response == .accepted else {
            return end(
                .connectionUpdate,
                .notSupported("the central refuses these connection parameters"),
                context
            )
        }
        // If the parameters are in use already, the controllers may report nothing (Vol 4, Part E, 7.7.65.3). An event
        // that comes soon is not for the next call.
        if case .parameters(let wanted)? = procedures[.connectionUpdate].current, parameters.satisfy(wanted) {
            let call = procedures[.connectionUpdate].end()
            procedures[.connectionUpdate].beginWithoutCall(until: context.now + reportLimit)
            return call.map { [.finish($0, nil)] } ?? []
        }
        // The procedure's event is still to come, and the time for it begins now. If an update by the central has ended
        // this call, that event is not for the next call.
        let deadline = context.now + timeout(of: .connectionUpdate)
        procedures[.connectionUpdate].extend(until: deadline)
        procedures[.connectionUpdate].beginWithoutCall(until: deadline)
        return []
    }

    /// As the peripheral: ends the call whose request on the signaling channel the central has not answered in time.
    mutating func signalingTimedOut(_ context: ControlContext) -> [ControlEffect] {
        guard endError == nil else { return [] }
        return end(.connectionUpdate, .timedOut, context)
    }

    // MARK: Subrate

    /// Takes new subrate parameters, which this host or the peer has requested, or the failure of a request.
    mutating func received(_ event: LESubrateChange, _ context: ControlContext) -> [ControlEffect] {
        guard endError == nil else { return [] }
        guard event.status == .success else {
            return end(.subrateUpdate, .command(.status(event.status, LESubrateRequest.opcode)), context)
        }
        parameters = parameters.subrated(event)
        return [.report(.parametersChanged(parameters))] + end(.subrateUpdate, nil, context)
    }

    // MARK: Transmit power and path loss

    /// Takes the peer's transmit power that a call has read, or a change of a power.
    mutating func received(_ event: LETransmitPowerReporting, _ context: ControlContext) -> [ControlEffect] {
        guard endError == nil else { return [] }
        switch event.reason {
        case .remoteRead:
            guard event.status == .success else {
                let opcode = LEReadRemoteTransmitPowerLevel.opcode
                return end(.powerRead, .command(.status(event.status, opcode)), context)
            }
            return endPowerRead(TransmitPower(event), context)
        case .localChange, .remoteChange:
            guard event.status == .success else { return [] }
            let change = TransmitPowerChange(
                isOfPeer: event.reason == .remoteChange,
                power: TransmitPower(event),
                delta: event.delta == 127 ? nil : Int(event.delta)
            )
            return [.report(.transmitPowerChanged(change))]
        default: return []
        }
    }

    /// Ends the current reading of the peer's transmit power with its result, and starts the next.
    private mutating func endPowerRead(_ power: TransmitPower, _ context: ControlContext) -> [ControlEffect] {
        let call = procedures[.powerRead].end()
        return (call.map { [.finishPowerRead($0, power)] } ?? []) + begin(.powerRead, context)
    }

    func received(_ event: LEPathLossThreshold) -> [ControlEffect] {
        guard endError == nil else { return [] }
        let pathLoss = event.currentPathLoss == 0xFF ? nil : Int(event.currentPathLoss)
        return [.report(.pathLossZoneEntered(PathLossReport(pathLoss: pathLoss, zone: event.zoneEntered)))]
    }
}
