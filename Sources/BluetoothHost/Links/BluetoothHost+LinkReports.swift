import BLEHCI
import BluetoothTypes

/// The transmit power that this controller uses on a link.
public struct LocalTransmitPower: Hashable, Sendable {
    /// The current power.
    public let current: TransmitPower
    /// The greatest power that the controller uses on this PHY, in dBm; nil if it is not known.
    public let maximumLevel: Int?
}

// Subrating, transmit powers and path loss of links (Vol 6, Part B, 4.5.1, 5.1.17 and 5.1.19).
extension BluetoothHost {
    // MARK: Subrating

    /// Requests a subrate for a link. An earlier request of the link is finished first.
    ///
    /// The central decides: as the peripheral, this host gets the parameters that the peer accepts. The peer's features
    /// are read first, unless they are known. Cancelling the task ends the wait; the subrate may change nevertheless.
    package func requestSubrate(_ parameters: SubrateParameters, of identifier: LinkIdentifier) async throws(HostError)
    {
        let interval = try link(identifier).control.parameters.interval
        guard parameters.areValid(interval: interval) else {
            throw .invalidArgument("subrate parameters out of range for an interval of \(interval): \(parameters)")
        }
        guard information?.canSubrate == true else {
            throw .notSupported(subratingObstacle)
        }
        if try link(identifier).control.peerFeatures == nil { try await request(.features, of: identifier) }
        let link = try link(identifier)
        guard let features = link.control.peerFeatures,
            features.isSuperset(of: [.connectionSubrating, .connectionSubratingHostSupport])
        else { throw .notSupported("\(link.peer) does not support subrated connections") }
        try await request(.subrate(parameters), of: identifier)
    }

    /// Why this host does not change the subrate of connections.
    var subratingObstacle: String {
        let isEnabled = configuration.hostFeatures.contains(.connectionSubratingHostSupport)
        return isEnabled
            ? "this controller does not change the subrate of connections"
            : "the adapter was opened without usesSubrating, so connections have no subrate"
    }

    // MARK: Transmit power

    /// Reads the transmit power that this controller uses on a link.
    ///
    /// - Parameter phy: the PHY that the power is for; nil for the current one.
    package func readTransmitPower(
        phy: PHY? = nil,
        of identifier: LinkIdentifier
    ) async throws(HostError) -> LocalTransmitPower {
        let link = try link(identifier)
        guard information?.commands.contains(LEEnhancedReadTransmitPowerLevel.self) == true else {
            throw .notSupported("this controller does not report the transmit power of connections")
        }
        let command = LEEnhancedReadTransmitPowerLevel(
            connectionHandle: link.handle,
            phy: phy ?? link.control.transmitPHY
        )
        do throws(CommandFailure) {
            let read = try await perform(command)
            return LocalTransmitPower(
                current: TransmitPower(read),
                maximumLevel: read.maxTXPowerLevel <= 20 ? Int(read.maxTXPowerLevel) : nil
            )
        } catch {
            throw linkError(error, on: identifier)
        }
    }

    /// Reads the transmit power that the peer uses on a link. An earlier reading is finished first.
    ///
    /// - Parameter phy: the PHY that the power is for; nil for the current one.
    package func readPeerTransmitPower(
        phy: PHY? = nil,
        of identifier: LinkIdentifier
    ) async throws(HostError) -> TransmitPower {
        let link = try link(identifier)
        guard let information, information.commands.contains(LEReadRemoteTransmitPowerLevel.self) else {
            throw .notSupported("this controller does not read the transmit power of peers")
        }
        let request = LinkRequest.peerPower(phy ?? link.control.receivePHY)
        let outcome = try await wait(for: .procedure(identifier)) { host, call in
            host.request(request, of: identifier, for: call)
            host.endInput()
        }
        guard case .transmitPower(let power) = outcome else { throw .cancelled }
        return power
    }

    func finishPowerRead(_ call: CallToken, _ power: TransmitPower) {
        guard !turn.deliveries.isEmpty else { return end(call, .transmitPower(power)) }
        deliver(
            .action { [weak self] in
                self?.assumeIsolated { $0.end(call, .transmitPower(power)) }
            }
        )
    }

    // MARK: Observers

    /// Calls `observer` on the loop with each event about the Link Layer of a link, until it is stopped or the link
    /// ends.
    ///
    /// - Parameters:
    ///   - request: what is reported besides changes of parameters and PHYs. The controller reports it only while an
    ///     observer wants it.
    ///   - observer: called with the events. The last one is the error that ends the observation.
    package func startObservation(
        _ request: LinkEventRequest,
        of identifier: LinkIdentifier,
        observer: @escaping LinkObserver
    ) -> LinkObservation {
        let observation = LinkObservation(value: observers.makeIdentifier(), link: identifier)
        do throws(HostError) {
            let link = try link(identifier)
            if request.transmitPower, information?.commands.contains(LESetTransmitPowerReportingEnable.self) != true {
                throw .notSupported("this controller does not report changes of transmit powers")
            }
            if request.pathLoss != nil, information?.commands.contains(LESetPathLossReportingEnable.self) != true {
                throw .notSupported("this controller does not report the path loss of connections")
            }
            let effects = try link.control.observe(observation, request)
            observers.links[observation] = observer
            perform(effects, of: link)
        } catch {
            deliver(.observationEnd(observer, error))
        }
        endInput()
        return observation
    }

    package func stopObservation(_ observation: LinkObservation) {
        // Code of the app that runs at the release may start or stop an observation.
        let removed = observers.links.removeValue(forKey: observation)
        if let link = links[observation.link] { perform(link.control.removeObservation(observation), of: link) }
        withExtendedLifetime(removed) {}
        endInput()
    }

    func report(_ event: LinkEvent, of link: Link) {
        for observation in link.control.reports.observations(of: event) { deliver(.linkEvent(observation, event)) }
    }

    func endObservation(_ observation: LinkObservation, _ error: HostError) {
        guard let observer = observers.links.removeValue(forKey: observation) else { return }
        deliver(.observationEnd(observer, error))
    }
}
