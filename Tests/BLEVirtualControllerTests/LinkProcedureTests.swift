import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Procedures of software controllers")
struct LinkProcedureTests {
    private let update = LEConnectionUpdate(
        connectionHandle: 0x0040,
        connectionIntervalMin: 40,
        connectionIntervalMax: 80,
        maxLatency: 2,
        supervisionTimeout: 500
    )
    private let updated: [UInt8] = [0x04, 0x3E, 0x0A, 0x03, 0x00, 0x40, 0x00, 80, 0, 2, 0, 0xF4, 0x01]

    // MARK: Connection parameters

    @Test("The central changes the connection parameters six events later; both hosts get the event")
    func updateByTheCentralIsReportedToBothHosts() {
        let link = LinkWorld()
        link.world.send(update, to: 0)
        link.run(.milliseconds(100))
        #expect(link.told(1).isEmpty)
        link.run(.seconds(1))
        #expect(link.told(0).last == updated && link.told(1).last == updated)
    }

    @Test("The peripheral requests, the central's host agrees, and both get the event")
    func updateOfThePeripheralIsReportedOnceTheCentralAgrees() {
        let link = LinkWorld()
        link.world.send(update, to: 1)
        link.run(.milliseconds(200))
        #expect(link.told(0) == [[0x04, 0x3E, 0x0B, 0x06, 0x40, 0x00, 40, 0, 80, 0, 2, 0, 0xF4, 0x01]])
        let reply = LERemoteConnectionParameterRequestReply(
            connectionHandle: 0x0040,
            intervalMin: 40,
            intervalMax: 80,
            maxLatency: 2,
            timeout: 500
        )
        #expect(link.world.send(reply, to: 0) == [[0x04, 0x0E, 0x06, 0x01, 0x20, 0x20, 0x00, 0x40, 0x00]])
        link.run(.seconds(2))
        #expect(link.told(0).last == updated && link.told(1).last == updated)
        // It was answered once.
        #expect(link.world.send(reply, to: 0) == [[0x04, 0x0E, 0x06, 0x01, 0x20, 0x20, 0x0C, 0x40, 0x00]])
    }

    @Test("The peripheral gets the reason why its parameters are refused")
    func peripheralGetsTheReasonOfARefusedUpdate() {
        let link = LinkWorld()
        link.world.send(update, to: 1)
        link.run(.milliseconds(200))
        link.world.send(
            LERemoteConnectionParameterRequestNegativeReply(
                connectionHandle: 0x0040,
                reason: .unacceptableConnectionParameters
            ),
            to: 0
        )
        link.run(.seconds(1))
        #expect(link.told(1).last == [0x04, 0x3E, 0x0A, 0x03, 0x3B, 0x40, 0x00, 24, 0, 0, 0, 100, 0])
    }

    @Test("A central whose host masks the request refuses it")
    func maskedRequestIsRefused() {
        let link = LinkWorld()
        link.world.send(LESetEventMask(leEventMask: .default), to: 0)
        link.world.send(update, to: 1)
        link.run(.seconds(1))
        #expect(link.told(1).last?.prefix(5) == [0x04, 0x3E, 0x0A, 0x03, 0x1A])
    }

    @Test(
        "Parameters out of range are invalid, and a handle without link is unknown",
        arguments: [
            (5, 80, 0, 500, 0x40, 0x12), (81, 80, 0, 500, 0x40, 0x12), (40, 0x0C81, 0, 3200, 0x40, 0x12),
            (40, 80, 500, 500, 0x40, 0x12), (40, 80, 0, 9, 0x40, 0x12), (40, 80, 9, 200, 0x40, 0x12),
            (40, 80, 0, 500, 0x41, 0x02),
        ] as [(UInt16, UInt16, UInt16, UInt16, UInt16, UInt8)]
    )
    func parametersOutOfRangeAndUnknownHandlesAreRefused(
        min: UInt16,
        max: UInt16,
        latency: UInt16,
        timeout: UInt16,
        handle: UInt16,
        status: UInt8
    ) {
        let link = LinkWorld()
        let command = LEConnectionUpdate(
            connectionHandle: ConnectionHandle(handle),
            connectionIntervalMin: min,
            connectionIntervalMax: max,
            maxLatency: latency,
            supervisionTimeout: timeout
        )
        #expect(link.world.send(command, to: 0) == [[0x04, 0x0F, 0x04, status, 0x01, 0x13, 0x20]])
    }

    @Test("A change whose instant has passed when it arrives ends the link")
    func updateWhoseInstantHasPassedEndsTheLink() {
        let link = LinkWorld(interval: 11, supervisionTimeout: 1000)
        link.world.send(update, to: 0)
        // The indication is delayed on the air until after its instant.
        link.air.conditions.latency = .milliseconds(200)
        link.run(.seconds(2))
        #expect(link.told(1).last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x28])
    }

    // MARK: What the sides know of each other

    @Test("Features and version are exchanged once and reported each time")
    func featuresAndVersionAreReportedEachTime() {
        let link = LinkWorld()
        for _ in 0..<2 {
            link.world.send(LEReadRemoteFeatures(connectionHandle: 0x0040), to: 0)
            link.world.send(ReadRemoteVersionInformation(connectionHandle: 0x0040), to: 1)
            link.run(.seconds(1))
            let features = LEFeatures.all.rawValue
            let octets = (0..<8).map { UInt8(truncatingIfNeeded: features >> UInt64(8 * $0)) }
            #expect(link.told(0).last == [0x04, 0x3E, 0x0C, 0x04, 0x00, 0x40, 0x00] + octets)
            #expect(link.told(1).last == [0x04, 0x0C, 0x08, 0x00, 0x40, 0x00, 0x0E, 0xFF, 0xFF, 0x00, 0x00])
        }
    }

    @Test("The central's channel map applies on both sides a few events later")
    func channelMapOfTheCentralAppliesOnBothSides() {
        let link = LinkWorld()
        link.world.send(LESetHostChannelClassification(channelMap: ChannelMap(rawValue: 0x1F00)), to: 0)
        link.run(.seconds(1))
        let expected: [UInt8] = [0x04, 0x0E, 0x0B, 0x01, 0x15, 0x20, 0x00, 0x40, 0x00, 0x00, 0x1F, 0, 0, 0]
        #expect(link.world.send(LEReadChannelMap(connectionHandle: 0x0040), to: 1) == [expected])
        #expect(
            link.world.send(LESetHostChannelClassification(channelMap: ChannelMap(rawValue: 1)), to: 0)
                == [[0x04, 0x0E, 0x04, 0x01, 0x14, 0x20, 0x12]]
        )
    }

    @Test("The classification of the central's host applies to later links, and that of the peripheral's does not")
    func channelClassificationOfTheCentralAppliesToLaterLinks() {
        let link = LinkWorld(prepare: { world in
            world.succeed(LESetHostChannelClassification(channelMap: ChannelMap(rawValue: 0x1F00)), at: 0)
            world.succeed(LESetHostChannelClassification(channelMap: ChannelMap(rawValue: 0xFF)), at: 1)
        })
        let expected: [UInt8] = [0x04, 0x0E, 0x0B, 0x01, 0x15, 0x20, 0x00, 0x40, 0x00, 0x00, 0x1F, 0, 0, 0]
        for index in 0...1 {
            #expect(link.world.send(LEReadChannelMap(connectionHandle: 0x0040), to: index) == [expected])
        }
    }

    // MARK: Waiting procedures

    @Test("64 procedures wait for the active one; a command that begins another one is refused as busy")
    func commandBeyondTheWaitingProceduresIsRefusedAsBusy() {
        let link = LinkWorld()
        let read = LEReadRemoteFeatures(connectionHandle: 0x0040)
        for _ in 0...64 { link.world.succeed(read, at: 0) }
        let length = LESetDataLength(connectionHandle: 0x0040, txOctets: 100, txTime: 2120)
        let map = LESetHostChannelClassification(channelMap: ChannelMap(rawValue: 0x1F00))
        let commands: [any Command] = [read, length, map, update, setPHY(.le2M, .le2M)]
        for command in commands {
            #expect(link.world.status(of: command, to: 0) == .controllerBusy, "\(command)")
        }
        link.run(.seconds(1))
        #expect(link.world.events(LEReadRemoteFeaturesComplete.subeventCode, at: 0).count == 65)
        link.world.succeed(length, at: 0)
    }

    @Test("Procedures that end at once need neither stack nor timers, however many wait")
    func proceduresThatEndAtOnceNeedNeitherStackNorTimers() throws {
        let link = LinkWorld()
        link.world.succeed(LEReadRemoteFeatures(connectionHandle: 0x0040), at: 0)
        link.run(.seconds(60))
        let end = try #require(link.central.end(LinkWorld.handle))
        let actions = link.air.counts.actions
        end.begin(.ping)
        for _ in 0..<20_000 { end.begin(.features) }
        link.run(.seconds(1))
        #expect(link.world.events(LEReadRemoteFeaturesComplete.subeventCode, at: 0).count == 20_001)
        // Only the ping has a timer.
        #expect(link.air.counts.actions == actions + 1)
    }

    // MARK: PHYs

    private func setPHY(_ transmit: PHYSet, _ receive: PHYSet) -> LESetPHY {
        LESetPHY(
            connectionHandle: 0x0040,
            allPHYs: [],
            txPHYs: transmit,
            rxPHYs: receive,
            phyOptions: .noPreference
        )
    }

    @Test("Either side changes PHYs, separately in each direction; both hosts get the event", arguments: 0...1)
    func eitherSideChangesThePHYsOfEachDirection(index: Int) {
        let link = LinkWorld()
        link.world.send(setPHY(.le2M, .leCoded), to: index)
        link.run(.seconds(1))
        #expect(link.told(index).last == [0x04, 0x3E, 0x06, 0x0C, 0x00, 0x40, 0x00, 2, 3])
        #expect(link.told(1 - index).last == [0x04, 0x3E, 0x06, 0x0C, 0x00, 0x40, 0x00, 3, 2])
        let read = link.world.send(LEReadPHY(connectionHandle: 0x0040), to: index)
        #expect(read == [[0x04, 0x0E, 0x08, 0x01, 0x30, 0x20, 0x00, 0x40, 0x00, 2, 3]])
    }

    @Test("A request for the current PHYs is reported to the requesting host only")
    func requestForTheCurrentPHYsIsReportedToItsHostOnly() {
        let link = LinkWorld()
        link.world.send(setPHY(.le1M, .le1M), to: 1)
        link.run(.seconds(1))
        #expect(link.told(1).last == [0x04, 0x3E, 0x06, 0x0C, 0x00, 0x40, 0x00, 1, 1] && link.told(0).isEmpty)
    }

    @Test("A peer's default PHYs limit the agreement, and invalid PHYs are refused")
    func defaultPHYsOfThePeerLimitTheAgreement() {
        let link = LinkWorld(prepare: { world in
            world.succeed(LESetDefaultPHY(allPHYs: [], txPHYs: .le1M, rxPHYs: .le1M), at: 1)
        })
        link.world.send(setPHY([.le1M, .le2M], [.le1M, .le2M]), to: 0)
        link.run(.seconds(1))
        #expect(link.told(0).last == [0x04, 0x3E, 0x06, 0x0C, 0x00, 0x40, 0x00, 1, 1])
        let none = link.world.send(setPHY(PHYSet(rawValue: 8), .le1M), to: 0)
        #expect(none == [[0x04, 0x0F, 0x04, 0x11, 0x01, 0x32, 0x20]])
    }

    @Test func defaultPHYsApplyToLaterLinksOnly() {
        let link = LinkWorld()
        link.world.succeed(LESetDefaultPHY(allPHYs: [], txPHYs: .le1M, rxPHYs: .le1M), at: 1)
        link.world.succeed(setPHY(.le2M, .le2M), at: 0)
        link.run(.seconds(1))
        for index in 0...1 {
            #expect(link.told(index).last == [0x04, 0x3E, 0x06, 0x0C, 0x00, 0x40, 0x00, 2, 2])
        }
    }

    @Test("The PHYs that a host has set for a link limit later agreements", arguments: 0...1)
    func physOfTheLinkLimitLaterAgreements(index: Int) {
        let link = LinkWorld()
        link.world.succeed(setPHY(.le1M, .le1M), at: index)
        link.run(.seconds(1))
        link.world.succeed(setPHY([.le1M, .le2M], [.le1M, .le2M]), at: 1 - index)
        link.run(.seconds(1))
        #expect(link.told(1 - index).last == [0x04, 0x3E, 0x06, 0x0C, 0x00, 0x40, 0x00, 1, 1])
    }

    // MARK: Encryption

    private let key: UInt128 = 0x4C68_3841_39F5_74D8_36BC_F34E_9DFB_01BF
    private let encrypted: [UInt8] = [0x04, 0x08, 0x04, 0x00, 0x40, 0x00, 0x01]

    private func encrypt(_ link: LinkWorld, peripheralKey: UInt128?) {
        link.world.send(
            LEEnableEncryption(
                connectionHandle: 0x0040,
                randomNumber: 0x1122_3344_5566_7788,
                encryptedDiversifier: 0xABCD,
                longTermKey: key
            ),
            to: 0
        )
        link.run(.milliseconds(200))
        let request: [UInt8] = [
            0x04, 0x3E, 0x0D, 0x05, 0x40, 0x00, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xCD, 0xAB,
        ]
        #expect(link.told(1).last == request)
        if let peripheralKey {
            let answer = link.world.send(
                LELongTermKeyRequestReply(connectionHandle: 0x0040, longTermKey: peripheralKey),
                to: 1
            )
            #expect(answer == [[0x04, 0x0E, 0x06, 0x01, 0x1A, 0x20, 0x00, 0x40, 0x00]])
        } else {
            link.world.send(LELongTermKeyRequestNegativeReply(connectionHandle: 0x0040), to: 1)
        }
        link.run(.milliseconds(400))
    }

    @Test("With the same key both sides encrypt; data waits for it and then arrives")
    func bothSidesEncryptWithTheSameKeyAndDataWaits() {
        let link = LinkWorld()
        link.send(.init(1, count: 50), from: 1)
        encrypt(link, peripheralKey: key)
        #expect(link.told(0).contains(encrypted) && link.told(1).last == encrypted)
        link.send(.init(2, count: 50), from: 0)
        link.send(.init(3, count: 50), from: 1)
        link.run(.seconds(1))
        #expect(link.received(1).last == LinkWorld.Data(2, count: 50).bytes)
        #expect(link.received(0) == [LinkWorld.Data(1, count: 50).bytes, LinkWorld.Data(3, count: 50).bytes])
        let key = link.central.end(LinkWorld.handle)?.encryption.transmitKey
        #expect(key != nil && key == link.peripheral.end(LinkWorld.handle)?.encryption.receiveKey)
    }

    @Test("An encrypted link is paused and refreshed with another session key")
    func encryptedLinkIsRefreshedWithAnotherSessionKey() {
        let link = LinkWorld()
        encrypt(link, peripheralKey: key)
        let first = link.central.end(LinkWorld.handle)?.encryption.transmitKey
        encrypt(link, peripheralKey: key)
        let refreshed: [UInt8] = [0x04, 0x30, 0x03, 0x00, 0x40, 0x00]
        #expect(link.told(0).last == refreshed && link.told(1).last == refreshed)
        #expect(first != nil && first != link.central.end(LinkWorld.handle)?.encryption.transmitKey)
        link.send(.init(9, count: 9), from: 1)
        link.run(.seconds(1))
        #expect(link.received(0).last == LinkWorld.Data(9, count: 9).bytes)
    }

    @Test("A wrong key causes a MIC failure, which ends the link; the other side receives nothing more")
    func wrongKeyCausesAMICFailureThatEndsTheLink() {
        let link = LinkWorld()
        encrypt(link, peripheralKey: key ^ 1)
        #expect(link.told(1).last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x3D])
        link.run(.seconds(1))
        #expect(link.told(0).last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x08])
        #expect(!link.told(0).contains(encrypted))
    }

    @Test("Without a key the link is unchanged, and the central gets the reason")
    func linkIsUnchangedWithoutAKey() {
        let link = LinkWorld()
        encrypt(link, peripheralKey: nil)
        #expect(link.told(0).last == [0x04, 0x08, 0x04, 0x06, 0x40, 0x00, 0x00])
        link.send(.init(5, count: 5), from: 0)
        link.run(.seconds(1))
        #expect(link.received(1) == [LinkWorld.Data(5, count: 5).bytes])
    }

    @Test("Without a key for a refresh the link ends")
    func linkEndsWithoutAKeyForARefresh() {
        let link = LinkWorld()
        encrypt(link, peripheralKey: key)
        encrypt(link, peripheralKey: nil)
        #expect(link.told(0).last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x06])
        #expect(link.told(1).last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x16])
    }

    @Test("A host that never answers the key request loses the link after 40 seconds")
    func unansweredKeyRequestEndsTheLinkAfter40Seconds() {
        let link = LinkWorld()
        link.world.send(
            LEEnableEncryption(connectionHandle: 0x0040, randomNumber: 0, encryptedDiversifier: 0, longTermKey: key),
            to: 0
        )
        link.run(.milliseconds(39_900))
        #expect(link.told(0).count == 1)
        link.run(.milliseconds(200))
        #expect(link.told(0).last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x22])
    }

    @Test("Only the central starts encryption, once at a time, and keys are given on request only")
    func onlyTheCentralStartsEncryptionAndKeysNeedARequest() {
        let link = LinkWorld()
        let enable = LEEnableEncryption(
            connectionHandle: 0x0040,
            randomNumber: 0,
            encryptedDiversifier: 0,
            longTermKey: key
        )
        #expect(link.world.send(enable, to: 1) == [[0x04, 0x0F, 0x04, 0x0C, 0x01, 0x19, 0x20]])
        let reply = LELongTermKeyRequestReply(connectionHandle: 0x0040, longTermKey: key)
        #expect(link.world.send(reply, to: 1) == [[0x04, 0x0E, 0x06, 0x01, 0x1A, 0x20, 0x0C, 0x40, 0x00]])
        #expect(link.world.send(enable, to: 0) == [[0x04, 0x0F, 0x04, 0x00, 0x01, 0x19, 0x20]])
        #expect(link.world.send(enable, to: 0) == [[0x04, 0x0F, 0x04, 0x0C, 0x01, 0x19, 0x20]])
    }
}
