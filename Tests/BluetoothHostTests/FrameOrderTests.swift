import BLEHCI
import BluetoothHost
import Testing

/// Frames and commands have queues of their own. A frame that need not wait leaves before the commands that follow from
/// the same input.
@Suite("The order of frames and commands")
struct FrameOrderTests {
    @Test(
        "The answer to a request for connection parameters leaves before the command, if there is a buffer",
        arguments: [true, false]
    )
    func answerLeavesBeforeTheCommand(hasBuffer: Bool) throws {
        let fixture = HostFixture(profile: .init(leBuffers: (27, hasBuffer ? 4 : 1))) { $0.requestsMTU = false }
        let controller = fixture.controller
        let sentBefore = Recorder<[[UInt8]]>()
        controller.override = { [unowned controller] command in
            if command.opcode == LEConnectionUpdate.opcode {
                sentBefore.append(controller.data.map { Array($0.dropFirst(9)) })
            }
            return nil
        }
        try fixture.bringUp()
        _ = fixture.start { [host = fixture.host] in
            try await host.connect(toAnyOf: [HostFixture.peer], parameters: ConnectionParameters(), timeout: nil)
        }
        fixture.connect(role: .central)
        // The response takes one buffer, which the controller keeps.
        #expect(fixture.exchange([0x0A, 3, 0]).count == 1)
        controller.forgetData()
        controller.emit(HostFixture.acl([0x12, 5, 8, 0, 80, 0, 100, 0, 0, 0, 200, 0], channel: 5))
        fixture.loop.run(for: .milliseconds(1))
        let answer: [UInt8] = [0x13, 5, 2, 0, 0, 0]
        #expect(sentBefore.all == [hasBuffer ? [answer] : []], "the command does not wait for the buffer")
        controller.emit {
            NumberOfCompletedPackets.encodePacket(
                .init(connectionHandle: 0x0040, numCompletedPackets: 1),
                into: &$0
            )
        }
        fixture.loop.run(for: .milliseconds(1))
        #expect(controller.data.map { Array($0.dropFirst(9)) } == [answer])
    }
}
