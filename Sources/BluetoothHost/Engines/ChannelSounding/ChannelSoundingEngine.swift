import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// The session of Channel Sounding on one link (Vol 6, Part H).
///
/// ## Initiator
///
/// The host reads the peer's capabilities, enables the role, creates a configuration, starts the security as the central, sets
/// the parameters, and enables the procedures. Each of these steps begins after the one before has ended. A step that
/// the controller refuses, or that takes longer than 40 s, ends the session.
///
/// ## Reflector
///
/// The host enables the role, and waits for a configuration and the procedures of the peer.
///
/// ## End
///
/// A session ends after the results of its last procedure, when the peer stops the procedures, when the app stops it, or with
/// the link. The host then disables the procedures that still run, and removes the configuration that it has created. The
/// next session waits for that.
struct ChannelSoundingEngine {
    private enum Phase: Equatable {
        case idle
        case readingCapabilities
        case settingDefaults
        case creatingConfig
        case enablingSecurity
        case settingParameters
        case enabling
        /// The peer is to configure and enable the procedures.
        case awaitingPeer
        case running
        case disabling
        case removingConfig
    }

    /// The time for a step (Vol 6, Part B, 5.2).
    static let stepTimeout = Duration.seconds(40)
    /// The longest subevent that is requested, in microseconds. At most 160 steps take less. Controllers may refuse the
    /// maximum of 4 s.
    static let longestSubevent: UInt32 = 100_000
    /// The configuration that this host creates. Others are the peer's.
    private static let configID: UInt8 = 0

    private let handle: ConnectionHandle
    private let isCentral: Bool
    private var phase = Phase.idle
    private var parameters = ChannelSoundingParameters()
    /// The configuration in use.
    private var configuration: (identifier: UInt8, ChannelSoundingConfiguration)?
    /// Whether this host has created the configuration in the controllers.
    private var ownsConfiguration = false
    private var capabilities: ChannelSoundingCapabilities?
    /// The number of procedures that are to end before the session does; nil for any number.
    private var remainingProcedures: UInt16?
    /// The subevent whose results are incomplete.
    private var subevent: ChannelSoundingSubevent?
    /// The number of the current or the last session.
    private(set) var session: UInt64 = 0
    /// Whether the app was told that its session has ended.
    private var isReported = true
    /// The error that the app is told when the controllers have been tidied up.
    private var failure: HostError?
    /// When the current step fails.
    private(set) var deadline: Instant?

    init(handle: ConnectionHandle, isCentral: Bool) {
        self.handle = handle
        self.isCentral = isCentral
    }

    /// Whether a session runs, or is being ended.
    var isActive: Bool { phase != .idle }

    // MARK: The app

    /// Starts a session.
    ///
    /// - Throws: an error if a parameter is out of its range, or another session runs.
    mutating func start(
        _ parameters: ChannelSoundingParameters,
        as session: UInt64,
        at now: Instant
    ) throws(HostError) -> [ChannelSoundingEffect] {
        try parameters.check()
        guard phase == .idle else {
            throw .invalidArgument("a session of channel sounding already runs on this link; stop it first")
        }
        self.parameters = parameters
        self.session = session
        (configuration, ownsConfiguration, subevent, failure) = (nil, false, nil, nil)
        isReported = false
        if parameters.role == .reflector { return setDefaults(at: now) }
        if capabilities != nil { return setDefaults(at: now) }
        return step(.readingCapabilities, .readCapabilities(.init(connectionHandle: handle)), at: now)
    }

    /// Stops a session. Has no effect on another one.
    mutating func stop(_ session: UInt64, at now: Instant) -> [ChannelSoundingEffect] {
        guard session == self.session, !isReported else { return [] }
        isReported = true
        return tidyUp(at: now)
    }

    // MARK: Outcomes of commands

    /// Handles the success of a command that the controller answers with Command Complete.
    mutating func commandSucceeded(
        _ command: ChannelSoundingCommand,
        session: UInt64,
        at now: Instant
    ) -> [ChannelSoundingEffect] {
        guard session == self.session else { return [] }
        switch (command, phase) {
        case (.setDefaults, .settingDefaults):
            if parameters.role == .reflector {
                phase = .awaitingPeer
                deadline = nil
                return []
            }
            var configuration = parameters.configuration
            configuration.role = parameters.role
            let command = LECSCreateConfig(
                connectionHandle: handle,
                configID: Self.configID,
                configuration: configuration
            )
            return step(.creatingConfig, .createConfig(command), at: now)
        case (.setParameters, .settingParameters):
            let command = LECSProcedureEnable(connectionHandle: handle, configID: Self.configID, enable: true)
            return step(.enabling, .enable(command), at: now)
        default: return []
        }
    }

    /// Handles the failure of a command.
    mutating func commandFailed(
        _ command: ChannelSoundingCommand,
        _ failure: CommandFailure,
        session: UInt64,
        at now: Instant
    ) -> [ChannelSoundingEffect] {
        guard session == self.session, isCurrent(command) else { return [] }
        return fail(.command(failure), at: now)
    }

    /// Whether a command belongs to the current step.
    private func isCurrent(_ command: ChannelSoundingCommand) -> Bool {
        switch (command, phase) {
        case (.readCapabilities, .readingCapabilities), (.setDefaults, .settingDefaults),
            (.createConfig, .creatingConfig), (.enableSecurity, .enablingSecurity),
            (.setParameters, .settingParameters), (.enable, .enabling), (.disable, .disabling),
            (.removeConfig, .removingConfig):
            true
        default: false
        }
    }

    // MARK: Events

    mutating func received(
        _ event: LECSReadRemoteSupportedCapabilitiesComplete,
        at now: Instant
    ) -> [ChannelSoundingEffect] {
        guard phase == .readingCapabilities else { return [] }
        guard event.status == .success else {
            return fail(.command(.status(event.status, LECSReadRemoteSupportedCapabilities.opcode)), at: now)
        }
        guard event.capabilities.rolesSupported.contains(ChannelSoundingRole.reflector) else {
            return fail(.notSupported("the peer's controller cannot be the reflector of channel sounding"), at: now)
        }
        capabilities = event.capabilities
        return setDefaults(at: now)
    }

    mutating func received(_ event: LECSConfigComplete, at now: Instant) -> [ChannelSoundingEffect] {
        switch phase {
        case .creatingConfig where event.configID == Self.configID:
            guard event.status == .success else {
                return fail(.command(.status(event.status, LECSCreateConfig.opcode)), at: now)
            }
            configuration = (event.configID, event.configuration)
            ownsConfiguration = true
            // Only the central starts the security.
            guard isCentral else { return setParameters(at: now) }
            return step(.enablingSecurity, .enableSecurity(.init(connectionHandle: handle)), at: now)
        case .removingConfig where event.configID == Self.configID: return finish()
        case .awaitingPeer where event.status == .success && event.configuration.role == .reflector:
            configuration = event.isCreated ? (event.configID, event.configuration) : nil
            return []
        default:
            // The peer may remove the configuration at any time, which ends its procedures.
            guard event.status == .success, !event.isCreated, event.configID == configuration?.identifier else {
                return []
            }
            ownsConfiguration = false
            configuration = nil
            return phase == .idle ? [] : end(nil) + finish()
        }
    }

    mutating func received(_ event: LECSSecurityEnableComplete, at now: Instant) -> [ChannelSoundingEffect] {
        guard phase == .enablingSecurity else { return [] }
        guard event.status == .success else {
            return fail(.command(.status(event.status, LECSSecurityEnable.opcode)), at: now)
        }
        return setParameters(at: now)
    }

    mutating func received(_ event: LECSProcedureEnableComplete, at now: Instant) -> [ChannelSoundingEffect] {
        switch phase {
        case .disabling where event.configID == Self.configID: return removeConfig(at: now)
        case .enabling where event.configID == Self.configID,
            .awaitingPeer where event.configID == configuration?.identifier:
            guard event.status == .success else {
                return fail(.command(.status(event.status, LECSProcedureEnable.opcode)), at: now)
            }
            guard event.state, let configuration else { return [] }
            phase = .running
            deadline = nil
            remainingProcedures = event.procedureCount == 0 ? nil : event.procedureCount
            let procedures = ChannelSoundingProcedures(
                configuration: configuration.1,
                peerCapabilities: capabilities,
                transmitPower: event.selectedTXPower == 127 ? nil : Int(event.selectedTXPower),
                procedureInterval: event.procedureInterval,
                procedureCount: event.procedureCount,
                subeventLength: event.subeventLen
            )
            return [.started(procedures, session: session)]
        case .running where event.configID == configuration?.identifier && !event.state:
            return end(nil) + removeConfig(at: now)
        default: return []
        }
    }

    /// Handles the first results of a subevent.
    ///
    /// - Throws: an error if the steps cannot be decoded; the event is ignored.
    mutating func received(
        _ event: borrowing LECSSubeventResult,
        at now: Instant
    ) throws(PacketDecodingError) -> [ChannelSoundingEffect] {
        guard phase == .running, event.configID == configuration?.identifier else { return [] }
        var result = ChannelSoundingSubevent(event)
        try result.append(event.stepBytes, count: event.numStepsReported)
        // The controller has not completed the one before.
        let incomplete = subevent.take().map { ChannelSoundingEffect.subevent($0, session: session) }
        return (incomplete.map { [$0] } ?? []) + take(result, at: now)
    }

    /// Handles further results of a subevent. Those without the first ones are ignored.
    mutating func received(
        _ event: borrowing LECSSubeventResultContinue,
        at now: Instant
    ) throws(PacketDecodingError) -> [ChannelSoundingEffect] {
        guard phase == .running, event.configID == configuration?.identifier, var result = subevent.take() else {
            return []
        }
        result.progress = event.progress
        try result.append(event.stepBytes, count: event.numStepsReported)
        return take(result, at: now)
    }

    private mutating func take(_ result: ChannelSoundingSubevent, at now: Instant) -> [ChannelSoundingEffect] {
        guard result.progress.subeventDoneStatus != .partial else {
            subevent = result
            return []
        }
        let effects = [ChannelSoundingEffect.subevent(result, session: session)]
        guard result.progress.procedureDoneStatus != .partial, let remaining = remainingProcedures else {
            return effects
        }
        remainingProcedures = remaining - 1
        // The controllers do not report the end of the last procedure in another way.
        return remaining > 1 ? effects : effects + end(nil) + removeConfig(at: now)
    }

    // MARK: Time and end

    /// Ends the session if its step takes too long.
    mutating func advance(to now: Instant) -> [ChannelSoundingEffect] {
        guard let deadline, now >= deadline else { return [] }
        return fail(.timedOut, at: now)
    }

    /// Ends the session with its link.
    mutating func linkEnded(_ reason: DisconnectionReason) -> [ChannelSoundingEffect] {
        let effects = end(.disconnected(reason))
        phase = .idle
        deadline = nil
        subevent = nil
        return effects
    }

    // MARK: Steps

    private mutating func step(
        _ phase: Phase,
        _ command: ChannelSoundingCommand,
        at now: Instant
    ) -> [ChannelSoundingEffect] {
        self.phase = phase
        deadline = now + Self.stepTimeout
        return [.command(command, session: session)]
    }

    private mutating func setDefaults(at now: Instant) -> [ChannelSoundingEffect] {
        let command = LECSSetDefaultSettings(
            connectionHandle: handle,
            roleEnable: parameters.role == .reflector ? .reflector : .initiator,
            maxTXPower: parameters.maximumTransmitPower
        )
        return step(.settingDefaults, .setDefaults(command), at: now)
    }

    private mutating func setParameters(at now: Instant) -> [ChannelSoundingEffect] {
        let command = LECSSetProcedureParameters(
            connectionHandle: handle,
            configID: Self.configID,
            maxProcedureLen: parameters.lengthInUnits ?? 1000,
            minProcedureInterval: parameters.procedureInterval.lowerBound,
            maxProcedureInterval: parameters.procedureInterval.upperBound,
            maxProcedureCount: parameters.procedureCount,
            minSubeventLen: 0x0004E2,
            maxSubeventLen: Self.longestSubevent,
            toneAntennaConfigSelection: parameters.antennaConfiguration,
            phy: .le1M
        )
        return step(.settingParameters, .setParameters(command), at: now)
    }

    /// Ends the session with an error, and tidies up.
    private mutating func fail(_ error: HostError, at now: Instant) -> [ChannelSoundingEffect] {
        let effects = end(error)
        // A step of the end that fails is not repeated.
        switch phase {
        case .disabling: return effects + removeConfig(at: now)
        case .removingConfig: return effects + finish()
        default: return effects + tidyUp(at: now)
        }
    }

    /// Tells the app that its session has ended, once.
    private mutating func end(_ error: HostError?) -> [ChannelSoundingEffect] {
        guard !isReported else { return [] }
        isReported = true
        let incomplete = subevent.take().map { ChannelSoundingEffect.subevent($0, session: session) }
        return (incomplete.map { [$0] } ?? []) + [.ended(error, session: session)]
    }

    /// Stops the procedures, and removes the configuration of this host.
    private mutating func tidyUp(at now: Instant) -> [ChannelSoundingEffect] {
        switch phase {
        case .idle, .disabling, .removingConfig: return []
        case .running, .enabling:
            guard let configuration else { return finish() }
            let command = LECSProcedureEnable(
                connectionHandle: handle,
                configID: configuration.identifier,
                enable: false
            )
            return step(.disabling, .disable(command), at: now)
        default: return removeConfig(at: now)
        }
    }

    private mutating func removeConfig(at now: Instant) -> [ChannelSoundingEffect] {
        guard ownsConfiguration else { return finish() }
        ownsConfiguration = false
        let command = LECSRemoveConfig(connectionHandle: handle, configID: Self.configID)
        return step(.removingConfig, .removeConfig(command), at: now)
    }

    private mutating func finish() -> [ChannelSoundingEffect] {
        phase = .idle
        deadline = nil
        configuration = nil
        subevent = nil
        return []
    }
}
