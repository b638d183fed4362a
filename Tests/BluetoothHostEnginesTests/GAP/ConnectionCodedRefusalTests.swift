import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// A controller that reports the LE Coded PHY and refuses to initiate on it.
@Suite("A refused initiation on LE Coded")
struct ConnectionCodedRefusalTests {
    private static let refusal = CommandFailure.status(
        .unsupportedFeatureOrParameterValue,
        LEExtendedCreateConnection.opcode
    )

    private var world = ConnectionWorld()

    init() {
        world.context.usesExtendedCommands = true
        world.context.canInitiateOnCodedPHY = true
    }

    /// Begins an attempt to a peer that was received on LE Coded.
    private mutating func connect(_ number: UInt64, parameters: ConnectionParameters = ConnectionParameters()) {
        var attempt = ConnectionAttempt(
            identifier: number,
            addresses: ConnectionWorld.peers(number),
            parameters: parameters
        )
        attempt.usesCodedPHY = true
        world.plan.add(attempt)
        world.request()
    }

    /// Runs until nothing is to do.
    ///
    /// - Returns: the PHYs of the initiations, in order.
    @discardableResult
    private mutating func settle(
        refusal: CommandFailure? = refusal,
        on1M: CommandFailure? = nil
    ) -> [PHYSet] {
        var phys: [PHYSet] = []
        while world.isPassDue || world.pending != nil {
            world.pass()
            let creation = world.pending?.command.decode(LEExtendedCreateConnection.self)
            if let creation { phys.append(creation.initiatingPHYs) }
            world.reply(creation.flatMap { $0.leCoded == nil ? on1M : refusal })
            world.reportEnd()
        }
        return phys
    }

    @Test mutating func initiationContinuesOnLE1MAndIsReportedOnce() {
        connect(1)
        #expect(settle() == [[.le1M, .leCoded], .le1M])
        #expect(world.codedRefusals == [Self.refusal] && world.outcomes.isEmpty)
        #expect(world.controller.state == .initiating(ConnectionWorld.peers(1)))
        world.connected(to: 1)
        connect(2)
        #expect(settle() == [.le1M] && world.codedRefusals.count == 1)
    }

    @Test mutating func acceptListIsWrittenAgain() {
        connect(1)
        connect(2)
        #expect(settle() == [[.le1M, .leCoded], .le1M])
        #expect(world.controller.state == .initiating(ConnectionWorld.peers(1, 2)))
    }

    @Test mutating func refusalOnLE1MFailsTheAttemptAndIsNoRefusalOfLECoded() {
        connect(1)
        #expect(settle(on1M: ConnectionWorld.refusal) == [[.le1M, .leCoded], .le1M])
        #expect(world.outcomes == [1: [.failed(.command(ConnectionWorld.refusal))]])
        #expect(world.codedRefusals.isEmpty && world.plan.isResting)
        connect(2)
        #expect(settle(refusal: nil) == [[.le1M, .leCoded]] && world.outcomes.count == 1)
    }

    /// The second initiation has other parameters, so its success says nothing about the first one.
    @Test mutating func suspicionEndsWithItsInitiation() {
        connect(1)
        world.pass()
        world.reply(Self.refusal)
        world.cancel(1)
        connect(2)
        #expect(settle(refusal: nil) == [[.le1M, .leCoded]] && world.codedRefusals.isEmpty)
    }

    @Test mutating func resetControllerIsAskedAgain() {
        connect(1)
        settle()
        world.resetController()
        #expect(settle(refusal: nil) == [[.le1M, .leCoded]] && world.outcomes.isEmpty)
    }

    @Test(arguments: [HCIErrorCode.connectionLimitExceeded, .memoryCapacityExceeded, .commandDisallowed])
    mutating func errorOfTheMomentIsNoRefusalOfLECoded(status: HCIErrorCode) {
        let failure = CommandFailure.status(status, LEExtendedCreateConnection.opcode)
        connect(1)
        #expect(settle(refusal: failure) == [[.le1M, .leCoded]])
        #expect(world.outcomes == [1: [.failed(.command(failure))]])
    }

    /// The engine does not log the first answer, because it does not say which parameter was refused.
    @Test func engineLogsTheRefusalOnce() {
        var world = GAPWorld.on(isExtended: true, hasCodedPHY: true)
        world.connect(1, to: GAPSample.address(1))
        world.engine.connecting.attempts[0].usesCodedPHY = true
        // The passes of the other plans come before that of connecting.
        while world.pending.isEmpty, !world.passes.isEmpty { world.pass() }
        #expect(world.pending.first?.command.decode(LEExtendedCreateConnection.self)?.leCoded != nil)
        world.reply(Self.refusal)
        #expect(world.takeEffects().isEmpty)
        world.settle()
        #expect(world.takeEffects() == [.report(.codedRefused(Self.refusal))])
        #expect(world.engine.connecting.codedRefusal == .confirmed)
        #expect(world.takeSent() == [LEExtendedCreateConnection.opcode, LEExtendedCreateConnection.opcode])
    }
}
