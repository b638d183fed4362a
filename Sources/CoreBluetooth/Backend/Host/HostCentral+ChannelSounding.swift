import BLEHCI
import BluetoothHost
import Foundation

// Channel sounding with connected peripherals.
extension HostCentral {
    /// A session that runs.
    struct Sounding {
        /// The host's number of the session; nil until the host has returned it.
        var session: UInt64?
        /// Whether the controllers perform the procedures.
        var hasStarted = false
        let completion: Completion<Void>
    }

    func startChannelSounding(
        as role: ChannelSoundingRole,
        with peripheral: ConnectedPeripheral,
        procedureEnded: @escaping @Sendable () -> Void,
        _ completion: @escaping Completion<Void>
    ) {
        let identifier = peripheral.identifier
        onLink(of: peripheral, completion) { host, link in
            guard self.state.soundings.isEmpty else {
                return completion(.failure(.core(.channelSoundingConfigurationFailed)))
            }
            self.state.soundings[identifier] = Sounding(completion: completion)
            let parameters = ChannelSoundingParameters(role: role)
            let session = host.startChannelSounding(parameters, on: link) { [weak self] event in
                switch event {
                case .started: self?.state.soundings[identifier]?.hasStarted = true
                case .subevent(let subevent):
                    if subevent.progress.procedureDoneStatus != .partial { procedureEnded() }
                case .ended(let error): self?.soundingEnded(with: identifier, error)
                }
            }
            // A session that cannot be started may have ended by now.
            self.state.soundings[identifier]?.session = session
        }
    }

    func cancelChannelSounding(with peripheral: UUID) {
        submit(call: nil) { host, _ in
            guard let sounding = self.endSounding(with: peripheral, on: host) else { return }
            sounding.completion(.success(()))
        }
    }

    /// Ends a session without a result.
    @discardableResult
    func endSounding(with peripheral: UUID, on host: isolated BluetoothHost) -> Sounding? {
        guard let sounding = state.soundings.removeValue(forKey: peripheral) else { return nil }
        if let session = sounding.session { host.stopChannelSounding(session) }
        return sounding
    }

    private func soundingEnded(with peripheral: UUID, _ error: HostError?) {
        guard let sounding = state.soundings.removeValue(forKey: peripheral) else { return }
        switch error {
        case nil: sounding.completion(.success(()))
        // The link may continue: the identity of its bonded peer is no longer verified.
        case .disconnected(.controller(.authenticationFailure)):
            answer(.failure(.security(.refused("the identity of the peer is no longer verified"))), sounding.completion)
        case .disconnected(let reason): answer(.failure(.disconnected(reason)), sounding.completion)
        case .notSupported(let what): answer(.failure(.notSupported(what)), sounding.completion)
        case .security(let error): answer(.failure(.security(error)), sounding.completion)
        default:
            let code: CBError.Code =
                sounding.hasStarted ? .channelSoundingProcedureFailed : .channelSoundingConfigurationFailed
            sounding.completion(.failure(.core(code)))
        }
    }
}
