import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// A controller that reports the LE Coded PHY and refuses to scan on it.
@Suite("A refused scan on LE Coded")
struct ScanCodedRefusalTests {
    private let both = ScanOptions(phys: [.le1M, .leCoded])
    private let coded = ScanOptions(phys: .leCoded)
    private static let refusal = CommandFailure.status(
        .unsupportedFeatureOrParameterValue,
        LESetExtendedScanParameters.opcode
    )

    private func makeWorld() -> GAPWorld {
        var world = GAPWorld.on()
        world.information.usesExtendedCommands = true
        world.information.features.insert(.leCodedPHY)
        return world
    }

    /// Runs until nothing is to do.
    ///
    /// - Parameter refusal: the reply to the commands that configure LE Coded.
    /// - Returns: the PHYs of the configured scans, in order.
    @discardableResult
    private func settle(_ world: inout GAPWorld, refusal: CommandFailure? = refusal) -> [PHYSet] {
        var phys: [PHYSet] = []
        while !world.passes.isEmpty || !world.pending.isEmpty {
            world.pass()
            guard let command = world.pending.first else { continue }
            world.pending.removeFirst()
            let parameters = command.command.decode(LESetExtendedScanParameters.self)
            if let parameters { phys.append(parameters.scanningPHYs) }
            let isRefused = parameters?.scanningPHYs.contains(.leCoded) == true
            world.perform(world.engine.commandEnded(command.step, isRefused ? refusal : nil, world.context))
        }
        return phys
    }

    /// The message to the log.
    private static let report = GAPEffect.report(.codedRefused(refusal))

    private func end(_ number: UInt64) -> GAPEffect {
        .endScan(ScanIdentifier(value: number), .command(Self.refusal))
    }

    private func isOn(_ world: borrowing GAPWorld, _ phys: PHYSet) -> Bool {
        guard case .on(let parameters) = world.engine.scanning.controller else { return false }
        return parameters.phys == phys
    }

    @Test func scanOnBothPHYsContinuesOnLE1M() {
        var world = makeWorld()
        world.startScan(1, both)
        #expect(settle(&world) == [[.le1M, .leCoded], .le1M])
        #expect(isOn(world, .le1M) && world.takeEffects() == [Self.report])
        // It is logged once, also if scanning starts again.
        world.stopScan(1)
        settle(&world)
        world.startScan(2, both)
        #expect(settle(&world) == [.le1M] && world.takeEffects().isEmpty)
    }

    @Test func onlyTheScanOnLECodedAloneEnds() {
        var world = makeWorld()
        world.startScan(1)
        settle(&world)
        world.startScan(2, coded)
        world.startScan(3, both)
        #expect(settle(&world) == [[.le1M, .leCoded], .le1M])
        #expect(world.takeEffects() == [Self.report, end(2)] && isOn(world, .le1M))
        #expect(Array(world.engine.scanning.scans.sessions.keys).map(\.value) == [1, 3])
    }

    @Test func refusedStartOnLECodedEndsOnlyTheScanOnLECodedAlone() {
        var world = makeWorld()
        world.startScan(1, both)
        world.startScan(2, coded)
        world.pass()
        let configured = world.pending.removeFirst()
        world.perform(world.engine.commandEnded(configured.step, nil, world.context))
        world.pass()
        #expect(world.pending.first?.command.opcode == LESetExtendedScanEnable.opcode)
        world.reply(Self.refusal)
        #expect(settle(&world) == [.le1M])
        #expect(world.takeEffects() == [Self.report, end(2)] && isOn(world, .le1M))
    }

    @Test func laterScanOnLECodedAloneEndsAtOnce() {
        var world = makeWorld()
        world.startScan(1, coded)
        settle(&world)
        #expect(world.takeEffects() == [Self.report, end(1)] && world.engine.scanning.isResting)
        world.startScan(2, coded)
        #expect(world.takeEffects() == [end(2)] && world.passes.isEmpty)
        world.startScan(3, both)
        #expect(settle(&world) == [.le1M] && isOn(world, .le1M))
    }

    @Test func resetControllerIsAskedAgain() {
        var world = makeWorld()
        world.startScan(1, both)
        settle(&world)
        #expect(world.takeEffects() == [Self.report])
        world.perform(world.engine.controllerWasLost(world.context))
        world.perform(world.engine.controllerIsReady(world.context))
        #expect(settle(&world, refusal: nil) == [[.le1M, .leCoded]])
        #expect(isOn(world, [.le1M, .leCoded]) && world.takeEffects().isEmpty)
    }

    @Test(arguments: [
        CommandFailure.status(.commandDisallowed, LESetExtendedScanParameters.opcode),
        .malformedReply(LESetExtendedScanParameters.opcode, .truncated(needed: 1, available: 0)),
    ])
    func otherFailureIsNoRefusalOfLECoded(failure: CommandFailure) {
        var world = makeWorld()
        world.startScan(1, both)
        settle(&world, refusal: failure)
        #expect(world.takeEffects() == [.endScan(ScanIdentifier(value: 1), .command(failure))])
        world.startScan(2, both)
        #expect(settle(&world, refusal: nil) == [[.le1M, .leCoded]] && isOn(world, [.le1M, .leCoded]))
    }

    @Test func refusedLE1MEndsTheScanAsWell() {
        var world = makeWorld()
        world.startScan(1, both)
        world.pass()
        world.reply(Self.refusal)
        world.pass()
        world.reply(Self.refusal)
        settle(&world)
        #expect(world.takeEffects() == [Self.report, end(1)] && world.sent.count == 2)
    }
}
