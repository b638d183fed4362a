import BLEHCI
import BluetoothTypes

// Channel Sounding (Vol 4, Part E, 7.8.130 to 7.8.141): capabilities, configurations and the start of procedures. There
// are no tones on the air, so each procedure is reported as aborted, without steps.

/// An LL_CS PDU (Vol 6, Part B, 2.4.2), with the values that matter to a host.
enum ChannelSoundingPDU: Hashable {
    case capabilitiesRequest
    case capabilitiesResponse(ChannelSoundingCapabilities)
    /// A configuration, by its identifier; nil to remove it.
    case configRequest(UInt8, ChannelSoundingConfiguration?)
    case configResponse(UInt8)
    case securityRequest
    case securityResponse
    case procedureRequest(UInt8, SoundingSchedule)
    case procedureResponse(UInt8, SoundingSchedule)
    case terminate(UInt8)
    /// The rejection of a request. It has the same values.
    indirect case refusal(ChannelSoundingPDU, HCIErrorCode)

    /// The length of the PDU in bytes, including the opcode.
    var octets: Int {
        switch self {
        case .capabilitiesRequest, .capabilitiesResponse: 26
        case .configRequest: 28
        case .configResponse: 2
        case .securityRequest, .securityResponse: 21
        case .procedureRequest: 29
        case .procedureResponse: 22
        case .terminate: 5
        case .refusal: 3
        }
    }
}

/// When procedures are performed.
struct SoundingSchedule: Hashable {
    /// In connection events.
    let interval: UInt16
    /// 0: until they are stopped.
    let count: UInt16
}

/// The state of Channel Sounding at one end of a link.
struct SoundingState {
    /// The roles that the host has enabled.
    var roles: ChannelSoundingRoles = []
    var configurations: [UInt8: ChannelSoundingConfiguration] = [:]
    var schedules: [UInt8: SoundingSchedule] = [:]
    var isSecure = false
    /// The configuration whose procedures run.
    var running: UInt8?
    /// Incremented when procedures start or stop.
    var generation = 0
}

extension CommandTable {
    /// Adds Channel Sounding.
    mutating func addChannelSounding() {
        answer(LECSReadLocalSupportedCapabilities.self, needs: .channelSounding) { _, _ in
            .success(.init(capabilities: VirtualController.soundingCapabilities))
        }
        sound(LECSReadRemoteSupportedCapabilities.self, \.connectionHandle) { end, _ in
            end.answer(beginning: .channelSounding(.capabilitiesRequest))
        }
        answer(LECSSetDefaultSettings.self, needs: .channelSounding) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            end.sounding.roles = command.roleEnable
            return .success(.init(connectionHandle: command.connectionHandle))
        }
        sound(LECSCreateConfig.self, \.connectionHandle) { end, command in
            guard command.configID < VirtualController.soundingCapabilities.numConfigSupported,
                (1...3).contains(command.configuration.mode0Steps)
            else { return .refused(.invalidHCICommandParameters) }
            guard end.sounding.roles.contains(command.configuration.role), end.sounding.running == nil else {
                return .refused(.commandDisallowed)
            }
            guard command.isSentToPeer else {
                return .begun { end.keepConfig(command.configID, command.configuration) }
            }
            return end.answer(beginning: .channelSounding(.configRequest(command.configID, command.configuration)))
        }
        sound(LECSRemoveConfig.self, \.connectionHandle) { end, command in
            guard end.sounding.configurations[command.configID] != nil else {
                return .refused(.invalidHCICommandParameters)
            }
            guard end.sounding.running != command.configID else { return .refused(.commandDisallowed) }
            return end.answer(beginning: .channelSounding(.configRequest(command.configID, nil)))
        }
        sound(LECSSecurityEnable.self, \.connectionHandle) { end, _ in
            guard end.role == .central else { return .refused(.commandDisallowed) }
            guard end.encryption.state == .on else { return .refused(.insufficientSecurity) }
            return end.answer(beginning: .channelSounding(.securityRequest))
        }
        answer(LECSSetProcedureParameters.self, needs: .channelSounding) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard end.sounding.configurations[command.configID] != nil, command.maxProcedureLen > 0,
                command.minProcedureInterval > 0, command.minProcedureInterval <= command.maxProcedureInterval
            else { return .failure(.invalidHCICommandParameters) }
            end.sounding.schedules[command.configID] = SoundingSchedule(
                interval: command.minProcedureInterval,
                count: command.maxProcedureCount
            )
            return .success(.init(connectionHandle: command.connectionHandle))
        }
        sound(LECSProcedureEnable.self, \.connectionHandle) { end, command in
            guard end.sounding.configurations[command.configID] != nil else {
                return .refused(.invalidHCICommandParameters)
            }
            guard command.enable else {
                guard end.sounding.running == command.configID else { return .refused(.commandDisallowed) }
                guard end.canBegin else { return .refused(.controllerBusy) }
                return .begun {
                    end.begin(.message(.channelSounding(.terminate(command.configID))))
                    end.stopSounding()
                }
            }
            guard let schedule = end.sounding.schedules[command.configID], end.sounding.isSecure,
                end.sounding.running == nil
            else { return .refused(.commandDisallowed) }
            return end.answer(beginning: .channelSounding(.procedureRequest(command.configID, schedule)))
        }
    }

    /// Adds a command about a link, which needs the feature.
    private mutating func sound<C: Command & SendableMetatype>(
        _ type: C.Type,
        _ handle: @escaping @Sendable (C) -> ConnectionHandle,
        _ body: @escaping @Sendable (LinkEnd, C) -> Beginning
    ) where C.ReturnParameters == NoReturnParameters {
        begin(type, needs: .channelSounding) { controller, command in
            guard let end = controller.end(handle(command)) else { return .refused(.unknownConnectionIdentifier) }
            return body(end, command)
        }
    }
}

extension VirtualController {
    /// What the controller can do.
    static let soundingCapabilities = ChannelSoundingCapabilities(numConfigSupported: 4)
}

extension LinkEnd {
    func receive(_ pdu: ChannelSoundingPDU) {
        switch pdu {
        case .capabilitiesRequest, .configRequest, .securityRequest, .procedureRequest:
            if let reason = obstacle(to: pdu) {
                send(.channelSounding(.refusal(pdu, reason)))
            } else {
                accept(pdu)
            }
        case .capabilitiesResponse(let capabilities):
            tellCapabilities(.success, capabilities)
            finishRequest()
        case .configResponse(let identifier):
            finishConfig(identifier)
            finishRequest()
        case .securityResponse:
            sounding.isSecure = true
            controller.tellLE(LECSSecurityEnableComplete(connectionHandle: handle))
            finishRequest()
        case .procedureResponse(let identifier, let schedule):
            startSounding(identifier, schedule)
            finishRequest()
        case .terminate(let identifier): if sounding.running == identifier { stopSounding() }
        case .refusal(let request, let reason):
            wasRefused(request, reason)
            finishRequest()
        }
    }

    /// Ends the procedure of this side's request, which the peer has answered.
    private func finishRequest() {
        if case .channelSounding? = procedure { finish() }
    }

    /// Why a request of the peer is refused; nil if it is accepted.
    private func obstacle(to request: ChannelSoundingPDU) -> HCIErrorCode? {
        guard controller.hostFeatures.contains(.channelSoundingHostSupport) else { return .unsupportedRemoteFeature }
        switch request {
        case .configRequest(_, let configuration?):
            return sounding.roles.contains(configuration.role.other) ? nil : .unsupportedFeatureOrParameterValue
        case .procedureRequest(let identifier, _):
            return sounding.configurations[identifier] != nil && sounding.isSecure ? nil : .commandDisallowed
        default: return nil
        }
    }

    private func accept(_ request: ChannelSoundingPDU) {
        switch request {
        case .capabilitiesRequest:
            send(.channelSounding(.capabilitiesResponse(VirtualController.soundingCapabilities)))
        case .configRequest(let identifier, let configuration):
            send(.channelSounding(.configResponse(identifier)))
            if var configuration {
                configuration.role = configuration.role.other
                keepConfig(identifier, configuration)
            } else if let removed = sounding.configurations.removeValue(forKey: identifier) {
                if sounding.running == identifier { stopSounding() }
                tellConfig(identifier, removed, isCreated: false)
            }
        case .securityRequest:
            sounding.isSecure = true
            send(.channelSounding(.securityResponse))
            controller.tellLE(LECSSecurityEnableComplete(connectionHandle: handle))
        case .procedureRequest(let identifier, let schedule):
            send(.channelSounding(.procedureResponse(identifier, schedule)))
            startSounding(identifier, schedule)
        default: break
        }
    }

    /// Creates a configuration at this end.
    fileprivate func keepConfig(_ identifier: UInt8, _ configuration: ChannelSoundingConfiguration) {
        sounding.configurations[identifier] = configuration
        tellConfig(identifier, configuration, isCreated: true)
    }

    /// Handles the peer's answer to a configuration that this end has sent, or removed.
    private func finishConfig(_ identifier: UInt8) {
        guard case .channelSounding(.configRequest(identifier, let configuration))? = procedure else { return }
        if let configuration {
            keepConfig(identifier, configuration)
        } else if let removed = sounding.configurations.removeValue(forKey: identifier) {
            tellConfig(identifier, removed, isCreated: false)
        }
    }

    private func wasRefused(_ request: ChannelSoundingPDU, _ reason: HCIErrorCode) {
        switch request {
        case .capabilitiesRequest: tellCapabilities(reason, ChannelSoundingCapabilities())
        case .configRequest(let identifier, let configuration):
            tellConfig(identifier, configuration ?? .init(), isCreated: configuration != nil, reason)
        case .securityRequest: controller.tellLE(LECSSecurityEnableComplete(status: reason, connectionHandle: handle))
        case .procedureRequest(let identifier, _):
            controller.tellLE(
                LECSProcedureEnableComplete(
                    status: reason,
                    connectionHandle: handle,
                    configID: identifier,
                    state: true
                )
            )
        default: break
        }
    }

    // MARK: Procedures

    private func startSounding(_ identifier: UInt8, _ schedule: SoundingSchedule) {
        sounding.running = identifier
        sounding.generation += 1
        controller.tellLE(
            LECSProcedureEnableComplete(
                connectionHandle: handle,
                configID: identifier,
                state: true,
                selectedTXPower: 0,
                subeventLen: 0x0004E2,
                subeventsPerEvent: 1,
                eventInterval: 1,
                procedureInterval: schedule.interval,
                procedureCount: schedule.count,
                maxProcedureLen: 0x0010
            )
        )
        scheduleProcedure(0, of: schedule, sounding.generation)
    }

    /// Reports one procedure after its interval as aborted, then the next one.
    private func scheduleProcedure(_ number: UInt16, of schedule: SoundingSchedule, _ generation: Int) {
        let interval = Duration.microseconds(1250 * Int(link.parameters.interval) * Int(schedule.interval))
        air.schedule(after: interval) { [self] in
            guard !isGone, sounding.generation == generation, let identifier = sounding.running else { return }
            tellAborted(number, of: identifier)
            if schedule.count != 0, number + 1 >= schedule.count {
                sounding.running = nil
                sounding.generation += 1
            } else {
                scheduleProcedure(number &+ 1, of: schedule, generation)
            }
        }
    }

    func stopSounding() {
        guard let identifier = sounding.running else { return }
        sounding.running = nil
        sounding.generation += 1
        controller.tellLE(
            LECSProcedureEnableComplete(connectionHandle: handle, configID: identifier, state: false)
        )
    }

    // MARK: Events

    private func tellAborted(_ number: UInt16, of identifier: UInt8) {
        // Reasons: no CS_SYNC packet was received (subevent), and an unspecified one (procedure).
        let progress = ChannelSoundingProgress(
            procedureDoneStatus: .aborted,
            subeventDoneStatus: .aborted,
            abortReason: 0x1F
        )
        let steps: [UInt8] = []
        controller.tellLE(
            LECSSubeventResult(
                connectionHandle: handle.rawValue,
                configID: identifier,
                startACLConnEventCounter: UInt16(truncatingIfNeeded: link.counter),
                procedureCounter: number,
                progress: progress,
                numAntennaPaths: 0,
                numStepsReported: 0,
                stepBytes: steps.rawSpan
            )
        )
    }

    private func tellCapabilities(_ status: HCIErrorCode, _ capabilities: ChannelSoundingCapabilities) {
        controller.tellLE(
            LECSReadRemoteSupportedCapabilitiesComplete(
                status: status,
                connectionHandle: handle,
                capabilities: capabilities
            )
        )
    }

    private func tellConfig(
        _ identifier: UInt8,
        _ configuration: ChannelSoundingConfiguration,
        isCreated: Bool,
        _ status: HCIErrorCode = .success
    ) {
        controller.tellLE(
            LECSConfigComplete(
                status: status,
                connectionHandle: handle,
                configID: identifier,
                isCreated: isCreated,
                configuration: configuration
            )
        )
    }
}

extension ChannelSoundingRole {
    /// The role of the peer.
    fileprivate var other: ChannelSoundingRole { self == .initiator ? .reflector : .initiator }
}
