import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// An engine, and the commands of its session in their order.
struct ChannelSoundingFixture {
    static let handle: ConnectionHandle = 0x0040
    static let configuration = ChannelSoundingConfiguration(role: .initiator)

    var engine: ChannelSoundingEngine
    var now = Instant(nanoseconds: 0)

    init(isCentral: Bool = true) {
        engine = ChannelSoundingEngine(handle: Self.handle, isCentral: isCentral)
    }

    mutating func start(
        _ parameters: ChannelSoundingParameters = .init(),
        as session: UInt64 = 1,
        isGateClosed: Bool = false
    ) throws -> [ChannelSoundingEffect] {
        try engine.start(parameters, as: session, isGateClosed: isGateClosed, at: now)
    }

    mutating func succeeded(_ command: ChannelSoundingCommand, session: UInt64 = 1) -> [ChannelSoundingEffect] {
        engine.commandSucceeded(command, session: session, at: now)
    }

    mutating func capabilities(_ roles: ChannelSoundingRoles = [.initiator, .reflector]) -> [ChannelSoundingEffect] {
        let event = LECSReadRemoteSupportedCapabilitiesComplete(
            connectionHandle: Self.handle,
            capabilities: ChannelSoundingCapabilities(rolesSupported: roles)
        )
        return engine.received(event, at: now)
    }

    mutating func config(
        _ status: HCIErrorCode = .success,
        isCreated: Bool = true,
        id: UInt8 = 0,
        role: ChannelSoundingRole = .initiator
    ) -> [ChannelSoundingEffect] {
        let event = LECSConfigComplete(
            status: status,
            connectionHandle: Self.handle,
            configID: id,
            isCreated: isCreated,
            configuration: ChannelSoundingConfiguration(role: role)
        )
        return engine.received(event, at: now)
    }

    mutating func security(_ status: HCIErrorCode = .success) -> [ChannelSoundingEffect] {
        engine.received(LECSSecurityEnableComplete(status: status, connectionHandle: Self.handle), at: now)
    }

    mutating func procedures(
        _ status: HCIErrorCode = .success,
        isOn: Bool = true,
        count: UInt16 = 1,
        id: UInt8 = 0
    ) -> [ChannelSoundingEffect] {
        let event = LECSProcedureEnableComplete(
            status: status,
            connectionHandle: Self.handle,
            configID: id,
            state: isOn,
            selectedTXPower: 4,
            subeventLen: 1250,
            procedureInterval: 10,
            procedureCount: count
        )
        return engine.received(event, at: now)
    }

    mutating func result(
        _ steps: [UInt8],
        count: UInt8,
        _ procedure: ChannelSoundingDoneStatus,
        _ subevent: ChannelSoundingDoneStatus,
        id: UInt8 = 0,
        paths: UInt8 = 1
    ) -> [ChannelSoundingEffect] {
        let event = LECSSubeventResult(
            connectionHandle: Self.handle.rawValue,
            configID: id,
            procedureCounter: 7,
            progress: .init(procedureDoneStatus: procedure, subeventDoneStatus: subevent),
            numAntennaPaths: paths,
            numStepsReported: count,
            stepBytes: steps.rawSpan
        )
        return engine.received(event, at: now)
    }

    mutating func more(
        _ steps: [UInt8],
        count: UInt8,
        _ procedure: ChannelSoundingDoneStatus,
        _ subevent: ChannelSoundingDoneStatus
    ) -> [ChannelSoundingEffect] {
        let event = LECSSubeventResultContinue(
            connectionHandle: Self.handle.rawValue,
            configID: 0,
            progress: .init(procedureDoneStatus: procedure, subeventDoneStatus: subevent),
            numStepsReported: count,
            stepBytes: steps.rawSpan
        )
        return engine.received(event, at: now)
    }

    // The commands of a session.

    static let readCapabilities = ChannelSoundingCommand.readCapabilities(.init(connectionHandle: handle))
    static func defaults(_ roles: ChannelSoundingRoles = .initiator) -> ChannelSoundingCommand {
        .setDefaults(.init(connectionHandle: handle, roleEnable: roles))
    }
    static let disableRole = defaults([])
    static let create = ChannelSoundingCommand.createConfig(
        .init(connectionHandle: handle, configID: 0, configuration: configuration)
    )
    static let secure = ChannelSoundingCommand.enableSecurity(.init(connectionHandle: handle))
    static func parameters(count: UInt16 = 1) -> ChannelSoundingCommand {
        .setParameters(
            .init(
                connectionHandle: handle,
                configID: 0,
                maxProcedureLen: 1000,
                minProcedureInterval: 1,
                maxProcedureInterval: 100,
                maxProcedureCount: count,
                minSubeventLen: 0x0004E2,
                maxSubeventLen: ChannelSoundingEngine.longestSubevent,
                toneAntennaConfigSelection: 0,
                phy: .le1M
            )
        )
    }
    static let enable = ChannelSoundingCommand.enable(.init(connectionHandle: handle, configID: 0, enable: true))
    static let disable = ChannelSoundingCommand.disable(.init(connectionHandle: handle, configID: 0, enable: false))
    static let remove = ChannelSoundingCommand.removeConfig(.init(connectionHandle: handle, configID: 0))

    static func sends(_ command: ChannelSoundingCommand, session: UInt64 = 1) -> [ChannelSoundingEffect] {
        [.command(command, session: session)]
    }

    /// A session whose procedures run.
    static func running(count: UInt16 = 1) throws -> ChannelSoundingFixture {
        var link = ChannelSoundingFixture()
        _ = try link.start(ChannelSoundingParameters(procedureCount: count))
        _ = link.capabilities()
        _ = link.succeeded(defaults())
        _ = link.config()
        _ = link.security()
        _ = link.succeeded(parameters(count: count))
        _ = link.procedures(count: count)
        return link
    }
}
