import BLEHCI
import BLEL2CAP
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// A ``LinkControl`` with what it has to know.
struct LinkControlFixture {
    static let handle = ConnectionHandle(0x0040)
    static let start = Instant(nanoseconds: 1_000_000_000_000)
    static let calls = (1...4).map { CallToken(index: $0, generation: 0) }
    static let phys = LinkRequest.phys(transmit: .le2M, receive: .le2M)

    var control: LinkControl
    var context = ControlContext(now: start, isPoweredOn: true, commandTimeout: .seconds(4))

    /// A link with a supervision timeout of 4 s.
    init(_ role: SignalingChannel.Role = .central) {
        control = LinkControl(
            handle: LinkControlFixture.handle,
            role: role,
            parameters: NegotiatedConnectionParameters(interval: 24, latency: 0, supervisionTimeout: 400)
        )
    }

    static func parameters(_ milliseconds: Int) -> ConnectionParameters {
        ConnectionParameters(interval: .milliseconds(milliseconds)...(.milliseconds(milliseconds)))
    }

    static func request(_ milliseconds: Int) -> LinkRequest { .parameters(parameters(milliseconds)) }

    static func peerRequest(_ interval: UInt16) -> ConnectionParameterUpdateRequest {
        ConnectionParameterUpdateRequest(intervalMin: interval, intervalMax: interval, latency: 0, timeout: 400)
    }

    /// The command for a connection update with this interval in units of 1.25 ms.
    static func update(_ interval: UInt16, _ number: UInt32) -> ControlEffect {
        .command(
            .connectionUpdate(
                LEConnectionUpdate(
                    connectionHandle: handle,
                    connectionIntervalMin: interval,
                    connectionIntervalMax: interval,
                    supervisionTimeout: 400
                )
            ),
            .procedure(.connectionUpdate, number: number)
        )
    }

    static func setPHY(_ number: UInt32) -> ControlEffect {
        .command(
            .setPHY(LESetPHY(connectionHandle: handle, txPHYs: .le2M, rxPHYs: .le2M)),
            .procedure(.phyUpdate, number: number)
        )
    }

    static func disconnect(_ reason: HCIErrorCode = .remoteUserTerminatedConnection) -> ControlEffect {
        .command(.disconnect(Disconnect(connectionHandle: handle, reason: reason)), .disconnection)
    }

    static func updated(_ interval: UInt16, _ status: HCIErrorCode = .success) -> LEConnectionUpdateComplete {
        LEConnectionUpdateComplete(
            status: status,
            connectionHandle: handle,
            connectionInterval: interval,
            peripheralLatency: 0,
            supervisionTimeout: 400
        )
    }

    static func physUpdated(_ status: HCIErrorCode = .success) -> LEPHYUpdateComplete {
        LEPHYUpdateComplete(status: status, connectionHandle: handle, txPHY: .le2M, rxPHY: .le2M)
    }

    static func readFeatures(_ number: UInt32) -> ControlEffect {
        .command(
            .readFeatures(LEReadRemoteFeatures(connectionHandle: handle)),
            .procedure(.featureExchange, number: number)
        )
    }

    static func featuresRead(_ status: HCIErrorCode = .success) -> LEReadRemoteFeaturesComplete {
        LEReadRemoteFeaturesComplete(
            status: status,
            connectionHandle: handle,
            leFeatures: .periodicAdvertisingSyncTransferRecipient
        )
    }

    static let subrate = LinkRequest.subrate(SubrateParameters(factor: 2...4, maximumLatency: 1, continuationNumber: 1))

    static func requestSubrate(_ number: UInt32) -> ControlEffect {
        .command(
            .requestSubrate(
                LESubrateRequest(
                    connectionHandle: handle,
                    subrateMin: 2,
                    subrateMax: 4,
                    maxLatency: 1,
                    continuationNumber: 1,
                    supervisionTimeout: 400
                )
            ),
            .procedure(.subrateUpdate, number: number)
        )
    }

    static func subrated(_ factor: UInt16, _ status: HCIErrorCode = .success) -> LESubrateChange {
        LESubrateChange(
            status: status,
            connectionHandle: handle,
            subrateFactor: factor,
            peripheralLatency: 1,
            continuationNumber: 1,
            supervisionTimeout: 500
        )
    }

    static func readPower(_ phy: PHY, _ number: UInt32) -> ControlEffect {
        .command(
            .readRemotePower(LEReadRemoteTransmitPowerLevel(connectionHandle: handle, phy: phy)),
            .procedure(.powerRead, number: number)
        )
    }

    static func power(
        _ reason: TransmitPowerReportingReason,
        _ level: Int8,
        delta: Int8 = 0,
        limits: TransmitPowerLevelLimits = [],
        status: HCIErrorCode = .success
    ) -> LETransmitPowerReporting {
        LETransmitPowerReporting(
            status: status,
            connectionHandle: handle,
            reason: reason,
            phy: .le1M,
            txPowerLevel: level,
            txPowerLevelFlag: limits,
            delta: delta
        )
    }

    // MARK: Inputs

    mutating func request(_ request: LinkRequest, _ call: Int) -> [ControlEffect] {
        control.request(request, for: LinkControlFixture.calls[call], context)
    }

    /// Takes an event, and checks that it is reported if it was successful.
    mutating func updated(_ interval: UInt16, _ status: HCIErrorCode = .success) -> [ControlEffect] {
        let effects = control.received(LinkControlFixture.updated(interval, status), context)
        return withoutReport(effects, .parametersChanged(control.parameters), status)
    }

    mutating func physUpdated(_ status: HCIErrorCode = .success) -> [ControlEffect] {
        let effects = control.received(LinkControlFixture.physUpdated(status), context)
        let event = LinkEvent.physChanged(transmit: control.transmitPHY, receive: control.receivePHY)
        return withoutReport(effects, event, status)
    }

    private func withoutReport(
        _ effects: [ControlEffect],
        _ event: LinkEvent,
        _ status: HCIErrorCode
    ) -> [ControlEffect] {
        guard status == .success, control.endError == nil else { return effects }
        #expect(effects.first == .report(event))
        return Array(effects.dropFirst())
    }

    mutating func failed(_ procedure: LinkProcedure, _ number: UInt32, _ failure: CommandFailure) -> [ControlEffect] {
        control.commandFailed(.procedure(procedure, number: number), failure, context)
    }

    mutating func advance(by duration: Duration) -> [ControlEffect] {
        context.now = context.now + duration
        return control.advance(context)
    }
}
