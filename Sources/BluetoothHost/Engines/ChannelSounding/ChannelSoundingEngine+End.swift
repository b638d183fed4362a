import BLEHCI
import BluetoothTypes

// The end of a session: the controllers stop its procedures and forget its configuration.
extension ChannelSoundingEngine {
    /// Ends the session if its step takes too long.
    mutating func advance(to now: Instant) -> [ChannelSoundingEffect] {
        guard let deadline, now >= deadline else { return [] }
        return fail(.timedOut, at: now)
    }

    /// Ends the session with its link.
    mutating func linkEnded(_ reason: DisconnectionReason) -> [ChannelSoundingEffect] {
        let waiting = takeNext().map { ChannelSoundingEffect.ended(.disconnected(reason), session: $0) }
        let effects = end(.disconnected(reason)) + (waiting.map { [$0] } ?? [])
        phase = .idle
        deadline = nil
        subevent = nil
        return effects
    }

    /// Ends the session with an error, and tidies up.
    mutating func fail(_ error: HostError, at now: Instant) -> [ChannelSoundingEffect] {
        let effects = end(error)
        // A step whose outcome is known, or that was waited for long enough, is not waited for again.
        switch phase {
        case .creatingConfig, .abandoningConfig, .removingConfig: return effects + finish(at: now)
        case .enabling, .abandoningProcedures, .disabling: return effects + removeConfig(at: now)
        default: return effects + tidyUp(at: now)
        }
    }

    /// Tells the app that its session has ended, once.
    mutating func end(_ error: HostError?) -> [ChannelSoundingEffect] {
        guard !isReported else { return [] }
        isReported = true
        let incomplete = subevent.take().map { ChannelSoundingEffect.subevent($0, session: session) }
        return (incomplete.map { [$0] } ?? []) + [.ended(error, session: session)]
    }

    /// Stops the procedures, and removes the configuration of this host.
    mutating func tidyUp(at now: Instant) -> [ChannelSoundingEffect] {
        switch phase {
        case .idle, .abandoningConfig, .abandoningProcedures, .disabling, .removingConfig: return []
        case .creatingConfig:
            phase = .abandoningConfig
            return []
        case .enabling:
            phase = .abandoningProcedures
            return []
        case .running:
            guard let identifier = configuration?.identifier else { return finish(at: now) }
            return disable(identifier, at: now)
        default: return removeConfig(at: now)
        }
    }

    mutating func disable(_ identifier: UInt8, at now: Instant) -> [ChannelSoundingEffect] {
        let command = LECSProcedureEnable(connectionHandle: handle, configID: identifier, enable: false)
        return step(.disabling(identifier), .disable(command), at: now)
    }

    mutating func removeConfig(at now: Instant) -> [ChannelSoundingEffect] {
        guard ownsConfiguration else { return finish(at: now) }
        ownsConfiguration = false
        let command = LECSRemoveConfig(connectionHandle: handle, configID: configID)
        return step(.removingConfig, .removeConfig(command), at: now)
    }

    mutating func finish(at now: Instant) -> [ChannelSoundingEffect] {
        // If the controller did not remove the configuration, the next session replaces it.
        if phase == .removingConfig { configurations[configID] = nil }
        phase = .idle
        deadline = nil
        configuration = nil
        subevent = nil
        if let next = beginNext(at: now) { return next }
        // The peer cannot use a role that no app has asked for.
        guard isRoleEnabled else { return [] }
        isRoleEnabled = false
        let command = LECSSetDefaultSettings(
            connectionHandle: handle,
            roleEnable: [],
            maxTXPower: parameters.maximumTransmitPower
        )
        return [.command(.setDefaults(command), session: session)]
    }
}
