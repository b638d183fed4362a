import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// The rules of `OutboundLanes`, one test for each.
@Suite("The order in which calls leave a router")
struct ATTRouterLaneTests {
    private func read(_ handle: UInt8) -> [UInt8] { [0x0A, handle, 0] }
    private func command(_ number: UInt8) -> [UInt8] { [0x52, 9, 0, number] }
    private func notification(_ number: UInt8) -> [UInt8] { [0x1B, 3, 0, number] }
    private func indication(_ number: UInt8) -> [UInt8] { [0x1D, 3, 0, number] }

    // L1
    @Test func callsOfBothLanesLeaveInTheirOrder() throws {
        let fixture = try ATTRouterFixture()
        fixture.room = 0
        fixture.write(1)
        fixture.notify(2)
        fixture.notify(3)
        fixture.write(4)
        fixture.read(5)
        #expect(fixture.takeSent().isEmpty)
        fixture.room = 10
        fixture.pump()
        #expect(fixture.takeSent() == [command(1), notification(2), notification(3), command(4), read(5)])
        #expect(fixture.takeEnded() == ["write 1", "notification 2", "notification 3", "write 4"])
    }

    // L1
    @Test func blockedClientLaneDoesNotStopValues() throws {
        let fixture = try ATTRouterFixture()
        fixture.isGateOpen = false
        fixture.write(1)
        fixture.notify(2)
        fixture.indicate(3)
        #expect(fixture.takeSent() == [notification(2), indication(3)])
    }

    // L2
    @Test func writeWaitsUntilEarlierRequestsAreSent() throws {
        let fixture = try ATTRouterFixture()
        fixture.read(5)
        fixture.read(6)
        fixture.write(1)
        fixture.read(7)
        #expect(fixture.takeSent() == [read(5)])
        fixture.receive([0x0B, 7])
        #expect(fixture.takeSent() == [read(6), command(1)])
        fixture.receive([0x0B, 7])
        #expect(fixture.takeSent() == [read(7)])
    }

    // L2
    @Test func writeWaitsUntilALongWriteIsExecuted() throws {
        let fixture = try ATTRouterFixture()
        fixture.submit(WriteWholeValue(handle: 8, value: [UInt8](repeating: 9, count: 25)), "long write")
        fixture.write(1)
        for _ in 0..<2 {
            let sent = fixture.takeSent()
            #expect(sent.count == 1 && sent[0][0] == 0x16)
            fixture.receive([0x17] + sent[0].dropFirst())
        }
        #expect(fixture.takeSent() == [[0x18, 1], command(1)])
    }

    // L1
    @Test func requestForChannelsWaitsBehindWritesThatWaitForRoom() throws {
        let fixture = try ATTRouterFixture()
        fixture.room = 1
        fixture.write(1)
        fixture.openChannels(10)
        fixture.write(2)
        fixture.openChannels(20, count: 2)
        fixture.notify(3)
        #expect(fixture.takeSent() == [command(1), [0x14, 10]])
        fixture.room = 2
        fixture.pump()
        #expect(fixture.takeSent() == [command(2), [0x14, 20, 21], notification(3)])
    }

    // L2
    @Test func requestForChannelsWaitsUntilEarlierRequestsAreSent() throws {
        let fixture = try ATTRouterFixture()
        fixture.read(5)
        fixture.read(6)
        fixture.openChannels(10)
        #expect(fixture.takeSent() == [read(5)])
        fixture.receive([0x0B, 7])
        #expect(fixture.takeSent() == [read(6), [0x14, 10]])
    }

    // L8
    @Test func requestForChannelsWaitsForVerification() throws {
        let fixture = try ATTRouterFixture()
        fixture.isGateOpen = false
        fixture.openChannels(10)
        fixture.read(5)
        #expect(fixture.verifications == 1)
        fixture.isGateOpen = true
        fixture.verificationEnded(isVerified: true)
        #expect(fixture.takeSent() == [[0x14, 10], read(5)])
        fixture.isGateOpen = false
        fixture.openChannels(20)
        fixture.verificationEnded(isVerified: false)
        #expect(fixture.takeEnded() == ["request 10", "failed request 20"])
        fixture.openChannels(30)
        fixture.endLink()
        #expect(fixture.takeEnded().suffix(1) == ["failed request 30"])
    }

    @Test func removedRequestForChannelsIsNotSent() throws {
        let fixture = try ATTRouterFixture()
        fixture.read(5)
        fixture.read(6)
        fixture.openChannels(10, count: 3)
        fixture.write(1)
        #expect(fixture.removeRequest(for: 13) == false)
        #expect(fixture.removeRequest(for: 12) == true)
        #expect(fixture.removeRequest(for: 12) == false)
        fixture.receive([0x0B, 7])
        #expect(fixture.takeSent() == [read(5), read(6), command(1)])
    }

    // L3
    @Test func writeWaitsWhileSecurityIsElevated() throws {
        let fixture = try ATTRouterFixture()
        fixture.read(5)
        fixture.receive([0x01, 0x0A, 5, 0, 0x05])
        #expect(fixture.effects == ["require security for 5"])
        fixture.write(1)
        #expect(fixture.takeSent() == [read(5)])
        var buffer = PacketBuffer()
        let opcode = fixture.router.securityElevated(nil, after: .insufficientAuthentication, into: &buffer)
        #expect(opcode == .readRequest)
        fixture.takeClientEffects()
        fixture.router.elevationFailureWasTaken()
        fixture.advance(opcode, buffer)
        fixture.pump()
        #expect(fixture.takeSent() == [read(5), command(1)])
    }

    // L4
    @Test func valuesWaitBehindABlockedIndication() throws {
        let fixture = try ATTRouterFixture()
        fixture.indicate(1)
        fixture.notify(2)
        fixture.indicate(3)
        fixture.notify(4)
        #expect(fixture.takeSent() == [indication(1), notification(2)])
        fixture.receive([0x1E])
        #expect(fixture.takeSent() == [indication(3), notification(4)])
        #expect(fixture.takeEnded() == ["notification 2", "indication 1", "notification 4"])
        fixture.receive([0x1E])
        #expect(fixture.takeEnded() == ["indication 3"])
    }

    // L4
    @Test func valuesThatThePeerUnsubscribedFromAreNotSent() throws {
        let fixture = try ATTRouterFixture()
        fixture.indicate(1)
        fixture.indicate(2)
        fixture.notify(3)
        _ = fixture.takeSent()
        fixture.receive([0x12, 4, 0, 0, 0])
        fixture.receive([0x1E])
        #expect(fixture.takeSent() == [[0x13]])
        #expect(fixture.takeEnded() == ["indication 1", "indication 2", "notification 3"])
    }

    // L5
    @Test func answerPassesABlockedIndicationOnly() throws {
        let fixture = try ATTRouterFixture()
        fixture.receive(read(3))
        fixture.indicate(1)
        fixture.indicate(2)
        fixture.notify(3)
        #expect(fixture.takeSent() == [indication(1)])
        fixture.answer(4)
        #expect(fixture.takeSent() == [[0x0B, 4]])

        fixture.receive(read(3))
        fixture.receive([0x1E])
        fixture.receive([0x1E])
        #expect(fixture.takeSent() == [indication(2), notification(3)])
        fixture.room = 0
        fixture.notify(5)
        fixture.answer(6)
        #expect(fixture.takeSent().isEmpty, "the value before it only waits for room")
        fixture.room = 1
        fixture.pump()
        #expect(fixture.takeSent() == [notification(5), [0x0B, 6]])
    }

    // L6
    @Test func drainWaitsForTheWritesAndNotificationsBeforeIt() throws {
        let fixture = try ATTRouterFixture()
        let calls = (0..<3).map { CallToken(index: $0, generation: 0) }
        fixture.router.drain(calls[0])
        fixture.room = 0
        fixture.read(5)
        fixture.read(6)
        fixture.write(1)
        fixture.router.drain(calls[1])
        fixture.notify(2)
        fixture.router.drain(calls[2])
        #expect(fixture.router.takeDrained() == [calls[0]])
        #expect(fixture.router.takeDrained().isEmpty)
        fixture.receive([0x0B, 7])
        fixture.room = 1
        fixture.pump()
        #expect(fixture.takeEnded() == ["read 5", "write 1"])
        #expect(fixture.router.takeDrained() == [calls[1]])
        #expect(fixture.router.remove(calls[2]) == false)
        #expect(fixture.router.drains.isEmpty)
    }

    @Test func drainEndsAfterThePacketsBeforeItAreSent() throws {
        let fixture = try ATTRouterFixture()
        let calls = (0..<3).map { CallToken(index: $0, generation: 0) }
        fixture.router.drain(calls[0], unsentPackets: 2)
        fixture.router.drain(calls[1], unsentPackets: 5)
        fixture.room = 0
        fixture.write(1)
        fixture.router.drain(calls[2], unsentPackets: 5)
        #expect(fixture.router.packetsSent(1, unsentPackets: 5) == [])
        #expect(fixture.router.packetsSent(1, unsentPackets: 5) == [calls[0]])
        #expect(fixture.router.packetsSent(3, unsentPackets: 3) == [calls[1]])
        fixture.room = 1
        fixture.pump()
        // The value before the last call is sent now. It waits for all packets before the value.
        #expect(fixture.router.packetsSent(1, unsentPackets: 3) == [])
        #expect(fixture.router.packetsSent(2, unsentPackets: 9) == [])
        #expect(fixture.router.packetsSent(1, unsentPackets: 9) == [calls[2]])
        #expect(fixture.router.drains.isEmpty)
    }

    // L7
    @Test func repliesAndConfirmationsOfTheHostItselfDoNotWait() throws {
        let fixture = try ATTRouterFixture()
        fixture.indicate(1)
        fixture.room = 0
        fixture.indicate(2)
        fixture.notify(3)
        fixture.write(4)
        _ = fixture.takeSent()
        fixture.receive(read(6))
        fixture.receive([0x1D, 8, 0, 1])
        #expect(fixture.takeSent() == [[0x0B, 0x2A], [0x1E]])
    }

    // L8
    @Test func closedGateAsksForVerificationOnce() throws {
        let fixture = try ATTRouterFixture()
        fixture.isGateOpen = false
        fixture.pump()
        #expect(fixture.verifications == 0, "nothing waits")
        fixture.read(5)
        fixture.write(1)
        fixture.write(2, isSigned: true)
        #expect(fixture.verifications == 1)
        #expect(fixture.takeSent().isEmpty)
        fixture.isGateOpen = true
        fixture.verificationEnded(isVerified: true)
        #expect(fixture.takeSent() == [read(5), command(1), [0xD2, 9, 0, 2]])
        fixture.isGateOpen = false
        fixture.write(3)
        #expect(fixture.verifications == 2)
    }

    // L8
    @Test func failedVerificationEndsTheClientLane() throws {
        let fixture = try ATTRouterFixture()
        fixture.isGateOpen = false
        fixture.room = 0
        fixture.write(1)
        fixture.read(5)
        fixture.notify(2)
        fixture.verificationEnded(isVerified: false)
        #expect(fixture.takeEnded() == ["failed write 1", "failed read 5"])
        #expect(fixture.router.lanes.client.isEmpty && fixture.router.lanes.server.count == 1)
        fixture.write(3)
        #expect(fixture.verifications == 2)
    }

    @Test func signedWriteDoesNotWaitForVerification() throws {
        let fixture = try ATTRouterFixture()
        fixture.isGateOpen = false
        fixture.write(1, isSigned: true)
        #expect(fixture.takeSent() == [[0xD2, 9, 0, 1]])
        fixture.isGateOpen = true
        fixture.router.session.security.isEncrypted = true
        fixture.write(2, isSigned: true)
        #expect(fixture.takeSent() == [command(2)], "an encrypted link needs no signature")
    }

    @Test func cancelledProcedureInItsLaneIsNotSent() throws {
        let fixture = try ATTRouterFixture()
        fixture.room = 0
        fixture.write(1)
        let run = fixture.read(5)
        fixture.write(2)
        fixture.cancel(run)
        #expect(fixture.takeEnded() == ["failed read 5"])
        fixture.room = 9
        fixture.pump()
        #expect(fixture.takeSent() == [command(1), command(2)])
    }

    @Test func cancelledProcedureEndsAtOnceAndItsResponseIsAwaited() throws {
        let fixture = try ATTRouterFixture()
        let running = fixture.read(5)
        let queued = fixture.read(6)
        fixture.read(7)
        fixture.cancel(queued)
        fixture.cancel(running)
        #expect(fixture.takeEnded() == ["failed read 6", "failed read 5"])
        #expect(fixture.takeSent() == [read(5)])
        fixture.receive([0x0B, 7])
        #expect(fixture.takeSent() == [read(7)])
        fixture.receive([0x0B, 7])
        #expect(fixture.takeEnded() == ["read 7"])
    }

    @Test func cancelledTaskLeavesItsLanes() throws {
        let fixture = try ATTRouterFixture()
        let (write, value) = (CallToken(index: 0, generation: 0), CallToken(index: 0, generation: 1))
        fixture.room = 0
        fixture.write(1, caller: .task(write))
        fixture.notify(2, caller: .task(value))
        fixture.indicate(3, caller: .broadcast(Broadcast(2, .task(value))))
        fixture.write(4)
        #expect(fixture.router.remove(write) == true)
        #expect(fixture.router.remove(write) == false)
        #expect(fixture.router.remove(value) == true)
        #expect(fixture.router.lanes.notificationCount == 0)
        fixture.room = 9
        fixture.pump()
        #expect(fixture.takeSent() == [command(4)])
    }

    @Test func endOfLinkEndsEachCallOnceTheOldestFirst() throws {
        let fixture = try ATTRouterFixture()
        fixture.indicate(1)
        fixture.read(5)
        fixture.read(6)
        fixture.room = 0
        fixture.write(2)
        fixture.notify(3)
        fixture.read(7)
        fixture.indicate(4)
        fixture.router.drain(CallToken(index: 0, generation: 0))
        fixture.endLink()
        #expect(
            fixture.takeEnded() == [
                "failed read 5", "failed read 6", "failed write 2", "failed notification 3", "failed read 7",
                "failed indication 4", "failed indication 1", "drain",
            ]
        )
        fixture.room = 9
        fixture.pump()
        fixture.endLink()
        #expect(fixture.takeEnded().isEmpty)
    }

    @Test func procedureFromAnEndDoesNotOvertakeThoseThatWait() throws {
        let fixture = try ATTRouterFixture()
        fixture.read(5)
        fixture.read(6)
        fixture.whenEnded = { name in
            guard name == "read 5" else { return }
            fixture.read(7)
            fixture.notify(1)
        }
        fixture.receive([0x0B, 7])
        #expect(fixture.takeSent() == [read(5), notification(1), read(6)])
        fixture.receive([0x0B, 7])
        #expect(fixture.takeSent() == [read(7)])
        fixture.whenEnded = { _ in }
    }

    @Test func tooLongValuesAreRefusedInTheirTurn() throws {
        let fixture = try ATTRouterFixture()
        var buffer = PacketBuffer()
        let link = LinkIdentifier(handle: 0x40, serial: 1)
        let value = [UInt8](repeating: 1, count: 21)
        #expect(throws: HostError.self) {
            try fixture.router.write(WriteCall(value: value, handle: 9, link: link), into: &buffer)
        }
        #expect(buffer.isEmpty)
        fixture.room = 0
        fixture.write(1)
        fixture.router.append(.write(WriteCall(value: value, handle: 9, link: link)))
        fixture.write(2)
        fixture.room = 9
        fixture.pump()
        #expect(fixture.takeSent() == [command(1), command(2)])
        #expect(fixture.takeEnded() == ["write 1", "failed write 1", "write 2"])
    }
}
