import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Hosts that send random commands")
struct HostileHostTests {
    /// All commands for advertising, scanning, initiating and private addresses.
    static let opcodes: [UInt16] =
        Array(0x2005...0x2012) + Array(0x2027...0x202E) + Array(0x2035...0x2046) + [0x204E]

    /// The lengths of commands' parameters that do not vary.
    static let lengths: [UInt16: Int] = [
        0x2005: 6, 0x2006: 15, 0x2007: 0, 0x2008: 32, 0x2009: 32, 0x200A: 1, 0x200B: 7, 0x200C: 2, 0x200D: 25,
        0x200E: 0, 0x200F: 0, 0x2010: 0, 0x2011: 7, 0x2012: 7, 0x2027: 39, 0x2028: 7, 0x2029: 0, 0x202A: 0, 0x202B: 7,
        0x202C: 7, 0x202D: 1, 0x202E: 2, 0x2035: 7, 0x2036: 25, 0x2037: 4, 0x2038: 4, 0x2039: 6, 0x203A: 0, 0x203B: 0,
        0x203C: 1, 0x203D: 0, 0x203E: 7, 0x203F: 3, 0x2040: 2, 0x2041: 8, 0x2042: 6, 0x2043: 26, 0x2044: 14, 0x2045: 0,
        0x2046: 2, 0x204E: 8,
    ]

    @Test("Every command is answered once, with any parameters", arguments: 0..<8)
    func everyCommandIsAnsweredOnceWithAnyParameters(_ seed: UInt64) {
        let world = World(count: 3, seed: seed)
        var random = SeededGenerator(seed: seed)
        for _ in 0..<4000 {
            let index = Int(random.next(upTo: 2))
            let opcode = Self.opcodes[Int(random.next(upTo: UInt64(Self.opcodes.count - 1)))]
            var length = Self.lengths[opcode] ?? 0
            if random.happens(0.1) { length = Int(random.next(upTo: 255)) }
            // Small numbers are valid more often.
            let isTame = random.happens(0.7)
            let parameters = (0..<length).map { _ in
                UInt8(truncatingIfNeeded: isTame ? random.next(upTo: 4) : random.next())
            }
            let (low, high) = (UInt8(truncatingIfNeeded: opcode), UInt8(opcode >> 8))
            let packets = world.send([0x01, low, high, UInt8(length)] + parameters, to: index)
            let answers = packets.filter { packet in
                packet[1] == 0x0E && packet[4...5] == [low, high] || packet[1] == 0x0F && packet[5...6] == [low, high]
            }
            #expect(answers.count == 1)
            if random.happens(0.1) { world.run(.milliseconds(Int(random.next(upTo: 300)))) }
            if random.happens(0.01) { world.succeed(Reset(), at: index) }
        }
    }

    @Test("Valid commands in any order are all answered, and a reset ends all activities", arguments: 0..<8)
    func commandsInAnyOrderAreAnsweredAndAResetEndsAllActivities(_ seed: UInt64) {
        let extended: [any Command] = [
            ExtendedAdvertisingTests.parameters(), ExtendedAdvertisingTests.parameters(.connectable),
            ExtendedAdvertisingTests.parameters([.connectable, .scannable, .useLegacyPDUs]),
            ExtendedAdvertisingTests.parameters(.scannable) { $0.scanRequestNotificationEnable = true },
            ExtendedAdvertisingTests.parameters(.directed) { $0.peerAddress = World.address(1) },
            ExtendedAdvertisingTests.enable, ExtendedEnable(enable: false),
            ExtendedEnable(enable: true, sets: [.init(advertisingHandle: 3, duration: 20)]),
            ExtendedEnable(enable: true, sets: [.init(advertisingHandle: 3, maxExtendedAdvertisingEvents: 2)]),
            ExtendedAdvertisingTests.data(200)[0], ExtendedAdvertisingTests.responseData(200)[0],
            LERemoveAdvertisingSet(advertisingHandle: 3), LEClearAdvertisingSets(),
            LESetPeriodicAdvertisingParameters(
                advertisingHandle: 3,
                periodicAdvertisingIntervalMin: 20,
                periodicAdvertisingIntervalMax: 20
            ),
            LESetPeriodicAdvertisingEnable(enable: .enabled, advertisingHandle: 3),
            LESetPeriodicAdvertisingEnable(enable: [], advertisingHandle: 3),
            LESetExtendedScanParameters(le1M: .init(scanType: .active)),
            LESetExtendedScanEnable(enable: true, filterDuplicates: .enabled), LESetExtendedScanEnable(enable: false),
            LESetExtendedScanEnable(enable: true, filterDuplicates: .resetEachPeriod, duration: 10, period: 1),
            LEPeriodicAdvertisingCreateSync(advertisingSID: 5, advertiserAddress: World.address(0), syncTimeout: 30),
            LEPeriodicAdvertisingCreateSyncCancel(), LEPeriodicAdvertisingTerminateSync(syncHandle: 0),
            LEExtendedCreateConnection(peerAddress: World.address(0)), LECreateConnectionCancel(),
            LEExtendedCreateConnection(initiatorFilterPolicy: .filterAcceptList),
            LEAddDeviceToFilterAcceptList(address: PeerAddress(World.address(2))), LEClearFilterAcceptList(),
            LEAddDeviceToResolvingList(peerIdentityAddress: World.address(0), peerIRK: 5, localIRK: 6),
            LESetAddressResolutionEnable(addressResolutionEnable: true), LEClearResolvingList(),
        ]
        let world = World(count: 3, seed: seed)
        world.air.conditions = RadioConditions(loss: 0.1, latency: .milliseconds(2), jitter: .milliseconds(9))
        var random = SeededGenerator(seed: seed)
        for _ in 0..<3000 {
            let command = extended[Int(random.next(upTo: UInt64(extended.count - 1)))]
            let status = world.status(of: command, to: Int(random.next(upTo: 2)))
            #expect(status != nil && status != .unknownHCICommand)
            if random.happens(0.2) { world.run(.milliseconds(Int(random.next(upTo: 200)))) }
            world.forget()
        }
        for index in 0...2 { world.succeed(Reset(), at: index) }
        world.run(.seconds(60))
        #expect(world.air.listeners.isEmpty && world.air.nextDue == nil)
    }

    @Test func commandsThatStartALongPeriodLeaveOneActionHoweverOftenTheyAreRepeated() {
        let world = World(count: 1)
        world.succeed(
            ExtendedAdvertisingTests.parameters(),
            LESetPeriodicAdvertisingParameters(
                advertisingHandle: 3,
                periodicAdvertisingIntervalMin: 0xFFFF,
                periodicAdvertisingIntervalMax: 0xFFFF
            ),
            at: 0
        )
        let commands: [any Command] = [
            ExtendedEnable(enable: true, sets: [.init(advertisingHandle: 3, duration: 0xFFFF)]),
            LESetExtendedScanEnable(enable: true, filterDuplicates: .enabled, duration: 0xFFFF),
            LESetPeriodicAdvertisingEnable(enable: .enabled, advertisingHandle: 3),
            LESetPeriodicAdvertisingEnable(enable: [], advertisingHandle: 3),
        ]
        for _ in 0..<10_000 { for command in commands { world.send(command, to: 0) } }
        #expect(world.air.counts.actions <= commands.count)
        world.succeed(Reset(), at: 0)
        #expect(world.air.counts.actions == 0)
    }

    @Test func reportsOfPathLossLeaveOneActionHoweverOftenTheyAreEnabled() {
        let link = LinkWorld()
        let parameters = LESetPathLossReportingParameters(
            connectionHandle: LinkWorld.handle,
            highThreshold: 70,
            highHysteresis: 2,
            lowThreshold: 50,
            lowHysteresis: 2,
            minTimeSpent: 0xFFFF
        )
        let commands = [false, true].map {
            LESetPathLossReportingEnable(connectionHandle: LinkWorld.handle, enable: $0)
        }
        link.world.succeed(parameters, commands[1], at: 0)
        // The controllers exchange their powers.
        link.run(.seconds(1))
        let actions = link.air.counts.actions
        for _ in 0..<10_000 { for command in commands { link.world.send(command, to: 0) } }
        #expect(link.air.counts.actions <= actions + 1)
    }
}
