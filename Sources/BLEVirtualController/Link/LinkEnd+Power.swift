import BLEHCI
import BluetoothTypes

/// The Power Control Request and Power Change Indication procedures, and path loss monitoring (Vol 6, Part B, 5.1.17,
/// 5.1.18 and 4.5.16).
extension LinkEnd {
    /// The strengths between which a receiver wants no other power of its peer.
    private static let wantedStrength: ClosedRange<Int> = -70...(-40)

    var powerLimits: TransmitPowerLevelLimits {
        var limits: TransmitPowerLevelLimits = []
        if power.power <= controller.configuration.minimumTransmitPower { limits.insert(.minimum) }
        if power.power >= controller.configuration.transmitPower { limits.insert(.maximum) }
        return limits
    }

    private var hasPowerControl: Bool { controller.linkFeatures.contains(.powerControlRequest) }

    /// The PHY with its coding on which this end sends.
    private var sendingPHY: PHY { link.airPHY(from: self) }

    // MARK: Requests

    /// Asks the peer for its power, and by how much it is to change it.
    func startPowerRequest(_ phy: PHY, delta: Int8) {
        send(.powerRequest(phy, delta: delta, power: power.power))
    }

    /// Takes the peer's request for another power, and answers with the power from now on.
    func consider(_ phy: PHY, delta: Int8, peerPower: Int8) {
        guard hasPowerControl else { return send(.reject(.power, .unsupportedRemoteFeature)) }
        power.peer = (peerPower, power.peer?.limits ?? [])
        power.isWatchedByPeer = true
        let change = changePower(by: Int(delta))
        send(.powerResponse(powerLimits, delta: Int8(clamping: change), power: power.power))
        judgePathLoss()
    }

    /// Takes the peer's answer.
    func takePower(_ limits: TransmitPowerLevelLimits, delta: Int8, _ peerPower: Int8) {
        guard case .power(let phy, _, let isWanted)? = procedure else { return }
        power.peer = (peerPower, limits)
        if isWanted {
            tellPower(.remoteRead, phy, peerPower, limits, delta: 0)
        } else if delta != 0 {
            tellRemoteChange(phy, delta: delta)
        }
        finish()
        judgePathLoss()
        controlPeerPower()
    }

    func powerWasRefused(_ reason: HCIErrorCode) {
        if case .power(let phy, _, isWantedByHost: true)? = procedure {
            tellPower(.remoteRead, phy, 127, [], delta: 127, status: reason)
        }
        finish()
    }

    /// Takes a change that the peer has made on its own.
    func peerChangedPower(_ phy: PHY, _ limits: TransmitPowerLevelLimits, delta: Int8, _ peerPower: Int8) {
        power.peer = (peerPower, limits)
        tellRemoteChange(phy, delta: delta)
        judgePathLoss()
        controlPeerPower()
    }

    /// Sets the power of this end, as the device does on its own, and informs a peer that watches it.
    func setPower(_ new: Int8) {
        let change = changePower(by: Int(new) - Int(power.power))
        guard change != 0, power.isWatchedByPeer, hasPowerControl else { return }
        indicatePower(change)
    }

    /// Informs the peer of a change of the power, in dB. A change that still waits becomes part of it.
    private func indicatePower(_ change: Int) {
        var change = change
        if let index = waiting.firstIndex(where: { if case .message(.powerChange) = $0 { true } else { false } }),
            case .message(.powerChange(_, _, let earlier, _)) = waiting.remove(at: index)
        {
            change += Int(earlier)
        }
        guard change != 0 else { return }
        begin(.message(.powerChange(sendingPHY, powerLimits, delta: Int8(clamping: change), power: power.power)))
    }

    /// - Returns: by how much the power has changed, in dB.
    private func changePower(by delta: Int) -> Int {
        let range = controller.configuration.minimumTransmitPower...controller.configuration.transmitPower
        let old = power.power
        power.power = Int8(clamping: min(max(Int(old) + delta, Int(range.lowerBound)), Int(range.upperBound)))
        let change = Int(power.power) - Int(old)
        guard change != 0 else { return 0 }
        if power.reportsLocal {
            tellPower(.localChange, sendingPHY, power.power, powerLimits, delta: Int8(clamping: change))
        }
        link.conditionsHaveChanged()
        return change
    }

    // MARK: The host

    /// Starts or stops the reports of changed powers.
    func reportPower(local: Bool, remote: Bool) {
        power.reportsLocal = local
        power.reportsRemote = remote
        if remote { watchPeerPower() }
    }

    /// Starts or stops the reports of path loss.
    func reportPathLoss(_ isEnabled: Bool) {
        power.pathLoss.isEnabled = isEnabled
        power.pathLoss.reported = nil
        dropCandidate()
        guard isEnabled else { return }
        watchPeerPower()
        judgePathLoss()
    }

    /// Whether a request for the peer's power is active or waits.
    private var isRequestingPower: Bool {
        ([procedure].compactMap { $0 } + waiting).contains { if case .power = $0 { true } else { false } }
    }

    /// Asks for the peer's power, and so to be informed of changes, if that has not happened yet.
    private func watchPeerPower() {
        guard power.peer == nil else { return controlPeerPower() }
        guard !isRequestingPower else { return }
        begin(.power(link.airPHY(from: other), delta: 0, isWantedByHost: false))
    }

    private func tellRemoteChange(_ phy: PHY, delta: Int8) {
        guard power.reportsRemote, let peer = power.peer else { return }
        tellPower(.remoteChange, phy, peer.power, peer.limits, delta: delta)
    }

    private func tellPower(
        _ reason: TransmitPowerReportingReason,
        _ phy: PHY,
        _ level: Int8,
        _ limits: TransmitPowerLevelLimits,
        delta: Int8,
        status: HCIErrorCode = .success
    ) {
        controller.tellLE(
            LETransmitPowerReporting(
                status: status,
                connectionHandle: handle,
                reason: reason,
                phy: phy,
                txPowerLevel: level,
                txPowerLevelFlag: limits,
                delta: delta
            )
        )
    }

    // MARK: Strength and path loss

    /// Judges the peer's signal again, because a device has moved or changed its power.
    func judgeSignal() {
        guard !isGone else { return }
        judgePathLoss()
        controlPeerPower()
    }

    /// Asks the peer for more or less power if its signal is weak or strong. Only the ends of hosts that have asked for
    /// reports do this, so other links exchange no such packets.
    private func controlPeerPower() {
        guard power.reportsRemote || power.pathLoss.isEnabled, let peer = power.peer, !isGone else { return }
        guard !isRequestingPower else { return }
        let strength = Int(link.rssi(at: self))
        let delta: Int
        if strength > Self.wantedStrength.upperBound, !peer.limits.contains(.minimum) {
            delta = Self.wantedStrength.upperBound - strength
        } else if strength < Self.wantedStrength.lowerBound, !peer.limits.contains(.maximum) {
            delta = Self.wantedStrength.lowerBound - strength
        } else {
            return
        }
        begin(.power(link.airPHY(from: other), delta: Int8(clamping: delta), isWantedByHost: false))
    }

    /// The difference between the power that the peer has reported and the strength of its signal; nil without a
    /// report.
    private var currentPathLoss: Int? {
        power.peer.map { max(0, Int($0.power) - Int(link.rssi(at: self))) }
    }

    /// Reports the zone of the path loss if it has changed, once it has lasted for the time that the host has set.
    private func judgePathLoss() {
        guard power.pathLoss.isEnabled, let parameters = power.pathLoss.parameters, let loss = currentPathLoss else {
            return
        }
        let zone = power.pathLoss.zone(of: loss)
        guard zone != power.pathLoss.reported else {
            return dropCandidate()
        }
        guard zone != power.pathLoss.candidate else { return }
        power.pathLoss.candidate = zone
        let due = air.now + link.parameters.intervalDuration * Int(parameters.minTimeSpent)
        air.set(power.pathLoss.timer, at: due) { [weak self] in
            guard let self, !isGone else { return }
            power.pathLoss.reported = zone
            power.pathLoss.candidate = nil
            let loss = currentPathLoss.map { UInt8(clamping: min($0, 0xFE)) }
            controller.tellLE(
                LEPathLossThreshold(connectionHandle: handle, currentPathLoss: loss ?? 0xFF, zoneEntered: zone)
            )
        }
    }

    private func dropCandidate() {
        power.pathLoss.candidate = nil
        air.cancel(power.pathLoss.timer)
    }
}
