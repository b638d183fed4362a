import BLEHCI
import BLEL2CAP
import BluetoothTypes

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

    // MARK: Inputs

    mutating func request(_ request: LinkRequest, _ call: Int) -> [ControlEffect] {
        control.request(request, for: LinkControlFixture.calls[call], context)
    }

    mutating func updated(_ interval: UInt16, _ status: HCIErrorCode = .success) -> [ControlEffect] {
        control.received(LinkControlFixture.updated(interval, status), context)
    }

    mutating func failed(_ procedure: LinkProcedure, _ number: UInt32, _ failure: CommandFailure) -> [ControlEffect] {
        control.commandFailed(.procedure(procedure, number: number), failure, context)
    }

    mutating func advance(by duration: Duration) -> [ControlEffect] {
        context.now = context.now + duration
        return control.advance(context)
    }
}
