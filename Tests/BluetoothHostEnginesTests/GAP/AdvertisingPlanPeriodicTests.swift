import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

private typealias Fixture = AdvertisingPlanFixture

@Suite("Periodic trains in the plan for advertising")
struct AdvertisingPlanPeriodicTests {
    private static func fixture() -> Fixture {
        var fixture = Fixture()
        fixture.context.information.commands.insert(LESetPeriodicAdvertisingEnable.opcode)
        return fixture
    }

    private static func configuration(_ data: [UInt8]) -> AdvertisementConfiguration {
        AdvertisementConfiguration(
            isConnectable: false,
            isScannable: false,
            periodic: PeriodicAdvertisingConfiguration(data: AdvertisingData(decoding: data))
        )
    }

    private static let parameters = GAPCommand(
        LESetPeriodicAdvertisingParameters(
            advertisingHandle: 0,
            periodicAdvertisingIntervalMin: 80,
            periodicAdvertisingIntervalMax: 80,
            periodicAdvertisingProperties: []
        )
    )

    private static func data(
        _ bytes: [UInt8],
        _ operation: AdvertisingDataOperation = .complete
    ) -> GAPCommand {
        GAPCommand(
            LESetPeriodicAdvertisingData(
                advertisingHandle: 0,
                operation: operation,
                advertisingData: PeriodicAdvertisingDataFragment(bytes)
            )
        )
    }

    private static let on = GAPCommand(LESetPeriodicAdvertisingEnable(enable: .enabled, advertisingHandle: 0))
    private static let off = GAPCommand(LESetPeriodicAdvertisingEnable(enable: [], advertisingHandle: 0))

    @Test("A train is set up before its advertising set is turned on, and ends before the set is removed")
    func trainIsSetUpAndEndedWithItsSet() throws {
        var fixture = Self.fixture()
        let advertisement = try fixture.start(Self.configuration([2, 1, 6]))
        #expect(
            fixture.settle() == [
                Fixture.parameters(0, []), Fixture.data(0, []), Self.parameters, Self.data([2, 1, 6]), Self.on,
                Fixture.enable(0),
            ]
        )
        _ = fixture.plan.stop(advertisement, isOn: true)
        #expect(fixture.settle() == [Fixture.disable(0), Self.off, Fixture.remove(0)])
    }

    @Test("A train's longest interval has 65,535 steps of 1.25 ms")
    func longestIntervalOfATrainIsAccepted() throws {
        var fixture = Self.fixture()
        var configuration = Self.configuration([2, 1, 6])
        let longer = Duration.microseconds(81_918_751)
        configuration.periodic?.interval = longer
        let error = HostError.invalidArgument(
            "a periodic advertising interval is 7.5 ms to 81.91875 s, not \(longer)"
        )
        #expect(throws: error) { try fixture.start(configuration) }
        configuration.periodic?.interval = .microseconds(81_918_750)
        try fixture.start(configuration)
        let parameters = GAPCommand(
            LESetPeriodicAdvertisingParameters(
                advertisingHandle: 0,
                periodicAdvertisingIntervalMin: 0xFFFF,
                periodicAdvertisingIntervalMax: 0xFFFF,
                periodicAdvertisingProperties: []
            )
        )
        #expect(fixture.settle().contains(parameters))
    }

    @Test("A train that the controller refuses beside connections blocks its advertisement, which is tried again later")
    func refusedTrainBlocksItsAdvertisement() throws {
        var fixture = Self.fixture()
        fixture.hasLinks = true
        try fixture.start(Self.configuration([2, 1, 6]))
        fixture.settle(commands: 4)
        #expect(fixture.refuse(.connectionLimitExceeded) == [.finish(Fixture.call(1), nil)])
        #expect(fixture.next() == nil && fixture.plan.entries.first?.state == .blocked)
        _ = fixture.advance(by: .seconds(30))
        #expect(fixture.settle().suffix(2) == [Self.on, Fixture.enable(0)])
    }

    @Test("A broadcast group must wait until the train runs, also after a reset")
    func handleOfTrainIsKnownWhileTheTrainRuns() throws {
        var fixture = Self.fixture()
        let advertisement = try fixture.start(Self.configuration([2, 1, 6]))
        #expect(throws: HostError.notReady) { try fixture.plan.handleOfTrain(of: advertisement) }
        fixture.settle()
        #expect(try fixture.plan.handleOfTrain(of: advertisement) == 0)
        _ = fixture.plan.controllerLost()
        #expect(throws: HostError.notReady) { try fixture.plan.handleOfTrain(of: advertisement) }
        fixture.settle()
        _ = fixture.plan.stop(advertisement, isOn: true)
        #expect(throws: HostError.closed) { try fixture.plan.handleOfTrain(of: advertisement) }
    }

    @Test("Data that fits one command is changed while the train runs; only the newest counts")
    func shortDataIsChangedWhileTheTrainRuns() throws {
        var fixture = Self.fixture()
        let advertisement = try fixture.start(Self.configuration([2, 1, 6]))
        fixture.settle()
        for byte in [UInt8(7), 8] {
            let data = AdvertisingData(decoding: [2, 1, byte])
            try fixture.plan.setPeriodicData(data, of: advertisement, fixture.context.information)
        }
        _ = fixture.plan.requestRun()
        #expect(fixture.settle() == [Self.data([2, 1, 8])])
    }

    @Test("A train whose new data the controller refuses keeps its data, also after a reset")
    func refusedDataLeavesTheEarlierData() throws {
        var fixture = Self.fixture()
        let advertisement = try fixture.start(Self.configuration([2, 1, 6]))
        fixture.settle()
        let data = AdvertisingData(decoding: [2, 1, 7])
        try fixture.plan.setPeriodicData(data, of: advertisement, fixture.context.information)
        let update = try fixture.requireNext()
        #expect(update.command == Self.data([2, 1, 7]))
        let failure = GAPSample.refusal(of: update.command, .packetTooLong)
        let effects = fixture.plan.failed(update.step, failure, at: fixture.now, hasLinks: false)
        #expect(effects == [.ignore(failure)])
        #expect(fixture.settle() == [])
        _ = fixture.plan.controllerLost()
        let commands = fixture.settle()
        #expect(commands.contains(Self.data([2, 1, 6])))
    }

    @Test(
        "New data whose answer cannot be read is set up after a reset, unless the controller refuses it",
        arguments: [false, true]
    )
    func dataWithAnUnreadableAnswerIsKept(isRefusedLater: Bool) throws {
        var fixture = Self.fixture()
        let advertisement = try fixture.start(Self.configuration([2, 1, 6]))
        fixture.settle()
        let data = AdvertisingData(decoding: [2, 1, 7])
        try fixture.plan.setPeriodicData(data, of: advertisement, fixture.context.information)
        let update = try fixture.requireNext()
        let failure = CommandFailure.malformedReply(update.command.opcode, .truncated(needed: 1, available: 0))
        #expect(fixture.plan.failed(update.step, failure, at: fixture.now, hasLinks: false) == [.ignore(failure)])
        _ = fixture.plan.controllerLost()
        fixture.settle(commands: 3)
        let renewed = try fixture.requireNext()
        #expect(renewed.command == Self.data([2, 1, 7]))
        guard isRefusedLater else { return }
        let refusal = GAPSample.refusal(of: renewed.command, .packetTooLong)
        #expect(fixture.plan.failed(renewed.step, refusal, at: fixture.now, hasLinks: false) == [.ignore(refusal)])
        #expect(fixture.settle().contains(Self.data([2, 1, 6])))
    }

    @Test("Data for several commands stops the train and sets it up again; the set stays on")
    func longDataStopsTheTrain() throws {
        var fixture = Self.fixture()
        let advertisement = try fixture.start(Self.configuration([2, 1, 6]))
        fixture.settle()
        let bytes = (0..<300).map { UInt8(truncatingIfNeeded: $0) }
        let data = AdvertisingData(decoding: bytes)
        try fixture.plan.setPeriodicData(data, of: advertisement, fixture.context.information)
        _ = fixture.plan.requestRun()
        #expect(
            fixture.settle() == [
                Self.off, Self.parameters, Self.data(Array(bytes[..<252]), .firstFragment),
                Self.data(Array(bytes[252...]), .lastFragment), Self.on,
            ]
        )
        #expect(fixture.plan.entries.first?.state == .on)
    }

    @Test("Long data that the controller refuses is replaced by the earlier data", arguments: 2...4)
    func refusedLongDataIsReplacedByTheEarlierData(commands: Int) throws {
        var fixture = Self.fixture()
        let advertisement = try fixture.start(Self.configuration([2, 1, 6]))
        fixture.settle()
        let data = AdvertisingData(decoding: [UInt8](repeating: 0, count: 300))
        try fixture.plan.setPeriodicData(data, of: advertisement, fixture.context.information)
        fixture.settle(commands: commands)
        let refused = try fixture.requireNext()
        let failure = GAPSample.refusal(of: refused.command, .packetTooLong)
        let effects = fixture.plan.failed(refused.step, failure, at: fixture.now, hasLinks: true)
        #expect(effects == [.ignore(failure)])
        #expect(fixture.settle() == [Self.parameters, Self.data([2, 1, 6]), Self.on])
        #expect(fixture.plan.entries.first?.state == .on && fixture.plan.deadline == fixture.now + .seconds(90))
        // The earlier data was accepted, so a refusal of it is a failure.
        _ = fixture.plan.controllerLost()
        fixture.settle(commands: 4)
        let opcode = LESetPeriodicAdvertisingEnable.opcode
        #expect(fixture.refuse() == [.retryLater(.status(.unsupportedFeatureOrParameterValue, opcode))])
    }

    @Test("A train that the controller does not stop for new data keeps its data")
    func refusedStopLeavesTheTrainWithItsData() throws {
        var fixture = Self.fixture()
        let advertisement = try fixture.start(Self.configuration([2, 1, 6]))
        fixture.settle()
        let data = AdvertisingData(decoding: [UInt8](repeating: 0, count: 300))
        try fixture.plan.setPeriodicData(data, of: advertisement, fixture.context.information)
        let failure = CommandFailure.status(.commandDisallowed, LESetPeriodicAdvertisingEnable.opcode)
        #expect(fixture.refuse(.commandDisallowed) == [.ignore(failure)])
        #expect(fixture.settle() == [])
        _ = fixture.plan.stop(advertisement, isOn: true)
        #expect(fixture.settle() == [Fixture.disable(0), Self.off, Fixture.remove(0)])
    }

    @Test("A train that the controller does not stop for a new set-up is stopped later")
    func refusedStopDelaysTheSetUp() throws {
        var fixture = Self.fixture()
        let advertisement = try fixture.start(Self.configuration([2, 1, 6]))
        fixture.plan.remove(Fixture.call(1), of: advertisement)
        fixture.settle(commands: 5)
        _ = fixture.refuse(.memoryCapacityExceeded)
        _ = fixture.advance(by: .seconds(1))
        let failure = CommandFailure.status(.commandDisallowed, LESetPeriodicAdvertisingEnable.opcode)
        #expect(fixture.refuse(.commandDisallowed) == [.retryLater(failure)])
        #expect(fixture.next() == nil)
        _ = fixture.advance(by: .seconds(1))
        #expect(fixture.settle().prefix(2) == [Self.off, Fixture.parameters(0, [])])
    }

    /// The train runs on although its set is off. The controller refuses its parameters until it is stopped.
    @Test("A set with a train that cannot be turned on is set up again without the train")
    func refusedSetStopsItsTrainBeforeItIsSetUpAgain() throws {
        var fixture = Self.fixture()
        let advertisement = try fixture.start(Self.configuration([2, 1, 6]))
        fixture.plan.remove(Fixture.call(1), of: advertisement)
        fixture.settle(commands: 5)
        let failure = CommandFailure.status(.memoryCapacityExceeded, LESetExtendedAdvertisingEnable.opcode)
        #expect(fixture.refuse(.memoryCapacityExceeded) == [.retryLater(failure)])
        _ = fixture.advance(by: .seconds(1))
        #expect(
            fixture.settle() == [
                Self.off, Fixture.parameters(0, []), Fixture.data(0, []), Self.parameters, Self.data([2, 1, 6]),
                Self.on, Fixture.enable(0),
            ]
        )
    }

    @Test("A set whose start is refused is removed after its train was stopped")
    func refusedSetIsRemovedAfterItsTrain() throws {
        var fixture = Self.fixture()
        try fixture.start(Self.configuration([2, 1, 6]))
        fixture.settle(commands: 5)
        let failure = CommandFailure.status(.memoryCapacityExceeded, LESetExtendedAdvertisingEnable.opcode)
        #expect(fixture.refuse(.memoryCapacityExceeded) == [.finish(Fixture.call(1), .command(failure))])
        #expect(fixture.settle() == [Self.off, Fixture.remove(0)])
    }

    @Test("Data that changes during the set-up replaces the earlier data afterwards", arguments: 0...6)
    func dataThatChangesDuringTheSetUpReplacesTheEarlierData(commands: Int) throws {
        var fixture = Self.fixture()
        let advertisement = try fixture.start(Self.configuration([2, 1, 6]))
        fixture.settle(commands: commands)
        let data = AdvertisingData(decoding: [2, 1, 9])
        try fixture.plan.setPeriodicData(data, of: advertisement, fixture.context.information)
        _ = fixture.plan.requestRun()
        let commands = fixture.settle()
        #expect(commands.contains(Self.data([2, 1, 9])))
        #expect(fixture.plan.entries.first?.periodicData == data)
        #expect(fixture.plan.entries.first?.nextPeriodicData == nil)
        #expect(fixture.plan.entries.first?.state == .on)
    }

    @Test("After a reset, the train is set up with its newest data")
    func trainIsSetUpAgainAfterAReset() throws {
        var fixture = Self.fixture()
        let advertisement = try fixture.start(Self.configuration([2, 1, 6]))
        fixture.settle()
        let data = AdvertisingData(decoding: [2, 1, 9])
        try fixture.plan.setPeriodicData(data, of: advertisement, fixture.context.information)
        _ = fixture.plan.controllerLost()
        _ = fixture.plan.requestRun()
        #expect(
            fixture.settle() == [
                Fixture.parameters(0, []), Fixture.data(0, []), Self.parameters, Self.data([2, 1, 9]), Self.on,
                Fixture.enable(0),
            ]
        )
    }

    private static let responseCommands = [
        LESetPeriodicAdvertisingParametersV2.opcode, LESetPeriodicAdvertisingSubeventData.opcode,
    ]

    private static func subevents(_ subevents: PeriodicSubeventConfiguration) -> AdvertisementConfiguration {
        var configuration = configuration([])
        configuration.periodic?.subevents = subevents
        return configuration
    }

    @Test("A train with subevents is set up without data, after its events were enabled")
    func trainWithSubeventsIsSetUp() throws {
        var fixture = Self.fixture()
        let subevents = Self.subevents(.init(count: 5))
        let error = HostError.notSupported("this controller does not send periodic advertising with responses")
        #expect(throws: error) { try fixture.start(subevents) }
        fixture.context.information.features.insert(.periodicAdvertisingWithResponsesAdvertiser)
        for opcode in Self.responseCommands { fixture.context.information.commands.insert(opcode) }
        let advertisement = try fixture.start(subevents)
        fixture.settle(commands: 2)
        let mask = try fixture.requireNext()
        let events: LEEventMask = [.periodicAdvertisingSubeventDataRequest, .periodicAdvertisingResponseReport]
        #expect(mask.command == GAPCommand(LESetEventMask(leEventMask: events)) && mask.events == events)
        _ = fixture.plan.finished(mask.step, at: fixture.now)
        let parameters = GAPCommand(
            LESetPeriodicAdvertisingParametersV2(
                advertisingHandle: 0,
                periodicAdvertisingIntervalMin: 80,
                periodicAdvertisingIntervalMax: 80,
                numSubevents: 5,
                subeventInterval: 16,
                responseSlotDelay: 8,
                responseSlotSpacing: 20,
                numResponseSlots: 4
            )
        )
        #expect(fixture.settle() == [parameters, Self.on, Fixture.enable(0)])
        let text = HostError.invalidArgument("a train with subevents has the data of its subevents only")
        #expect(throws: text) {
            try fixture.plan.setPeriodicData(AdvertisingData(), of: advertisement, fixture.context.information)
        }
        _ = fixture.plan.controllerLost()
        #expect(fixture.settle().contains(parameters))
    }

    @Test(
        "Subevents out of range are refused",
        arguments: [
            PeriodicSubeventConfiguration(count: 0), .init(count: 129), .init(count: 6),
            .init(count: 1, interval: .microseconds(6250)), .init(count: 1, interval: .milliseconds(320)),
            .init(count: 1, responseSlotCount: 5), .init(count: 1, responseSlotCount: 256),
            .init(count: 1, responseSlotDelay: .microseconds(1249)),
            .init(count: 1, responseSlotSpacing: .microseconds(249)),
            .init(count: 1, responseSlotCount: 1, responseSlotSpacing: .milliseconds(32)),
        ]
    )
    func subeventsOutOfRangeAreRefused(_ subevents: PeriodicSubeventConfiguration) {
        var fixture = Self.fixture()
        fixture.context.information.features.insert(.periodicAdvertisingWithResponsesAdvertiser)
        for opcode in Self.responseCommands { fixture.context.information.commands.insert(opcode) }
        #expect(throws: HostError.self) { try fixture.start(Self.subevents(subevents)) }
        var withData = Self.subevents(.init(count: 1))
        withData.periodic?.data = AdvertisingData(decoding: [2, 1, 6])
        #expect(throws: HostError.self) { try fixture.start(withData) }
    }

    @Test("A controller without the commands, and sets that accept connections, are refused")
    func impossibleTrainsAreRefused() {
        var without = Fixture()
        #expect(throws: HostError.self) { try without.start(Self.configuration([])) }
        var fixture = Self.fixture()
        var connectable = Self.configuration([])
        connectable.isConnectable = true
        var scannable = Self.configuration([])
        scannable.isScannable = true
        var legacy = Self.configuration([])
        legacy.usesExtendedPDUs = false
        for configuration in [connectable, scannable, legacy, Self.configuration([UInt8](repeating: 0, count: 1651))] {
            #expect(throws: HostError.self) { try fixture.start(configuration) }
        }
    }
}
