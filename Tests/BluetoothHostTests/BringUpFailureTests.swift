import BLEHCI
import BLEHCITransport
import BluetoothHost
import BluetoothTypes
import Synchronization
import Testing

/// A store whose state cannot be read.
private final class DamagedStore: BondStore {
    let saveCount = Atomic(0)
    let problem: String? = "the file is damaged"

    nonisolated(nonsending) func load(for publicAddress: DeviceAddress?) async -> HostSecurityState {
        HostSecurityState()
    }

    func save(_ security: HostSecurityState, completion: (@Sendable (Bool) -> Void)?) {
        saveCount.add(1, ordering: .relaxed)
        completion?(true)
    }
}

/// A store whose state is read when a test says so.
private final class SlowStore: BondStore {
    private let waiting = Mutex<CheckedContinuation<Void, Never>?>(nil)
    let saveCount = Atomic(0)
    let problem: String? = nil

    var isLoading: Bool { waiting.withLock { $0 != nil } }

    nonisolated(nonsending) func load(for publicAddress: DeviceAddress?) async -> HostSecurityState {
        await withCheckedContinuation { continuation in waiting.withLock { $0 = continuation } }
        return HostSecurityState()
    }

    func finishLoading() {
        waiting.withLock { $0.take() }?.resume()
    }

    func save(_ security: HostSecurityState, completion: (@Sendable (Bool) -> Void)?) {
        saveCount.add(1, ordering: .relaxed)
        completion?(true)
    }
}

/// Events after which a controller may have lost its settings.
@Suite("Errors that a controller reports while it is brought up")
struct BringUpFailureTests {
    private static let hardwareError: [UInt8] = [0x04, 0x10, 0x01, 0x07]
    private static let dataBufferOverflow: [UInt8] = [0x04, 0x1A, 0x01, 0x01]

    /// Makes the controller report an error at each of the next `count` commands of this kind: before its answer, or
    /// after it and before the host does anything else.
    private func fail(
        _ fixture: HostFixture,
        with packet: [UInt8] = BringUpFailureTests.hardwareError,
        at opcode: HCIOpcode,
        count: Int = 1,
        isAfterAnswer: Bool = false
    ) {
        let controller = fixture.controller
        let failuresLeft = Atomic(count)
        controller.override = { command in
            guard command.opcode == opcode, failuresLeft.load(ordering: .relaxed) > 0 else { return nil }
            failuresLeft.subtract(1, ordering: .relaxed)
            if isAfterAnswer {
                controller.loop.execute { controller.emit(packet) }
            } else {
                controller.emit(packet)
            }
            return nil
        }
    }

    private func resets(_ fixture: HostFixture) -> Int {
        fixture.controller.opcodes.count { $0 == Reset.opcode }
    }

    /// Whether the host has set the controller's event masks since its last reset.
    private func areEventMasksSet(_ fixture: HostFixture) -> Bool {
        let opcodes = fixture.controller.opcodes
        guard let last = opcodes.lastIndex(of: Reset.opcode) else { return false }
        return opcodes[last...].contains(SetEventMask.opcode) && opcodes[last...].contains(LESetEventMask.opcode)
    }

    @Test(
        "In a recovery, the controller is reset once more",
        arguments: [
            ReadLocalVersionInformation.opcode, SetEventMask.opcode, LESetEventMask.opcode,
            LEReadFilterAcceptListSize.opcode,
        ],
        [false, true]
    )
    func recoveryResetsTheControllerOnceMoreAfterAnError(opcode: HCIOpcode, isAfterAnswer: Bool) throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fail(fixture, at: opcode, isAfterAnswer: isAfterAnswer)
        fixture.controller.emit([0x04, 0x10, 0x01, 0x42])
        fixture.loop.run(for: .seconds(10))
        #expect(resets(fixture) == 2)
        #expect(areEventMasksSet(fixture))
        #expect(fixture.events.all == ["poweredOn", "resetting: hardware error 66", "poweredOn"])
    }

    @Test("The first bring-up starts again as well", arguments: [hardwareError, dataBufferOverflow], [false, true])
    func firstBringUpStartsAgainAfterAnError(packet: [UInt8], isAfterAnswer: Bool) throws {
        let fixture = HostFixture()
        fail(fixture, with: packet, at: LESetEventMask.opcode, count: 2, isAfterAnswer: isAfterAnswer)
        let host = fixture.host
        try fixture.run { try await host.start() }
        #expect(resets(fixture) == 3)
        #expect(areEventMasksSet(fixture))
        let inspection = try fixture.run { await host.inspect() }
        #expect(inspection.isOn && inspection.commands == 0)
    }

    @Test("Starting fails with a description if the controller reports an error each time")
    func startFailsIfTheControllerReportsAnErrorEachTime() throws {
        let fixture = HostFixture()
        fail(fixture, at: LESetEventMask.opcode, count: .max)
        let host = fixture.host
        let error = StartError.host(.controllerFailed("hardware error 7"))
        #expect(throws: error) { try fixture.run { try await host.start() } }
        #expect(resets(fixture) == 3)
        #expect("\(error)" == "the controller failed while it was brought up: hardware error 7")
        // The host is unchanged, and can be started once the controller works.
        fixture.controller.override = { _ in nil }
        try fixture.run { try await host.start() }
        #expect(resets(fixture) == 4)
    }

    @Test("A recovery is repeated while the controller fails, with increasing pauses")
    func failingRecoveryIsRepeatedWithIncreasingPauses() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fail(fixture, at: LESetEventMask.opcode, count: 5)
        let start = fixture.loop.now
        fixture.controller.emit([0x04, 0x10, 0x01, 0x42])
        let isUp = { fixture.events.all.last == "poweredOn" && fixture.events.all.count == 3 }
        #expect(fixture.loop.run(limit: .seconds(60), until: isUp))
        #expect(resets(fixture) == 6)
        // At least 0.1 + 0.2 + 0.4 + 0.8 + 1.6 seconds.
        #expect(fixture.loop.now - start >= .milliseconds(3100))
    }

    @Test("An error reported before the controller confirms Reset is ignored")
    func errorBeforeResetIsConfirmedIsIgnored() throws {
        let fixture = HostFixture()
        fail(fixture, at: Reset.opcode)
        let host = fixture.host
        try fixture.run { try await host.start() }
        #expect(resets(fixture) == 1)
        #expect(areEventMasksSet(fixture))
    }

    @Test("A transport that is lost right after the last answer leaves no host powered on")
    func transportLostAfterTheLastAnswerLeavesNoHostOn() throws {
        let fixture = HostFixture()
        let controller = fixture.controller
        let isFirst = Atomic(true)
        controller.override = { command in
            guard command.opcode == LEReadFilterAcceptListSize.opcode, isFirst.exchange(false, ordering: .relaxed)
            else { return nil }
            controller.loop.execute { controller.vanish() }
            return nil
        }
        let host = fixture.host
        #expect(throws: StartError.self) { try fixture.run { try await host.start() } }
        let inspection = try fixture.run { await host.inspect() }
        #expect(!inspection.isOn && !inspection.isTransportOpen)
    }

    @Test("A transport that ends before its start returns ends the start of the host at once")
    func transportThatEndsInItsStartEndsTheStartOfTheHost() throws {
        let fixture = HostFixture()
        let error = TransportError.connectionFailed("the controller", errno: 5)
        fixture.controller.endOfStart = error
        let host = fixture.host
        let start = fixture.loop.now
        #expect(throws: StartError.transport(error)) { try fixture.run { try await host.start() } }
        #expect(fixture.loop.now == start)
        #expect(fixture.controller.opcodes.isEmpty)
        fixture.controller.endOfStart = nil
        try fixture.run { try await host.start() }
    }

    @Test("State that is read after the host was closed is not saved again")
    func stateReadAfterClosingIsNotSavedAgain() throws {
        let store = SlowStore()
        let fixture = HostFixture { $0.bondStore = store }
        let host = fixture.host
        let started = fixture.start { try await host.start() }
        #expect(store.isLoading)
        try fixture.run { await host.close() }
        store.finishLoading()
        fixture.loop.run(for: .seconds(1))
        #expect(throws: StartError.host(.closed)) { try #require(started.all.first).get() }
        #expect(store.saveCount.load(ordering: .relaxed) == 0)
    }

    @Test("A host that requires its state saves no identity in place of one that it cannot read")
    func hostSavesNoIdentityInPlaceOfAnUnreadableOne() throws {
        let store = DamagedStore()
        let fixture = HostFixture {
            $0.bondStore = store
            $0.requiresState = true
        }
        let host = fixture.host
        for _ in 0..<2 {
            #expect(throws: StartError.host(.stateUnavailable("the file is damaged"))) {
                try fixture.run { try await host.start() }
            }
        }
        #expect(store.saveCount.load(ordering: .relaxed) == 0)
        #expect(!fixture.controller.opcodes.contains(SetEventMask.opcode))
    }
}
