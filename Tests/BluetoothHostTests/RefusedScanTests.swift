import BLEHCI
import BluetoothHost
import Testing

@Suite("A controller that refuses to stop scanning")
struct RefusedScanTests {
    /// A host that scans, on a controller that refuses LE Set Scan Enable to stop.
    private func scanning(
        configure: (inout BluetoothHost.Configuration) -> Void = { _ in }
    ) throws -> (HostFixture, errors: Recorder<HostError>) {
        let fixture = HostFixture(configure: configure)
        try fixture.bringUp()
        fixture.controller.override = { command in
            command.decode(LESetScanEnable.self)?.leScanEnable == false
                ? ScriptedController.complete(LESetScanEnable.self, .failure(.commandDisallowed)) : nil
        }
        let (host, errors) = (fixture.host, Recorder<HostError>())
        _ = try fixture.run {
            await host.startScan(ScanOptions()) { if case .ended(let error) = $0 { errors.append(error) } }
        }
        fixture.loop.run(for: .milliseconds(10))
        fixture.controller.forgetCommands()
        return (fixture, errors)
    }

    @Test func changeOfAScanEndsAllScansWithTheErrorAndIsTriedOnce() throws {
        let (fixture, errors) = try scanning()
        let host = fixture.host
        _ = try fixture.run {
            await host.startScan(ScanOptions(interval: .milliseconds(30), window: .milliseconds(30))) {
                if case .ended(let error) = $0 { errors.append(error) }
            }
        }
        fixture.loop.run(for: .seconds(60))
        let error = HostError.command(.status(.commandDisallowed, LESetScanEnable.opcode))
        #expect(errors.all == [error, error])
        #expect(fixture.controller.opcodes == [LESetScanEnable.opcode])
        #expect(try fixture.run { await host.contradiction() } == nil)
        // A later scan works if the controller does again.
        fixture.controller.override = { _ in nil }
        _ = try fixture.run { await host.startScan(ScanOptions()) { _ in } }
        fixture.loop.run(for: .milliseconds(10))
        let enabled = fixture.controller.commands.compactMap { $0.decode(LESetScanEnable.self)?.leScanEnable }
        #expect(enabled == [false, false, true])
    }

    @Test func laterScanStartsIfTheControllerHasEndedTheScanItself() throws {
        let (fixture, errors) = try scanning()
        let host = fixture.host
        // This controller does not scan any more, so it accepts parameters.
        for interval in [Duration.milliseconds(30), .milliseconds(20)] {
            _ = try fixture.run {
                await host.startScan(ScanOptions(interval: interval, window: interval)) {
                    if case .ended(let error) = $0 { errors.append(error) }
                }
            }
            fixture.loop.run(for: .milliseconds(10))
        }
        #expect(errors.all.count == 2)
        let enabled = fixture.controller.commands.compactMap { $0.decode(LESetScanEnable.self)?.leScanEnable }
        #expect(enabled == [false, false, true])
        #expect(try fixture.run { await host.contradiction() } == nil)
    }

    @Test func changeOfAddressesDoesNotWaitForEver() throws {
        let (fixture, errors) = try scanning {
            $0.usesPrivateAddresses = true
            $0.privateAddressTimeout = .seconds(10)
        }
        fixture.loop.run(for: .seconds(11))
        #expect(fixture.controller.opcodes.prefix(2) == [LESetScanEnable.opcode, LESetRandomAddress.opcode])
        #expect(errors.all.count == 1)
        let host = fixture.host
        #expect(try fixture.run { await host.contradiction() } == nil)
    }
}
