import BluetoothHost
import BluetoothTypes
import HCI
import Testing

@Suite("Peers that do not all fit on the filter accept list")
struct ConnectionTurnTests {
    private static let end: [UInt8] = ScriptedController.packet {
        LEConnectionComplete(
            status: .unknownConnectionIdentifier,
            connectionHandle: 0,
            role: .central,
            peerAddress: PeerAddress(type: .public, value: 0),
            connectionInterval: 0,
            peripheralLatency: 0,
            supervisionTimeout: 0
        ).encodePacket(into: &$0)
    }

    /// A host on a controller that reports the end of a cancelled initiation.
    private func fixture(acceptListSize: UInt8) throws -> HostFixture {
        let fixture = HostFixture(profile: .init(acceptListSize: acceptListSize))
        try fixture.bringUp()
        fixture.controller.override = { [controller = fixture.controller] command in
            if command.opcode == LECreateConnectionCancel.opcode { controller.emit(ConnectionTurnTests.end) }
            return nil
        }
        return fixture
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
    private func initiations(_ fixture: HostFixture) -> [Set<Int>] {
        var initiations: [Set<Int>] = []
        var list: Set<Int> = []
        func number(_ address: PeerAddress) -> Int { Int(address.value) - 0xC0FF_EE00_0000 }
        for command in fixture.controller.commands {
            if command.opcode == LEClearFilterAcceptList.opcode { list = [] }
            if let added = command.decode(LEAddDeviceToFilterAcceptList.self) { list.insert(number(added.address)) }
            if let initiation = command.decode(LECreateConnection.self) {
                let usesList = initiation.initiatorFilterPolicy == .filterAcceptList
                initiations.append(usesList ? list : [number(initiation.peerAddress)])
            }
        }
        return initiations
    }

    private func timers(_ fixture: HostFixture) throws -> Int {
        let host = fixture.host
        #expect(try fixture.run { await host.contradiction() } == nil)
        return try fixture.run { await host.inspect().timers }
    }

    @Test("Each peer has its turn, and all have as many", arguments: [UInt8(0), 1, 2, 3, 4])
    func eachPeerHasItsTurn(acceptListSize: UInt8) throws {
        let fixture = try fixture(acceptListSize: acceptListSize)
        for number in 0..<5 { connect(fixture, to: [number]) }
        fixture.controller.forgetCommands()
        // 60 turns of 4 s.
        fixture.loop.run(for: .seconds(240))
        let initiations = initiations(fixture)
        let size = max(1, Int(acceptListSize))
        #expect(initiations.count == 60)
        #expect(initiations.allSatisfy { $0.count == size })
        for number in 0..<5 { #expect(initiations.count { $0.contains(number) } == 60 * size / 5) }
    }

    @Test("The addresses of one attempt take turns as those of several do")
    func oneAttempt() throws {
        let fixture = try fixture(acceptListSize: 2)
        connect(fixture, to: [0, 1, 2, 3, 4])
        fixture.loop.run(for: .seconds(9))
        #expect(initiations(fixture) == [[0, 1], [2, 3], [4, 0]])
    }

    @Test("A ninth peer is connected to though eight others are absent, and then the turns end")
    func ninthPeer() throws {
        let fixture = try fixture(acceptListSize: 8)
        for number in 0..<8 { connect(fixture, to: [number]) }
        let before = try timers(fixture)
        let ninth = connect(fixture, to: [8])
        #expect(try timers(fixture) == before + 1)
        let isListed = { initiations(fixture).last?.contains(8) == true }
        #expect(fixture.loop.run(limit: .seconds(10), until: isListed))
        fixture.connect(0x0041, role: .central, peer: Self.peer(8))
        #expect(throws: Never.self) { try ninth.all.first?.get() }
        #expect(ninth.all.count == 1)
        fixture.loop.run(for: .milliseconds(1))
        #expect(initiations(fixture).last == Set(0..<8))
        fixture.controller.forgetCommands()
        fixture.loop.run(for: .seconds(20))
        #expect(initiations(fixture).isEmpty, "what fits is left alone")
        #expect(!fixture.controller.opcodes.contains(LECreateConnectionCancel.opcode))
    }

    @Test("Many short attempts do not keep earlier ones from their turn")
    func shortAttempts() throws {
        let fixture = try fixture(acceptListSize: 1)
        connect(fixture, to: [0])
        connect(fixture, to: [1])
        fixture.controller.forgetCommands()
        for number in 2..<62 {
            connect(fixture, to: [number], timeout: .milliseconds(2_500))
            fixture.loop.run(for: .milliseconds(999))
        }
        let initiations = initiations(fixture)
        for number in 0..<2 { #expect(initiations.count { $0.contains(number) } >= 4) }
    }

    @Test("Peers take turns after a recovery as well, and the turns end with the attempts")
    func recovery() throws {
        let fixture = try fixture(acceptListSize: 1)
        let attempts = (0..<2).map { connect(fixture, to: [$0], timeout: .seconds(60)) }
        fixture.controller.emit([0x04, 0x10, 0x01, 0x42])
        fixture.loop.run(for: .seconds(20))
        #expect(fixture.events.all.last == "poweredOn")
        #expect(Set(initiations(fixture).suffix(2)) == [[0], [1]])
        fixture.loop.run(for: .seconds(60))
        for attempt in attempts { #expect(throws: HostError.timedOut) { try attempt.all.first?.get() } }
        fixture.controller.forgetCommands()
        fixture.loop.run(for: .seconds(60))
        #expect(fixture.controller.commands.isEmpty)
        let host = fixture.host
        #expect(try fixture.run { await host.inspect().timers } == 0)
    }
}
