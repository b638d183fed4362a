import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("A subrated link")
struct SubratedLinkTests {
    /// With an interval of 125 ms and a subrate factor of 4, the supervision timeout must exceed 1 s.
    @Test(
        "A central rejects parameters of a peripheral that its controller would refuse",
        arguments: [(100, false), (101, true)] as [(UInt8, Bool)]
    )
    func centralRejectsParametersThatDoNotFitTheSubrate(timeout: UInt8, isAccepted: Bool) throws {
        let fixture = HostFixture { $0.requestsMTU = false }
        try fixture.bringUp()
        fixture.connect(role: .central)
        fixture.controller.emit {
            LESubrateChange(
                connectionHandle: 0x0040,
                subrateFactor: 4,
                peripheralLatency: 0,
                continuationNumber: 0,
                supervisionTimeout: 400
            ).encodePacket(into: &$0)
        }
        fixture.loop.run(for: .milliseconds(1))
        fixture.controller.emit(HostFixture.acl([0x12, 5, 8, 0, 80, 0, 100, 0, 0, 0, timeout, 0], channel: 5))
        fixture.loop.run(for: .milliseconds(1))
        let answer: [UInt8] = [0x13, 5, 2, 0, isAccepted ? 0 : 1, 0]
        #expect(fixture.controller.data.map { Array($0.dropFirst(9)) } == [answer])
        #expect(fixture.controller.opcodes.contains(LEConnectionUpdate.opcode) == isAccepted)
    }
}
