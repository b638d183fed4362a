import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// The session of Channel Sounding on one link (Vol 6, Part H).
///
/// ## Initiator
///
/// The host reads the peer's capabilities, enables the role, creates a configuration, starts the security as the
/// central, sets the parameters, and enables the procedures. Each step begins after the previous step has ended. A step
/// that the controller refuses, or that takes longer than 40 s, ends the session.
///
/// ## Reflector
///
/// The host enables the role, and waits for configurations and the procedures of the peer. The peer may create several
/// configurations, and the procedures name theirs. As the central, the host starts the security when the peer has
/// created a configuration.
///
/// ## End
///
/// A session ends after the results of its last procedure, when the peer stops the procedures, when the app stops it,
/// or with the link. The host then disables the procedures that still run, removes the configuration that it has
/// created, and disables the role. If the app starts a session before that is done, the session waits. At most one
/// session waits.
///
/// Until the role is disabled, the peer may start procedures. The host disables them if no session runs. A new session
/// as the reflector uses them instead.
///
/// ## Gate
///
/// On a link to a bonded peer, a session begins once the peer's identity is verified. If the peer then counts as
/// unverified, the session ends. See ``LinkSecurityEngine`` for the terms.
struct ChannelSoundingEngine {
    enum Phase: Equatable {
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
        /// The session has ended, and the outcome of creating the configuration is awaited.
        case abandoningConfig
        /// The session has ended, and the outcome of enabling the procedures is awaited.
        case abandoningProcedures
        /// The procedures of the configuration with this identifier are to end.
        case disabling(UInt8)
        case removingConfig
    }

    private enum Security {
        case off
        case starting
        case on
    }

    private struct Request {
        let parameters: ChannelSoundingParameters
        let session: UInt64
    }

    /// The time for a step (Vol 6, Part B, 5.2).
    static let stepTimeout = Duration.seconds(40)
    /// The longest subevent that is requested, in microseconds. At most 160 steps take less. Controllers may refuse the
    /// maximum of 4 s.
    static let longestSubevent: UInt32 = 100_000
    /// The number of configurations of a link (Vol 6, Part B, 5.1.24).
    static let configurationCount: UInt8 = 4
    /// The longest connection interval, which subrating does not change.
    private static let longestConnectionInterval = Duration.seconds(4)

    let handle: ConnectionHandle
    private let isCentral: Bool
    var phase = Phase.idle
    private(set) var parameters = ChannelSoundingParameters()
    /// The session that begins when the controllers have been tidied up and the gate is open.
    private var next: Request?
    /// Whether the gate of the link was closed when the caller last reported it. No session begins then.
    var isGateClosed = false
    /// The configurations that the controllers have, this host's and the peer's.
    var configurations: [UInt8: ChannelSoundingConfiguration] = [:]
    /// The configuration that this host creates in the session.
    private(set) var configID: UInt8 = 0
    /// The configuration in use.
    var configuration: (identifier: UInt8, ChannelSoundingConfiguration)?
    /// Whether this host has created the configuration in the controllers.
    var ownsConfiguration = false
    /// Whether the controller may have a role enabled on this link.
    var isRoleEnabled = false
    private var security = Security.off
    private var capabilities: ChannelSoundingCapabilities?
    /// The number of procedures that are to end before the session does; nil for any number.
    var remainingProcedures: UInt16?
    /// The longest time between the end of a procedure and that of the next one.
    var procedureTimeout = stepTimeout
    /// The subevent whose results are incomplete.
    var subevent: ChannelSoundingSubevent?
    /// The number of the current or the last session.
    private(set) var session: UInt64 = 0
    /// Whether the end of the session was reported to the app.
    var isReported = true
    /// When the current step fails.
    var deadline: Instant?

    init(handle: ConnectionHandle, isCentral: Bool) {
        self.handle = handle
        self.isCentral = isCentral
    }

    /// Whether a session runs, or is being ended.
    var isActive: Bool { phase != .idle }

    /// Whether a session is the current or the last one of this link, or waits for its end.
    func has(_ session: UInt64) -> Bool { session == self.session || session == next?.session }

    /// Whether a session is in progress, or waits to begin.
    func includes(_ session: UInt64) -> Bool { session == self.session && isActive || session == next?.session }

    /// Whether a session waits for the gate of the link.
    var awaitsGate: Bool { isGateClosed && next != nil }

    // MARK: The app

    /// Starts a session. It waits until the controllers have been tidied up after the previous session, and until the
    /// gate is open.
    ///
    /// - Parameter isGateClosed: whether the gate of the link is closed.
    /// - Throws: an error if a parameter is out of its range, or another session runs or waits.
    mutating func start(
        _ parameters: ChannelSoundingParameters,
        as session: UInt64,
        isGateClosed: Bool = false,
        at now: Instant
    ) throws(HostError) -> [ChannelSoundingEffect] {
        try parameters.check()
        self.isGateClosed = isGateClosed
        let request = Request(parameters: parameters, session: session)
        if phase == .idle, next == nil, !isGateClosed { return begin(request, at: now) }
        guard isReported, next == nil else {
            throw .invalidArgument("a session of channel sounding already runs on this link; stop it first")
        }
        next = request
        return []
    }

    private mutating func begin(_ request: Request, at now: Instant) -> [ChannelSoundingEffect] {
        parameters = request.parameters
        session = request.session
        (configuration, ownsConfiguration, subevent) = (nil, false, nil)
        isReported = false
        if parameters.role == .reflector || capabilities != nil { return setDefaults(at: now) }
        return step(.readingCapabilities, .readCapabilities(.init(connectionHandle: handle)), at: now)
    }

    /// Removes the session that waits, and returns its number.
    mutating func takeNext() -> UInt64? { next.take()?.session }

    /// Begins the session that waits; nil if there is none, or the gate is closed.
    mutating func beginNext(at now: Instant) -> [ChannelSoundingEffect]? {
        guard !isGateClosed, let request = next.take() else { return nil }
        return begin(request, at: now)
    }

    /// Stops a session. Has no effect on another one.
    mutating func stop(_ session: UInt64, at now: Instant) -> [ChannelSoundingEffect] {
        if session == next?.session { next = nil }
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
                return secureAsReflector()
            }
            guard let free = (0..<Self.configurationCount).first(where: { configurations[$0] == nil }) else {
                return fail(
                    .notSupported(
                        "the peer has created all \(Self.configurationCount) configurations of channel sounding"
                    ),
                    at: now
                )
            }
            configID = free
            var configuration = parameters.configuration
            configuration.role = parameters.role
            let command = LECSCreateConfig(connectionHandle: handle, configID: free, configuration: configuration)
            return step(.creatingConfig, .createConfig(command), at: now)
        case (.setParameters, .settingParameters):
            let command = LECSProcedureEnable(connectionHandle: handle, configID: configID, enable: true)
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
        if case .enableSecurity = command, security == .starting { security = .off }
        // The controller may keep the roles that it had. It refuses to disable a role that is in use.
        if case .setDefaults = command { isRoleEnabled = true }
        // If the controller is being reset, the end of the link follows, and ends the sessions.
        guard session == self.session, isCurrent(command), !failure.meansReset else { return [] }
        return fail(.command(failure), at: now)
    }

    /// Whether a command belongs to the current step.
    private func isCurrent(_ command: ChannelSoundingCommand) -> Bool {
        switch (command, phase) {
        case (.readCapabilities, .readingCapabilities), (.setDefaults, .settingDefaults),
            (.createConfig, .creatingConfig), (.createConfig, .abandoningConfig),
            (.enableSecurity, .enablingSecurity), (.enableSecurity, .awaitingPeer),
            (.setParameters, .settingParameters), (.enable, .enabling), (.enable, .abandoningProcedures),
            (.disable, .disabling), (.removeConfig, .removingConfig):
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
        let isOwn = event.configID == configID
        let isCreated = event.isCreated && event.configuration.role == parameters.role
        if event.status == .success { configurations[event.configID] = event.isCreated ? event.configuration : nil }
        switch phase {
        case .creatingConfig where isOwn && (isCreated || event.status != .success):
            guard event.status == .success else {
                return fail(.command(.status(event.status, LECSCreateConfig.opcode)), at: now)
            }
            configuration = (event.configID, event.configuration)
            ownsConfiguration = true
            if isCentral {
                security = .starting
                return step(.enablingSecurity, .enableSecurity(.init(connectionHandle: handle)), at: now)
            }
            if security == .on { return setParameters(at: now) }
            // Only the central starts the security.
            phase = .enablingSecurity
            deadline = now + Self.stepTimeout
            return []
        case .abandoningConfig where isOwn && (isCreated || event.status != .success):
            ownsConfiguration = event.status == .success
            return removeConfig(at: now)
        case .removingConfig where isOwn && (!event.isCreated || event.status != .success): return finish(at: now)
        case .awaitingPeer: return secureAsReflector()
        case .idle: return []
        default:
            // The peer may remove the configuration at any time, which ends its procedures.
            guard event.status == .success, !event.isCreated, event.configID == configuration?.identifier else {
                return []
            }
            ownsConfiguration = false
            configuration = nil
            return end(nil) + finish(at: now)
        }
    }

    /// Starts the security as the central, once the peer has a configuration with this device as the reflector.
    private mutating func secureAsReflector() -> [ChannelSoundingEffect] {
        guard isCentral, security == .off, configurations.values.contains(where: { $0.role == .reflector }) else {
            return []
        }
        security = .starting
        return [.command(.enableSecurity(.init(connectionHandle: handle)), session: session)]
    }

    mutating func received(_ event: LECSSecurityEnableComplete, at now: Instant) -> [ChannelSoundingEffect] {
        security = event.status == .success ? .on : .off
        switch phase {
        case .enablingSecurity where event.status == .success: return setParameters(at: now)
        case .awaitingPeer where event.status == .success: return []
        case .enablingSecurity, .awaitingPeer:
            return fail(.command(.status(event.status, LECSSecurityEnable.opcode)), at: now)
        default: return []
        }
    }

    mutating func received(_ event: LECSProcedureEnableComplete, at now: Instant) -> [ChannelSoundingEffect] {
        let isEnabled = event.status == .success && event.state
        let isOfPeer = configurations[event.configID]?.role == .reflector
        switch phase {
        // The peer has started procedures before the controller disabled the role.
        case .idle where isEnabled: return disable(event.configID, at: now)
        case .disabling(let identifier) where event.configID == identifier && !isEnabled:
            return removeConfig(at: now)
        case .abandoningProcedures where event.configID == configID:
            return isEnabled ? disable(event.configID, at: now) : removeConfig(at: now)
        case .enabling where event.configID == configID: break
        case .awaitingPeer where isOfPeer,
            .settingDefaults where isOfPeer && isEnabled && parameters.role == .reflector:
            configuration = configurations[event.configID].map { (event.configID, $0) }
        case .running where event.configID == configuration?.identifier && !event.state:
            return end(nil) + removeConfig(at: now)
        default: return []
        }
        guard event.status == .success else {
            return fail(.command(.status(event.status, LECSProcedureEnable.opcode)), at: now)
        }
        guard event.state, let configuration else { return [] }
        phase = .running
        remainingProcedures = event.procedureCount == 0 ? nil : event.procedureCount
        procedureTimeout =
            .seconds(41) + Self.stepTimeout + Self.longestConnectionInterval * Int(event.procedureInterval)
        awaitProcedure(at: now)
        let procedures = ChannelSoundingProcedures(
            configuration: configuration.1,
            peerCapabilities: capabilities,
            transmitPower: event.selectedTXPower == 127 ? nil : Int(event.selectedTXPower),
            procedureInterval: event.procedureInterval,
            procedureCount: event.procedureCount,
            subeventLength: event.subeventLen
        )
        return [.started(procedures, session: session)]
    }

    // MARK: Steps

    mutating func step(
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
        // The session may end before the answer.
        isRoleEnabled = true
        return step(.settingDefaults, .setDefaults(command), at: now)
    }

    private mutating func setParameters(at now: Instant) -> [ChannelSoundingEffect] {
        let command = LECSSetProcedureParameters(
            connectionHandle: handle,
            configID: configID,
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
}
