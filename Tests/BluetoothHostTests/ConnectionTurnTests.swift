import BLEHCI
import BluetoothHost
import BluetoothTypes
import Testing

@Suite("Peers that do not all fit on the filter accept list")
struct ConnectionTurnTests {
    /// A host on a controller whose filter accept list has this size.
    private func fixture(acceptListSize: UInt8) throws -> (HostFixture, RadioRules) {
        let fixture = HostFixture(profile: .init(acceptListSize: acceptListSize))
        let rules = RadioRules(fixture.controller)
        try fixture.bringUp()
        return (fixture, rules)
    }

    private static func peer(_ number: Int) -> DeviceAddress {
        DeviceAddress(0xC0FF_EE00_0000 + UInt64(number), isRandom: true)
    }

    @discardableResult
    private func connect(
        _ fixture: HostFixture,
        to numbers: [Int],
        timeout: Duration? = nil
    ) -> Recorder<Result<LinkIdentifier, any Error>> {
        let (host, peers) = (fixture.host, Set(numbers.map(Self.peer)))
        return fixture.start {
            try await host.connect(toAnyOf: peers, parameters: ConnectionParameters(), timeout: timeout)
        }
    }

    /// The numbers of the peers of each initiation.
    private func initiations(_ rules: RadioRules) -> [Set<Int>] {
        rules.initiations.map { Set($0.peers.map { Int($0.value) - 0xC0FF_EE00_0000 }) }
    }

    private func timers(_ fixture: HostFixture) throws -> Int {
        let host = fixture.host
        #expect(try fixture.run { await host.contradiction() } == nil)
        return try fixture.run { await host.inspect().timers }
    }

    @Test("Each peer has the same number of turns", arguments: [UInt8(0), 1, 2, 3, 4])
    func eachPeerHasItsTurn(acceptListSize: UInt8) throws {
        let (fixture, rules) = try fixture(acceptListSize: acceptListSize)
        for number in 0..<5 { connect(fixture, to: [number]) }
        fixture.loop.run(for: .milliseconds(100))
        let before = rules.initiations.count
        // 60 turns of 4 s.
        fixture.loop.run(for: .seconds(240))
        let initiations = initiations(rules).dropFirst(before)
        let size = max(1, Int(acceptListSize))
        #expect(initiations.count == 60)
        #expect(initiations.allSatisfy { $0.count == size })
        for number in 0..<5 { #expect(initiations.count { $0.contains(number) } == 60 * size / 5) }
        #expect(rules.refusals.isEmpty)
    }

    @Test func peerThatJoinsATurnLateHasTheNextTurnToo() throws {
        let (fixture, rules) = try fixture(acceptListSize: 2)
        connect(fixture, to: [0])
        connect(fixture, to: [1], timeout: .milliseconds(3_500))
        connect(fixture, to: [2])
        connect(fixture, to: [3])
        fixture.loop.run(for: .seconds(9))
        #expect(initiations(rules).suffix(4) == [[0, 1], [0, 2], [2, 3], [0, 2]])
        #expect(rules.refusals.isEmpty)
    }

    @Test("The addresses of one attempt take turns like those of several attempts")
    func addressesOfOneAttemptTakeTurns() throws {
        let (fixture, rules) = try fixture(acceptListSize: 2)
        connect(fixture, to: [0, 1, 2, 3, 4])
        fixture.loop.run(for: .seconds(9))
        #expect(initiations(rules) == [[0, 1], [2, 3], [4, 0]])
        #expect(rules.refusals.isEmpty)
    }

    @Test("A ninth peer is connected while eight others are absent, and then the turns end")
    func ninthPeerIsConnectedWhileEightAreAbsent() throws {
        let (fixture, rules) = try fixture(acceptListSize: 8)
        for number in 0..<8 { connect(fixture, to: [number]) }
        fixture.loop.run(for: .milliseconds(100))
        let before = try timers(fixture)
        let ninth = connect(fixture, to: [8])
        #expect(try timers(fixture) == before + 1)
        let isListed = { initiations(rules).last?.contains(8) == true }
        #expect(fixture.loop.run(limit: .seconds(10), until: isListed))
        rules.connect(fixture, 0x0041, to: Self.peer(8))
        #expect(throws: Never.self) { try ninth.all.first?.get() }
        #expect(ninth.all.count == 1)
        fixture.loop.run(for: .milliseconds(1))
        #expect(initiations(rules).last == Set(0..<8))
        fixture.controller.forgetCommands()
        fixture.loop.run(for: .seconds(20))
        #expect(fixture.controller.commands.isEmpty, "what fits is left alone")
        #expect(rules.refusals.isEmpty)
    }

    @Test("A link that was initiated with the parameters of another attempt gets those of its own")
    func linkGetsTheParametersOfItsOwnAttempt() throws {
        let (fixture, rules) = try fixture(acceptListSize: 8)
        let host = fixture.host
        for (number, milliseconds) in [(0, 30), (1, 100)] {
            let peers: Set = [Self.peer(number)]
            let interval = Duration.milliseconds(milliseconds)
            let parameters = ConnectionParameters(interval: interval...interval)
            _ = fixture.start { try await host.connect(toAnyOf: peers, parameters: parameters, timeout: nil) }
        }
        fixture.loop.run(for: .milliseconds(100))
        fixture.controller.forgetCommands()
        // The controller has chosen the interval of the oldest attempt, 30 ms.
        rules.connect(fixture, 0x0041, to: Self.peer(1))
        let updates = fixture.controller.commands.compactMap { $0.decode(LEConnectionUpdate.self) }
        #expect(updates.map(\.connectionIntervalMin) == [80] && updates.map(\.connectionIntervalMax) == [80])
        fixture.loop.run(for: .milliseconds(10))
        fixture.controller.forgetCommands()
        rules.connect(fixture, 0x0042, to: Self.peer(0))
        #expect(!fixture.controller.opcodes.contains(LEConnectionUpdate.opcode), "the link has these parameters")
        #expect(rules.refusals.isEmpty)
    }

    @Test("Many short attempts do not take turns from earlier attempts")
    func shortAttemptsDoNotTakeTurnsFromEarlierAttempts() throws {
        let (fixture, rules) = try fixture(acceptListSize: 1)
        connect(fixture, to: [0])
        connect(fixture, to: [1])
        for number in 2..<62 {
            connect(fixture, to: [number], timeout: .milliseconds(2_500))
            fixture.loop.run(for: .milliseconds(999))
        }
        let initiations = initiations(rules)
        for number in 0..<2 { #expect(initiations.count { $0.contains(number) } >= 5) }
        #expect(rules.refusals.isEmpty)
    }

    @Test("Peers also take turns after a recovery, and the turns end with the attempts")
    func peersTakeTurnsAfterARecovery() throws {
        let (fixture, rules) = try fixture(acceptListSize: 1)
        let attempts = (0..<2).map { connect(fixture, to: [$0], timeout: .seconds(60)) }
        fixture.controller.emit([0x04, 0x10, 0x01, 0x42])
        fixture.loop.run(for: .seconds(20))
        #expect(fixture.events.all.last == "poweredOn")
        #expect(Set(initiations(rules).suffix(2)) == [[0], [1]])
        fixture.loop.run(for: .seconds(60))
        for attempt in attempts { #expect(throws: HostError.timedOut) { try attempt.all.first?.get() } }
        fixture.controller.forgetCommands()
        fixture.loop.run(for: .seconds(60))
        #expect(fixture.controller.commands.isEmpty)
        let host = fixture.host
        #expect(try fixture.run { await host.inspect().timers } == 0)
    }

    @Test("The timer of a cancellation that has ended does not end a later one")
    func timerOfAnEndedCancellationDoesNotEndALaterOne() throws {
        let (fixture, rules) = try fixture(acceptListSize: 1)
        rules.cancellationTime = .milliseconds(500)
        let attempts = (0..<2).map { connect(fixture, to: [$0]) }
        // Its turn begins at 8.5 s. The timer of the cancellation at 8 s would fire at 10 s.
        let short = connect(fixture, to: [2], timeout: .milliseconds(9_800))
        fixture.loop.run(for: .milliseconds(9_700))
        #expect(initiations(rules).last == [2])
        fixture.loop.run(for: .seconds(20))
        #expect(throws: HostError.timedOut) { try short.all.first?.get() }
        #expect(rules.refusals.isEmpty)
        #expect(attempts.allSatisfy { $0.all.isEmpty })
    }

    @Test("The private address changes after a cancelled initiation has ended")
    func addressChangesAfterACancelledInitiationHasEnded() throws {
        let fixture = HostFixture {
            $0.usesPrivateAddresses = true
            $0.privateAddressTimeout = .seconds(10)
        }
        let rules = RadioRules(fixture.controller)
        rules.cancellationTime = .milliseconds(500)
        try fixture.bringUp()
        // The address is due at 10 s, between the cancellation and its end.
        connect(fixture, to: [0], timeout: .milliseconds(9_900))
        fixture.loop.run(for: .milliseconds(9_850))
        fixture.controller.forgetCommands()
        fixture.loop.run(for: .seconds(1))
        #expect(fixture.controller.opcodes == [LECreateConnectionCancel.opcode, LESetRandomAddress.opcode])
        #expect(rules.refusals.isEmpty)
    }

    @Test("An initiation continues after the late end of an earlier one")
    func initiationContinuesAfterTheLateEndOfAnEarlierOne() throws {
        let (fixture, rules) = try fixture(acceptListSize: 8)
        let attempt = connect(fixture, to: [0])
        fixture.controller.emit(RadioRules.end)
        fixture.loop.run(for: .seconds(10))
        #expect(rules.refusals.isEmpty)
        #expect(attempt.all.isEmpty)
        #expect(rules.initiations.last?.end == nil)
    }

    @Test("Attempts that all begin and end together reach every peer", arguments: [0, 1, 700])
    func attemptsThatBeginAndEndTogetherReachEveryPeer(millisecondsApart: Int) throws {
        let (fixture, rules) = try fixture(acceptListSize: 1)
        let host = fixture.host
        let loops = fixture.start {
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<10 {
                    group.addTask {
                        try? await host.sleep(for: .milliseconds(number * millisecondsApart))
                        for _ in 0..<8 {
                            _ = try? await host.connect(
                                toAnyOf: [ConnectionTurnTests.peer(number)],
                                parameters: ConnectionParameters(),
                                timeout: .seconds(30)
                            )
                        }
                    }
                }
            }
        }
        fixture.loop.run(for: .seconds(260))
        #expect(loops.all.count == 1)
        #expect(rules.refusals.isEmpty)
        // An equal share is 24 s.
        for number in 0..<10 { #expect(rules.time(of: Self.peer(number)) >= .seconds(12), "peer \(number)") }
    }

    @Test("Repeated attempts that are shorter than a turn leave other peers their turns")
    func repeatedShortAttemptsLeaveOtherPeersTheirTurns() throws {
        let (fixture, rules) = try fixture(acceptListSize: 1)
        let host = fixture.host
        connect(fixture, to: [9])
        let loops = fixture.start {
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<4 {
                    group.addTask {
                        for _ in 0..<120 {
                            _ = try? await host.connect(
                                toAnyOf: [ConnectionTurnTests.peer(number)],
                                parameters: ConnectionParameters(),
                                timeout: .milliseconds(1_900 + 30 * number)
                            )
                        }
                    }
                }
            }
        }
        fixture.loop.run(for: .seconds(240))
        #expect(loops.all.count == 1)
        #expect(rules.refusals.isEmpty)
        for number in [0, 1, 2, 3, 9] {
            #expect(rules.time(of: Self.peer(number)) >= .seconds(12), "peer \(number)")
        }
    }
}
