import BLEHCI
import BluetoothTypes
import Testing

@testable import BLE

@Suite("Links that end before they can be used")
struct UnusedLinkTests {
    /// Connects to a peer that ends the link before the app's task has continued.
    ///
    /// - Parameter code: the reason of the end, which the peer chooses.
    /// - Returns: the error of the attempt.
    private func connect(endingWith code: HCIErrorCode) throws -> BLEError? {
        let fixture = HostFixture()
        try fixture.bringUp()
        let central = Central(host: fixture.host)
        let attempt = fixture.start { _ = try await central.connect(to: HostFixture.peer) }
        // The loop handles both events before it continues the task.
        fixture.controller.emit {
            LEConnectionComplete(
                connectionHandle: 0x0040,
                role: .central,
                peerAddress: PeerAddress(HostFixture.peer),
                connectionInterval: 24,
                peripheralLatency: 0,
                supervisionTimeout: 400
            ).encodePacket(into: &$0)
        }
        fixture.disconnected(reason: code)
        return #expect(throws: BLEError.self) { try attempt.all.first?.get() }
    }

    @Test(
        "A reason of the peer does not mean that the controller holds no further link",
        arguments: [
            .memoryCapacityExceeded, .connectionLimitExceeded, .connectionRejectedDueToLimitedResources,
        ] as [HCIErrorCode]
    )
    func reasonOfThePeerIsNoRefusalOfTheController(code: HCIErrorCode) throws {
        let error = try connect(endingWith: code)
        #expect(error == .disconnected(.controller(.connectionFailedToBeEstablished)))
    }

    @Test(arguments: [.remoteUserTerminatedConnection, .connectionFailedToBeEstablished] as [HCIErrorCode])
    func otherReasonIsKept(code: HCIErrorCode) throws {
        let error = try connect(endingWith: code)
        #expect(error == .disconnected(.controller(code)))
    }
}
