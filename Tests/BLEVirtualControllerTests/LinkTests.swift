import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Links between software controllers")
struct LinkTests {
    private let disconnectedByTimeout: [UInt8] = [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x08]

    // MARK: Data

    @Test("Data arrives in fragments of 27 bytes, and the buffer is returned once they are acknowledged")
    func dataArrivesInFragmentsAndTheBufferIsReturned() {
        let link = LinkWorld()
        link.send(.init(0, count: 100), from: 0)
        link.run(.seconds(1))
        let lengths = link.told(1).map { $0.count - 5 }
        #expect(lengths == [27, 27, 27, 19])
        #expect(link.told(1).map { $0[2] >> 4 } == [0b10, 0b01, 0b01, 0b01])
        #expect(link.received(1) == [LinkWorld.Data(0, count: 100).bytes])
        #expect(link.packets(0) == [[0x04, 0x13, 0x05, 0x01, 0x40, 0x00, 0x01, 0x00]])
    }

    @Test("With a longer data length a packet of 251 bytes arrives complete, and both hosts know the length")
    func packetOf251BytesArrivesWholeWithALongerDataLength() {
        let link = LinkWorld()
        let answer = link.world.send(LESetDataLength(connectionHandle: 0x0040, txOctets: 251, txTime: 2120), to: 0)
        #expect(answer == [[0x04, 0x0E, 0x06, 0x01, 0x22, 0x20, 0x00, 0x40, 0x00]])
        link.run(.seconds(1))
        // The central sends 251 bytes in 2120 us and still receives 27, and the peripheral the reverse.
        #expect(link.told(0).last == [0x04, 0x3E, 0x0B, 0x07, 0x40, 0, 251, 0, 0x48, 0x08, 27, 0, 0x48, 0x01])
        #expect(link.told(1).last == [0x04, 0x3E, 0x0B, 0x07, 0x40, 0, 27, 0, 0x48, 0x01, 251, 0, 0x48, 0x08])
        link.world.forget()
        link.send(.init(7, count: 251), from: 0)
        link.run(.seconds(1))
        #expect(link.told(1).count == 1 && link.received(1) == [LinkWorld.Data(7, count: 251).bytes])
    }

    @Test("The host's suggestion for new links is negotiated automatically")
    func suggestedDataLengthIsNegotiatedAutomatically() {
        let link = LinkWorld(
            isEstablished: false,
            prepare: { world in
                for index in 0...1 {
                    world.send(
                        LEWriteSuggestedDefaultDataLength(suggestedMaxTXOctets: 251, suggestedMaxTXTime: 2120),
                        to: index
                    )
                }
            }
        )
        link.run(.seconds(1))
        #expect(link.central.end(LinkWorld.handle)?.transmitOctets == 251)
        #expect(link.peripheral.end(LinkWorld.handle)?.transmitOctets == 251)
    }

    @Test("Packets beyond the buffers overflow them; data without a link or too long is dropped and counted")
    func packetsBeyondTheBuffersOverflowThem() {
        let link = LinkWorld(configure: { $0.aclPacketCount = 2 })
        for first: UInt8 in 0...2 { link.send(.init(first, count: 4), from: 0) }
        link.central.receive([0x02, 0x99, 0x00, 0x01, 0x00, 3].rawSpan)
        link.send(.init(0, count: 252), from: 0)
        link.run(.seconds(1))
        #expect(link.received(1).map(\.first) == [0, 1])
        #expect(link.told(0) == [[0x04, 0x1A, 0x01, 0x01]])
        #expect(link.completed(0) == 2)
        #expect(link.central.statistics.packetsBeyondCredit == 1 && link.central.statistics.malformedPackets == 2)
    }

    @Test("Packets take the air time of their PHY: 2M is faster than 1M, and coded slower")
    func packetsTakeTheAirTimeOfTheirPHY() throws {
        func time(_ phy: PHYSet?) throws -> Duration {
            let link = LinkWorld(interval: 80, configure: { $0.aclPacketCount = 20 })
            link.world.send(LESetDataLength(connectionHandle: 0x0040, txOctets: 251, txTime: 17040), to: 0)
            if let phy {
                link.world.send(
                    LESetPHY(
                        connectionHandle: 0x0040,
                        allPHYs: [],
                        txPHYs: phy,
                        rxPHYs: phy,
                        phyOptions: .noPreference
                    ),
                    to: 0
                )
            }
            link.run(.seconds(2))
            link.world.forget()
            for _ in 0..<20 { link.send(.init(0, count: 251), from: 0) }
            return try #require(link.run { link.received(1).count == 20 })
        }
        let (fast, normal, slow) = (try time(.le2M), try time(nil), try time(.leCoded))
        // 20 packets of 251 bytes on 1M take 2,088 us each; with the answer and two spaces 2,468.
        #expect(normal > .microseconds(20 * 2088) && normal < .microseconds(20 * 2468 + 2 * 100_000))
        #expect(fast > .microseconds(20 * 1048) && fast < normal && normal < slow)
    }

    @Test("Without pacing, data is forwarded at once")
    func dataIsForwardedAtOnceWithoutPacing() {
        let link = LinkWorld(configure: { $0.pacesPackets = false })
        let start = link.air.now
        for first: UInt8 in 0..<8 { link.send(.init(first, count: 200), from: 0) }
        link.send(.init(99, count: 5), from: 1)
        link.run(.zero)
        #expect(link.air.now == start)
        #expect(link.received(1).map(\.first) == [0, 1, 2, 3, 4, 5, 6, 7] && link.received(0).map(\.first) == [99])
        #expect(link.completed(0) == 8 && link.completed(1) == 1)
    }

    @Test("A peripheral skips events as its latency allows, and wakes up when it has data")
    func peripheralSkipsEventsAndWakesUpWhenItHasData() throws {
        let link = LinkWorld(interval: 80, latency: 9, supervisionTimeout: 600)
        var times: [Duration] = []
        for _ in 0..<5 {
            let count = link.received(1).count
            link.send(.init(1, count: 1), from: 0)
            times.append(try #require(link.run { link.received(1).count > count }))
            link.run(.milliseconds(1))
        }
        #expect(times.dropFirst().allSatisfy { $0 > .milliseconds(900) && $0 <= .seconds(1) })
        link.send(.init(1, count: 1), from: 1)
        #expect(try #require(link.run { !link.received(0).isEmpty }) <= .milliseconds(110))
    }

    @Test("On a bad link everything still arrives, in order and once", arguments: 0..<8 as Range<UInt64>)
    func dataArrivesInOrderAndOnceOnABadLink(seed: UInt64) throws {
        let link = LinkWorld(interval: 6, supervisionTimeout: 1000, seed: seed, configure: { $0.aclPacketCount = 255 })
        link.air.conditions = RadioConditions(loss: 0.3, latency: .milliseconds(3), jitter: .milliseconds(5))
        for index in 0..<100 {
            link.send(.init(UInt8(index), count: 60), from: 0)
            link.send(.init(UInt8(100 + index), count: 60), from: 1)
        }
        let time = link.run { link.completed(0) == 100 && link.completed(1) == 100 }
        #expect(time != nil)
        link.run(.seconds(1))
        #expect(link.received(1) == (0..<100).map { LinkWorld.Data(UInt8($0), count: 60).bytes })
        #expect(link.received(0) == (0..<100).map { LinkWorld.Data(UInt8(100 + $0), count: 60).bytes })
    }

    // MARK: The end

    @Test("A disconnection is reported to both hosts with its reasons, after the data before it")
    func disconnectionIsReportedToBothHostsAfterTheData() {
        let link = LinkWorld()
        link.send(.init(0, count: 200), from: 0)
        let answer = link.world.send(
            Disconnect(connectionHandle: 0x0040, reason: .remoteUserTerminatedConnection),
            to: 0
        )
        #expect(answer == [[0x04, 0x0F, 0x04, 0x00, 0x01, 0x06, 0x04]])
        link.run(.seconds(1))
        #expect(link.told(0).last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x16])
        #expect(link.told(1).last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x13])
        #expect(link.received(1) == [LinkWorld.Data(0, count: 200).bytes])
        #expect(link.central.freePlace == 0 && link.peripheral.freePlace == 0 && link.central.packetsHeld == 0)
        #expect(link.air.nextDue.map { $0 - link.air.now > .seconds(10) } ?? true, "nothing goes on")
    }

    @Test("A dead link ends on both sides after the supervision timeout, and not before")
    func deadLinkEndsAfterTheSupervisionTimeout() {
        let link = LinkWorld(supervisionTimeout: 300)
        link.run(.seconds(20))
        link.air.setConditions(RadioConditions(isDead: true), between: link.central, and: link.peripheral)
        link.run(.milliseconds(2950))
        #expect(link.packets(0).isEmpty && link.packets(1).isEmpty)
        link.run(.milliseconds(150))
        #expect(link.packets(0) == [disconnectedByTimeout] && link.packets(1) == [disconnectedByTimeout])
    }

    @Test("A link that has exchanged no data ends as late as another one when it loses its peer")
    func idleLinkThatLosesItsPeerEndsAfterTheSupervisionTimeout() {
        let link = LinkWorld(supervisionTimeout: 300, isEstablished: false)
        link.run(.seconds(20))
        link.world.forget()
        link.air.conditions.isDead = true
        link.run(.milliseconds(2950))
        #expect(link.packets(0).isEmpty && link.packets(1).isEmpty)
        link.run(.milliseconds(150))
        #expect(link.packets(0) == [disconnectedByTimeout] && link.packets(1) == [disconnectedByTimeout])
    }

    @Test("A link that recovers in time continues, and delivers the data sent before")
    func linkThatRecoversInTimeDeliversItsData() {
        let link = LinkWorld(supervisionTimeout: 300)
        link.air.conditions.isDead = true
        link.send(.init(0, count: 40), from: 0)
        link.run(.milliseconds(2900))
        link.air.conditions = .perfect
        link.run(.seconds(10))
        #expect(link.received(1) == [LinkWorld.Data(0, count: 40).bytes] && link.completed(0) == 1)
    }

    @Test("A link without any received packet fails to be established, after six intervals")
    func linkWithoutAnyPacketFailsToBeEstablished() {
        let link = LinkWorld(isEstablished: false)
        link.air.conditions.isDead = true
        link.run(.milliseconds(400))
        #expect(link.told(0).last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x3E])
        #expect(link.told(1).last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x3E])
    }

    @Test("A device that moves out of range loses its link")
    func deviceOutOfRangeLosesItsLink() {
        let link = LinkWorld()
        link.peripheral.position = Position(x: 1000, y: 0)
        link.run(.seconds(2))
        #expect(link.packets(0) == [disconnectedByTimeout] && link.packets(1) == [disconnectedByTimeout])
    }

    @Test(
        "When a controller vanishes or is reset, its peer detects it at the supervision timeout",
        arguments: [true, false]
    )
    func vanishedControllerIsDetectedAtTheSupervisionTimeout(isGone: Bool) {
        let link = LinkWorld(supervisionTimeout: 200)
        if isGone { link.peripheral.vanish() } else { link.world.send(Reset(), to: 1) }
        link.world.forget()
        link.run(.milliseconds(1900))
        #expect(link.packets(0).isEmpty)
        link.run(.milliseconds(300))
        #expect(link.packets(0) == [disconnectedByTimeout] && link.packets(1).isEmpty)
    }

    @Test("A host that ends a dead link gets the event at the timeout")
    func hostThatEndsADeadLinkGetsTheEventAtTheTimeout() {
        let link = LinkWorld()
        link.air.conditions.isDead = true
        link.world.send(Disconnect(connectionHandle: 0x0040), to: 0)
        link.run(.seconds(2))
        #expect(link.told(0).last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x16])
    }

    @Test("RSSI follows the distance", arguments: [(1.0, -40), (2, -46), (10, -60), (100, -80)] as [(Double, Int8)])
    func rssiFollowsTheDistance(metres: Double, level: Int8) {
        let link = LinkWorld()
        link.peripheral.position = Position(x: 0, y: metres)
        let answer = link.world.send(ReadRSSI(connectionHandle: 0x0040), to: 0)
        #expect(answer == [[0x04, 0x0E, 0x07, 0x01, 0x05, 0x14, 0x00, 0x40, 0x00, UInt8(bitPattern: level)]])
    }
}
