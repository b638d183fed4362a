import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// An event of a session of Channel Sounding.
package enum ChannelSoundingSessionEvent: Sendable {
    /// The controllers perform the procedures from now on.
    case started(ChannelSoundingProcedures)
    case subevent(ChannelSoundingSubevent)
    /// The last event. There is no error after all procedures, and if the peer has stopped them.
    case ended(HostError?)
}

// Channel Sounding on links (Vol 6, Part H).
extension BluetoothHost {
    /// Reads what this device's controller can do in Channel Sounding.
    package func channelSoundingCapabilities() async throws(HostError) -> ChannelSoundingCapabilities {
        try checkChannelSounding()
        do throws(CommandFailure) {
            return try await perform(LECSReadLocalSupportedCapabilities()).capabilities
        } catch {
            throw .command(error)
        }
    }

    private func checkChannelSounding() throws(HostError) {
        guard try usableInformation().supportsChannelSounding else {
            throw .notSupported("this controller does not support channel sounding")
        }
    }

    /// Starts a session of Channel Sounding on a link, until all procedures are done, it is stopped, or the link ends.
    ///
    /// The link must be encrypted. If its gate is closed, this begins the verification of the peer, and the session
    /// waits for it. If the peer later counts as unverified, the session ends with Authentication Failure.
    ///
    /// - Parameter observer: called on the loop with each event.
    /// - Returns: the number of the session.
    package func startChannelSounding(
        _ parameters: ChannelSoundingParameters,
        on identifier: LinkIdentifier,
        observer: @escaping @Sendable (ChannelSoundingSessionEvent) -> Void
    ) -> UInt64 {
        let session = observers.makeIdentifier()
        observers.soundings[session] = observer
        do throws(HostError) {
            try checkChannelSounding()
            // A call with wrong arguments encrypts no link.
            try parameters.check()
            let link = try linkForOpening(identifier)
            let isGateClosed = link.isGateClosed
            guard isGateClosed || link.security.published.strength != nil else {
                throw ChannelSoundingEngine.encryptionNeeded
            }
            let effects = try link.sounding.start(parameters, as: session, isGateClosed: isGateClosed, at: loop.now)
            enableEvents(.channelSounding)
            perform(effects, of: link)
        } catch {
            deliver(.soundingEvent(session, .ended(error)))
        }
        endInput()
        return session
    }

    /// Stops a session of Channel Sounding. Its observer is not called any more.
    package func stopChannelSounding(_ session: UInt64) {
        // Code of the app that runs at the release may start or stop a session.
        let removed = observers.soundings.removeValue(forKey: session)
        if removed != nil, let link = links.values.first(where: { $0.sounding.has(session) }) {
            perform(link.sounding.stop(session, at: loop.now), of: link)
        }
        withExtendedLifetime(removed) {}
        endInput()
    }

    // MARK: Events

    func soundingChanged(
        _ handle: ConnectionHandle,
        _ change: (inout ChannelSoundingEngine, Instant) -> [ChannelSoundingEffect]
    ) {
        guard let link = links[handle] else { return }
        perform(change(&link.sounding, loop.now), of: link)
    }

    func receive(_ event: borrowing LECSSubeventResult) {
        guard let link = links[ConnectionHandle(event.connectionHandle)] else { return }
        perform(link.sounding.received(event, at: loop.now), of: link)
    }

    func receive(_ event: borrowing LECSSubeventResultContinue) {
        guard let link = links[ConnectionHandle(event.connectionHandle)] else { return }
        perform(link.sounding.received(event, at: loop.now), of: link)
    }

    // MARK: Effects

    func perform(_ effects: [ChannelSoundingEffect], of link: Link) {
        guard !effects.isEmpty else { return }
        for effect in effects {
            switch effect {
            case .command(let command, let session): send(command, session, of: link.identifier)
            case .malformed(let error): countMalformed("result of channel sounding", error)
            case .started(let procedures, let session): deliver(.soundingEvent(session, .started(procedures)))
            case .subevent(let subevent, let session): deliver(.soundingEvent(session, .subevent(subevent)))
            case .ended(let error, let session): deliver(.soundingEvent(session, .ended(error)))
            }
        }
        if links[link.identifier] != nil { armTimer(of: link) }
    }

    /// Calls the observer of a session, for the last time if the session has ended.
    func report(_ event: ChannelSoundingSessionEvent, of session: UInt64) {
        if case .ended = event {
            observers.soundings.removeValue(forKey: session)?(event)
        } else {
            observers.soundings[session]?(event)
        }
    }

    private func send(_ command: ChannelSoundingCommand, _ session: UInt64, of link: LinkIdentifier) {
        switch command {
        case .readCapabilities(let packet): send(packet, for: command, session, of: link)
        case .setDefaults(let packet): send(packet, for: command, session, of: link)
        case .createConfig(let packet): send(packet, for: command, session, of: link)
        case .enableSecurity(let packet): send(packet, for: command, session, of: link)
        case .setParameters(let packet): send(packet, for: command, session, of: link)
        case .enable(let packet), .disable(let packet): send(packet, for: command, session, of: link)
        case .removeConfig(let packet): send(packet, for: command, session, of: link)
        }
    }

    private func send(
        _ packet: some ConnectionCommand,
        for command: ChannelSoundingCommand,
        _ session: UInt64,
        of identifier: LinkIdentifier
    ) {
        send(packet) { [weak self] result in
            self?.assumeIsolated { host in
                guard let link = host.links[identifier] else { return }
                switch result {
                case .success:
                    let effects = link.sounding.commandSucceeded(command, session: session, at: host.loop.now)
                    host.perform(effects, of: link)
                case .failure(let failure):
                    let effects = link.sounding.commandFailed(command, failure, session: session, at: host.loop.now)
                    host.perform(effects, of: link)
                }
            }
        }
    }
}

extension ControllerInformation {
    /// Whether the controller supports Channel Sounding, and this host has enabled it.
    package var supportsChannelSounding: Bool {
        enabledHostFeatures.contains(.channelSoundingHostSupport) && commands.contains(LECSCreateConfig.self)
    }
}

extension LECSCreateConfig: ConnectionCommand {}
extension LECSProcedureEnable: ConnectionCommand {}
extension LECSReadRemoteSupportedCapabilities: ConnectionCommand {}
extension LECSRemoveConfig: ConnectionCommand {}
extension LECSSecurityEnable: ConnectionCommand {}
extension LECSSetDefaultSettings: ConnectionCommand {}
extension LECSSetProcedureParameters: ConnectionCommand {}
