import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Scans and connection attempts on a controller that does one of them at a time")
struct ScanTurnTests {
    private static let absent = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)

    /// A host on a controller that by default cannot scan while it initiates.
    private func fixture(
        states: UInt64 = 0x0000_03FF_FF3F_FFFF,
        acceptListSize: UInt8 = 8
    ) throws -> (HostFixture, RadioRules) {
        // Bits 22 and 23: passive and active scanning together with initiating.
        let fixture = HostFixture(profile: .init(acceptListSize: acceptListSize, states: states))
        let rules = RadioRules(fixture.controller)
        try fixture.bringUp()
        return (fixture, rules)
    }

    private func connect(_ fixture: HostFixture, to peer: DeviceAddress) -> Recorder<Result<LinkIdentifier, any Error>>
    {
        let host = fixture.host
        return fixture.start {
            try await host.connect(toAnyOf: [peer], parameters: ConnectionParameters(), timeout: nil)
        }
    }

    private func startScan(
        _ fixture: HostFixture,
        _ options: ScanOptions = ScanOptions()
    ) throws -> (scan: ScanIdentifier, errors: Recorder<HostError>) {
        let (host, errors) = (fixture.host, Recorder<HostError>())
        let scan = try fixture.run {
            await host.startScan(options) { if case .ended(let error) = $0 { errors.append(error) } }
        }
        fixture.loop.run(for: .milliseconds(10))
        return (scan, errors)
    }

    /// The numbers of times that scanning and initiating have started.
    private func beginnings(_ fixture: HostFixture) -> (scans: Int, initiations: Int) {
        let commands = fixture.controller.commands
        return (
            commands.count { $0.decode(LESetScanEnable.self)?.leScanEnable == true },
            commands.count { $0.opcode == LECreateConnection.opcode }
        )
    }

    @Test("A scan stops before the controller initiates a connection")
    func scanStopsFirst() throws {
        let (fixture, rules) = try fixture()
        let (_, errors) = try startScan(fixture)
        let attempt = connect(fixture, to: Self.absent)
        fixture.loop.run(for: .seconds(1))
        #expect(attempt.all.isEmpty && errors.all.isEmpty)
        #expect(fixture.controller.opcodes.suffix(2) == [LESetScanEnable.opcode, LECreateConnection.opcode])
        #expect(rules.refusals.isEmpty)
    }

    @Test("A scan and an attempt for an absent peer take turns until the scan ends")
    func scanAndAttemptTakeTurnsUntilTheScanEnds() throws {
        let (fixture, rules) = try fixture()
        let (scan, errors) = try startScan(fixture)
        let attempt = connect(fixture, to: Self.absent)
        fixture.controller.forgetCommands()
        // 20 turns of 4 s.
        fixture.loop.run(for: .seconds(80))
        let (scans, initiations) = beginnings(fixture)
        #expect(scans == 10 && initiations == 10)
        #expect(attempt.all.isEmpty && errors.all.isEmpty)

        let host = fixture.host
        try fixture.run { await host.stopScan(scan) }
        fixture.loop.run(for: .seconds(5))
        fixture.controller.forgetCommands()
        fixture.loop.run(for: .seconds(60))
        #expect(fixture.controller.commands.isEmpty)
        #expect(try fixture.run { await host.contradiction() } == nil)
        #expect(rules.refusals.isEmpty)
    }

    @Test("A bonded peer that must be found by scanning is found while another peer is absent")
    func peerToBeScannedForIsFound() throws {
        let (fixture, rules) = try fixture()
        let sought = try bond(fixture, 0)
        let attempts = [connect(fixture, to: Self.absent), connect(fixture, to: sought)]
        fixture.controller.forgetCommands()
        fixture.loop.run(for: .seconds(80))
        let (scans, initiations) = beginnings(fixture)
        #expect((9...11).contains(scans) && (9...11).contains(initiations))
        #expect(attempts.allSatisfy { $0.all.isEmpty })
        #expect(rules.refusals.isEmpty)
    }

    /// Bonds a peer whose private addresses the controller cannot resolve.
    private func bond(_ fixture: HostFixture, _ number: Int) throws -> DeviceAddress {
        let host = fixture.host
        var bond = Bond(identity: DeviceAddress(0x0000_0000_4700 + UInt64(number), isRandom: false))
        bond.identityResolvingKey = UInt128(5 + number)
        let record = BondRecord(bond: bond)
        try fixture.run { try await host.importBond(record) }
        return record.bond.identity
    }

    @Test("Peers that were found by scanning leave the other peers their turns")
    func peersFoundByScanningLeaveTheOthersTheirTurns() throws {
        let (fixture, rules) = try fixture(acceptListSize: 1)
        let sought = try (0..<5).map { try bond(fixture, $0) }
        // The peers are received, but connections to them fail.
        rules.advertisements = sought.map { ScriptedController.report(of: $0) }
        let (_, errors) = try startScan(fixture)
        let peers = [Self.absent, DeviceAddress(0xC0FF_EE00_0002, isRandom: true)] + sought
        let attempts = peers.map { connect(fixture, to: $0) }
        fixture.loop.run(for: .seconds(280))
        #expect(attempts.allSatisfy { $0.all.isEmpty } && errors.all.isEmpty)
        #expect(rules.refusals.isEmpty)
        // An equal share of half the time is 20 s.
        for peer in peers { #expect(rules.time(of: peer) >= .seconds(5), "\(peer)") }
    }

    @Test("Initiating waits until a change to active scanning is done, even if passive scanning may continue")
    func initiatingWaitsForAChangeToActiveScanning() throws {
        let (fixture, rules) = try fixture(states: 0x0000_03FF_FF7F_FFFF)
        let (_, passiveErrors) = try startScan(fixture, ScanOptions(isActive: false))
        rules.scanEnableTime = .milliseconds(5)
        let (host, errors) = (fixture.host, Recorder<HostError>())
        _ = try fixture.run {
            await host.startScan(ScanOptions(isActive: true)) {
                if case .ended(let error) = $0 { errors.append(error) }
            }
        }
        let attempt = connect(fixture, to: Self.absent)
        fixture.loop.run(for: .seconds(60))
        #expect(rules.refusals.isEmpty)
        #expect(attempt.all.isEmpty && passiveErrors.all.isEmpty && errors.all.isEmpty)
        let (scans, initiations) = beginnings(fixture)
        #expect(scans >= 7 && initiations >= 7)
    }

    // MARK: Silence

    @Test("Silent time is summed over a scan's turns: the scan is restarted, then the controller is reset")
    func silentTimeIsSummedOverTheTurnsOfAScan() throws {
        let (fixture, rules) = try fixture()
        _ = try startScan(fixture)
        _ = connect(fixture, to: Self.absent)
        fixture.loop.run(for: .seconds(170))
        #expect(fixture.events.all == ["poweredOn"])
        fixture.loop.run(for: .seconds(30))
        #expect(fixture.events.all == ["poweredOn", "scanRestarted"])
        fixture.loop.run(for: .seconds(140))
        #expect(fixture.events.all.count == 2)
        fixture.loop.run(for: .seconds(60))
        #expect(fixture.events.all.count == 4 && fixture.events.all[2].hasPrefix("resetting"))
        #expect(rules.refusals.isEmpty)
    }

    @Test("A report in any turn ends the silence")
    func reportInAnyTurnEndsTheSilence() throws {
        let (fixture, rules) = try fixture()
        _ = try startScan(fixture)
        _ = connect(fixture, to: Self.absent)
        for _ in 0..<4 {
            rules.advertisements = []
            fixture.loop.run(for: .seconds(150))
            rules.advertisements = [ScriptedController.report(of: Self.absent, .nonConnectableUndirected)]
            fixture.loop.run(for: .seconds(10))
        }
        #expect(fixture.events.all == ["poweredOn"])
    }

    @Test("The silence of scans that the app has stopped does not count")
    func silenceOfStoppedScansDoesNotCount() throws {
        let (fixture, _) = try fixture()
        let host = fixture.host
        for _ in 0..<4 {
            let (scan, _) = try startScan(fixture)
            fixture.loop.run(for: .seconds(60))
            try fixture.run { await host.stopScan(scan) }
            fixture.loop.run(for: .seconds(10))
        }
        #expect(fixture.events.all == ["poweredOn"])
    }
}
