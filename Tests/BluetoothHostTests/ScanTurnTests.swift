import BluetoothTypes
import HCI
import SMP
import Testing

@testable import BluetoothHost

@Suite("Scans and connection attempts on a controller that does one of them at a time")
struct ScanTurnTests {
    private static let absent = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)

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

    /// A host on a controller that refuses to scan while it initiates, and the other way round.
    private func fixture() throws -> HostFixture {
        // Bits 22 and 23: passive and active scanning together with initiating.
        let fixture = HostFixture(profile: .init(states: 0x0000_03FF_FF3F_FFFF))
        try fixture.bringUp()
        var isScanning = false
        var isInitiating = false
        fixture.controller.override = { [controller = fixture.controller] command in
            if let enable = command.decode(LESetScanEnable.self) {
                guard !isInitiating || !enable.leScanEnable else {
                    return ScriptedController.status(command.opcode, .commandDisallowed)
                }
                isScanning = enable.leScanEnable
            }
            if command.opcode == LECreateConnection.opcode {
                guard !isScanning else { return ScriptedController.status(command.opcode, .commandDisallowed) }
                isInitiating = true
            }
            if command.opcode == LECreateConnectionCancel.opcode {
                isInitiating = false
                controller.emit(ScanTurnTests.end)
            }
            return nil
        }
        return fixture
    }

    private func connect(_ fixture: HostFixture, to peer: DeviceAddress) -> Recorder<Result<LinkIdentifier, any Error>>
    {
        let host = fixture.host
        return fixture.start {
            try await host.connect(toAnyOf: [peer], parameters: ConnectionParameters(), timeout: nil)
        }
    }

    private func startScan(_ fixture: HostFixture) throws -> (scan: ScanIdentifier, errors: Recorder<HostError>) {
        let (host, errors) = (fixture.host, Recorder<HostError>())
        let scan = try fixture.run {
            await host.startScan(ScanOptions()) { if case .ended(let error) = $0 { errors.append(error) } }
        }
        fixture.loop.run(for: .milliseconds(10))
        return (scan, errors)
    }

    /// How often scanning and initiating have begun.
    private func beginnings(_ fixture: HostFixture) -> (scans: Int, initiations: Int) {
        let commands = fixture.controller.commands
        return (
            commands.count { $0.decode(LESetScanEnable.self)?.leScanEnable == true },
            commands.count { $0.opcode == LECreateConnection.opcode }
        )
    }

    @Test("A scan stops before the controller initiates a connection")
    func scanStopsFirst() throws {
        let fixture = try fixture()
        let (_, errors) = try startScan(fixture)
        let attempt = connect(fixture, to: Self.absent)
        fixture.loop.run(for: .seconds(1))
        #expect(attempt.all.isEmpty && errors.all.isEmpty)
        #expect(fixture.controller.opcodes.suffix(2) == [LESetScanEnable.opcode, LECreateConnection.opcode])
    }

    @Test("A scan and an attempt to connect to an absent peer take turns, and the attempt is alone after the scan")
    func turns() throws {
        let fixture = try fixture()
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
    }

    @Test("A bonded peer that has to be found by scanning is looked for though another peer is absent")
    func soughtPeer() throws {
        let fixture = try fixture()
        let host = fixture.host
        var bond = Bond(identity: DeviceAddress(0x0000_0000_4711, isRandom: false))
        bond.identityResolvingKey = 5
        let record = BondRecord(bond: bond)
        try fixture.run { try await host.importBond(record) }
        let attempts = [connect(fixture, to: Self.absent), connect(fixture, to: bond.identity)]
        fixture.controller.forgetCommands()
        fixture.loop.run(for: .seconds(80))
        let (scans, initiations) = beginnings(fixture)
        #expect((9...11).contains(scans) && (9...11).contains(initiations))
        #expect(attempts.allSatisfy { $0.all.isEmpty })
    }
}
