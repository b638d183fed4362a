import BLEHCI
import BluetoothTypes

/// The Connection Subrate Update and Connection Subrate Request procedures (Vol 6, Part B, 5.1.19 and 5.1.20).
extension LinkEnd {
    /// Why the host's request cannot begin; nil if it can (Vol 4, Part E, 7.8.124).
    func obstacle(to wanted: SubrateRange) -> HCIErrorCode? {
        guard wanted.isValid, wanted.fits(interval: link.parameters.interval) else {
            return .invalidHCICommandParameters
        }
        guard controller.linkFeatures.contains(.connectionSubratingHostSupport) else { return .commandDisallowed }
        // A controller that does not know its peer's features exchanges them first. The hosts are not informed of it.
        let peer = peerFeatures ?? other.controller.linkFeatures
        guard peer.isSuperset(of: [.connectionSubrating, .connectionSubratingHostSupport]) else {
            return .unsupportedRemoteFeature
        }
        return nil
    }

    func startSubrate(_ wanted: SubrateRange) {
        guard role == .central else { return send(.subrateRequest(wanted)) }
        acceptedSubrate = wanted
        guard let chosen = wanted.chosen(for: wanted, interval: link.parameters.interval) else {
            // The interval has changed since the host's command.
            return subrateWasRefused(.unsupportedLMPOrLLParameterValue)
        }
        indicate(chosen)
    }

    /// As the central: informs the peripheral of the subrate that is used from its acknowledgement on.
    private func indicate(_ subrate: SubrateIndication) {
        indicatedSubrate = subrate
        send(.subrateIndication(subrate))
    }

    /// As the central: takes the peripheral's request.
    func consider(_ wanted: SubrateRange) {
        guard role == .central, controller.linkFeatures.contains(.connectionSubratingHostSupport) else {
            return send(.reject(.subrate, .unsupportedRemoteFeature))
        }
        // A change of its own is under way. The peripheral gets that one.
        guard indicatedSubrate == nil else { return send(.reject(.subrate, .lmpErrorTransactionCollision)) }
        guard wanted.isValid, let chosen = acceptedSubrate.chosen(for: wanted, interval: link.parameters.interval)
        else {
            return send(.reject(.subrate, .unsupportedLMPOrLLParameterValue))
        }
        indicate(chosen)
    }

    /// As the peripheral: takes the central's indication.
    func take(_ subrate: SubrateIndication) {
        link.apply(subrate)
        tellSubrate(.success)
        if case .subrate? = procedure { finish() }
    }

    /// As the central: the peripheral has acknowledged the indication.
    func subrateWasAcknowledged() {
        guard let subrate = indicatedSubrate.take() else { return }
        link.apply(subrate)
        tellSubrate(.success)
        if case .subrate? = procedure { finish() }
    }

    func subrateWasRefused(_ reason: HCIErrorCode) {
        tellSubrate(reason)
        finish()
    }

    private func tellSubrate(_ status: HCIErrorCode) {
        toldParameters = link.parameters
        controller.tellLE(
            LESubrateChange(
                status: status,
                connectionHandle: handle,
                subrateFactor: link.subrate.factor,
                peripheralLatency: link.parameters.latency,
                continuationNumber: link.subrate.continuationNumber,
                supervisionTimeout: link.parameters.supervisionTimeout
            )
        )
    }
}
