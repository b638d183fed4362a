import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Faults of software controllers")
struct FaultTests {
    private let resetComplete: [UInt8] = [0x04, 0x0E, 0x04, 0x01, 0x03, 0x0C, 0x00]

    @Test("A silent controller answers nothing, and answers again when the fault ends")
    func silentControllerAnswersAgainWhenTheFaultEnds() {
        let world = World(count: 1)
        world.controllers[0].faults.isSilent = true
        #expect(world.send(Reset(), to: 0).isEmpty)
        world.controllers[0].faults = .none
        #expect(world.send(Reset(), to: 0) == [resetComplete])
    }

    @Test("Completions are lost with the configured probability")
    func completionsAreLostWithTheConfiguredProbability() {
        let world = World(count: 1, seed: 5)
        world.controllers[0].faults.completionLoss = 0.5
        let answered = (0..<400).count { _ in !world.send(Reset(), to: 0).isEmpty }
        #expect((150...250).contains(answered))
    }

    @Test func completionsAreDelayedByTheConfiguredTime() {
        let world = World(count: 1)
        world.controllers[0].faults.completionDelay = .milliseconds(70)
        #expect(world.send(LERand(), to: 0).isEmpty)
        world.run(.milliseconds(69))
        #expect(world.packets[0].isEmpty)
        world.run(.milliseconds(1))
        #expect(world.packets[0].count == 1)
    }

    @Test("Garbage precedes events, and events are truncated; every packet keeps its framing")
    func garbageAndTruncatedEventsKeepTheirFraming() {
        let world = World(count: 1, seed: 9)
        world.controllers[0].faults = ControllerFaults(garbage: 0.5, truncation: 0.5)
        var whole = 0
        var others = 0
        for _ in 0..<200 {
            for packet in world.send(Reset(), to: 0) {
                #expect(packet.count >= 3 && packet.count == 3 + Int(packet[2]) && packet[0] == 0x04)
                if packet == resetComplete { whole += 1 } else { others += 1 }
            }
        }
        #expect(whole > 50 && others > 100)
    }

    @Test func commandOtherThanResetIsRefused() {
        let world = World(count: 1)
        world.controllers[0].faults.refusal = 1
        #expect(world.send(Reset(), to: 0) == [resetComplete])
        // Command Status with Command Disallowed.
        #expect(world.send(LERand(), to: 0) == [[0x04, 0x0F, 0x04, 0x0C, 0x01, 0x18, 0x20]])
        world.controllers[0].faults = .none
        #expect(world.send(LERand(), to: 0).first?[1] == 0x0E)
    }

    @Test("Buffers that are not returned run out, and are free again when their link has ended")
    func lostBuffersRunOutAndAreFreeWhenTheirLinkHasEnded() {
        let link = LinkWorld(configure: { $0.aclPacketCount = 3 })
        link.central.faults.bufferLoss = 1
        for _ in 0..<4 {
            link.send(.init(0, count: 10), from: 0)
            link.run(.seconds(1))
        }
        #expect(link.received(1).count == 3 && link.completed(0) == 0)
        #expect(link.told(0).last == [0x04, 0x1A, 0x01, 0x01])
        link.world.send(Disconnect(connectionHandle: 0x0040), to: 0)
        link.run(.seconds(1))
        #expect(link.central.packetsHeld == 0)
    }

    @Test("A hardware error is reported, and leaves the controller as after a reset")
    func hardwareErrorIsReportedAndEndsTheLinks() {
        let link = LinkWorld()
        link.central.failWithHardwareError(code: 0x42)
        link.run(.zero)
        #expect(link.told(0) == [[0x04, 0x10, 0x01, 0x42]])
        #expect(link.central.freePlace == 0)
        link.run(.seconds(2))
        #expect(link.told(1) == [[0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x08]])
    }

    @Test("The same seed causes the same faults")
    func sameSeedCausesTheSameFaults() {
        func trace() -> [[UInt8]] {
            let world = World(count: 1, seed: 77)
            world.controllers[0].faults = ControllerFaults(completionLoss: 0.2, garbage: 0.3, truncation: 0.3)
            return (0..<100).flatMap { _ in world.send(LERand(), to: 0) }
        }
        #expect(trace() == trace())
    }
}
