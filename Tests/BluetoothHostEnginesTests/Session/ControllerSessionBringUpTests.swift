import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The bring-up of a controller by a session")
struct ControllerSessionBringUpTests {
    private let call = SessionFixture.call

    /// The steps of a bring-up with a command, with the step after each.
    private static let steps = SessionFixture.steps.map(\.step)
    /// A controller for which all steps are needed: it has no buffers that are only for LE.
    private static let profile = SessionFixture.Profile(leBuffers: 0)

    private func opcode(of step: BringUpStep) throws -> HCIOpcode {
        try #require(SessionFixture.steps.first { $0.step == step }?.opcode)
    }

    /// The steps with a command after this one, if the command of this one has failed.
    private func opcodesAfterFailure(of step: BringUpStep) throws -> [HCIOpcode] {
        let index = try #require(SessionFixture.steps.firstIndex { $0.step == step })
        var following = SessionFixture.steps[(index + 1)...].map(\.opcode)
        switch step {
        case .readLEBuffersV2: following.insert(LEReadBufferSize.opcode, at: 0)
        case .readDataLength: following.removeFirst()
        default: break
        }
        return following
    }

    // MARK: Order

    @Test func allStepsAreDoneInOrder() throws {
        var fixture = SessionFixture(ControllerSessionBringUpTests.profile)
        #expect(fixture.session.start(call) == [.openTransport(generation: 1)])
        #expect(fixture.session.power == .starting)
        #expect(fixture.session.awaitsTransport(1) && !fixture.session.awaitsTransport(2))
        var effects = fixture.session.transportOpened(at: fixture.now)
        #expect(effects == [.send(SessionFixture.packet(Reset()))])
        effects += fixture.bringUp(until: .loadBonds)
        #expect(effects.last == .loadBonds(SessionFixture.publicAddress))
        effects += fixture.bringUp(until: .prepareAddresses)
        #expect(effects.sent == SessionFixture.steps.map(\.opcode))
        guard case .prepareAddresses(let information)? = effects.last else {
            Issue.record("addresses are not prepared")
            return
        }
        #expect(fixture.session.information == nil)
        #expect(fixture.bringUp() == [.ready(information), .finish(call, nil)])
        #expect(fixture.session.power == .on && fixture.session.information == information)
        #expect(fixture.session.deadline == nil)
    }

    @Test func propertiesAreThoseThatTheControllerReports() throws {
        let fixture = SessionFixture.on()
        let properties = fixture.session.information
        let information = try #require(properties)
        #expect(information.publicAddress == SessionFixture.publicAddress)
        #expect(information.identityAddress == SessionFixture.identity)
        #expect(information.manufacturer == CompanyIdentifier(rawValue: 0x05F1))
        #expect(information.hciVersion == CoreVersion.v54.rawValue && information.hciSubversion == 1)
        #expect(information.lmpVersion == CoreVersion.v54.rawValue && information.lmpSubversion == 2)
        #expect(information.supportedStates == 0x03FF)
        #expect(information.aclDataLength == 251 && information.aclPacketCount == 8)
        #expect(!information.sharesClassicBuffers && information.usesExtendedCommands)
        #expect(information.filterAcceptListSize == 9 && information.resolvingListSize == 10)
        #expect(information.maximumTransmitOctets == 251 && information.maximumTransmitTime == 2120)
        #expect(information.numberOfAdvertisingSets == 11 && information.maximumAdvertisingDataLength == 1650)
    }

    @Test func lengthThatTheControllerDoesNotTellIsThatOfTheSpecification() throws {
        var fixture = SessionFixture()
        _ = fixture.begin()
        _ = fixture.bringUp(until: .readAdvertisingSets)
        _ = fixture.answer(LEReadNumberOfSupportedAdvertisingSets.opcode, [HCIErrorCode.hardwareFailure.rawValue])
        _ = fixture.bringUp(until: .readAdvertisingDataLength)
        _ = fixture.answer(LEReadMaximumAdvertisingDataLength.opcode, [HCIErrorCode.hardwareFailure.rawValue])
        _ = fixture.bringUp()
        let information = try #require(fixture.session.information)
        #expect(information.numberOfAdvertisingSets == 1 && information.maximumAdvertisingDataLength == 1650)
    }

    @Test func eachMaskHasTheEventsThatWereEnabledSinceTheReset() throws {
        var fixture = SessionFixture()
        #expect(fixture.session.enable(.subrateChange) == [], "the controller is not up")
        fixture = SessionFixture.on()
        let initial = try #require(fixture.session.information?.initialLEEvents)
        #expect(fixture.session.enable(.connectionComplete) == [], "the bring-up has enabled it")
        #expect(fixture.session.enable(.subrateChange) == .subrateChange)
        #expect(fixture.session.information?.leEvents == initial.union(.subrateChange))
        #expect(fixture.session.enable([.cisRequest, .subrateChange]) == .cisRequest)
        #expect(fixture.session.information?.leEvents == initial.union([.subrateChange, .cisRequest]))
        #expect(fixture.session.enable(.cisRequest) == [])

        fixture.now = fixture.now + .seconds(60)
        _ = fixture.session.failed("a hardware error", at: fixture.now)
        _ = fixture.bringUp()
        #expect(fixture.session.information?.leEvents == initial)
        #expect(fixture.session.enable(.cisRequest) == .cisRequest)
    }

    @Test(arguments: [true, false]) func controllerIsToldOfEachFeatureOfTheHostThatItSupports(refuses: Bool) throws {
        var profile = SessionFixture.Profile()
        profile.features.insert([.connectionSubrating, .advertisingCodingSelection])
        profile.hostFeatures = [.connectionSubratingHostSupport, .advertisingCodingSelectionHostSupport]
        profile.commands.insert(LESetHostFeature.self)
        var fixture = SessionFixture(profile)
        _ = fixture.begin()
        _ = fixture.bringUp(until: .setLEEventMask)
        let expected: [LESetHostFeature] = [
            LESetHostFeature(bitNumber: 38, bitValue: true), LESetHostFeature(bitNumber: 41, bitValue: true),
        ]
        #expect(fixture.answer() == [.send(SessionFixture.packet(expected[0]))])
        let first = fixture.answer(LESetHostFeature.opcode, [refuses ? 0x0C : 0]).effects
        #expect(first.last == .send(SessionFixture.packet(expected[1])))
        _ = fixture.answer()
        #expect(fixture.step == .enableLEHost)
        _ = fixture.bringUp()
        let information = try #require(fixture.session.information)
        #expect(information.enabledHostFeatures.contains(.connectionSubratingHostSupport) == !refuses)
        #expect(information.enabledHostFeatures.contains(.advertisingCodingSelectionHostSupport))
        #expect(information.leEvents.contains(.subrateChange))
    }

    @Test(
        arguments: [
            ([], .connectionSubrating), (.connectionSubratingHostSupport, []),
            (.advertisingCodingSelectionHostSupport, .connectionSubrating),
        ] as [(LEFeatures, LEFeatures)]
    )
    func featureThatHostOrControllerLacksIsNotSet(host: LEFeatures, controller: LEFeatures) throws {
        var profile = SessionFixture.Profile()
        profile.features.insert(controller)
        profile.hostFeatures = host
        profile.commands.insert(LESetHostFeature.self)
        var fixture = SessionFixture(profile)
        let effects = fixture.begin() + fixture.bringUp()
        #expect(!effects.sent.contains(LESetHostFeature.opcode))
        let information = try #require(fixture.session.information)
        #expect(!information.leEvents.contains(.subrateChange) && !information.canSubrate)
    }

    @Test func commandsThatAreNotSupportedAreSkipped() throws {
        var fixture = SessionFixture(.least)
        let effects = fixture.begin() + fixture.bringUp()
        let expected = [
            Reset.opcode, ReadLocalVersionInformation.opcode, ReadLocalSupportedCommands.opcode,
            ReadLocalSupportedFeatures.opcode, LEReadLocalSupportedFeatures.opcode, SetEventMask.opcode,
            LESetEventMask.opcode, LEReadBufferSize.opcode,
        ]
        #expect(effects.sent == expected)
        let properties = fixture.session.information
        let information = try #require(properties)
        #expect(information.publicAddress == nil && !information.usesExtendedCommands)
        // The minimum that the specification allows.
        #expect(information.aclDataLength == 27 && information.aclPacketCount == 8)
    }

    @Test(arguments: [0, 0xFFFF_FFFF_FFFF] as [UInt64])
    func addressWithoutMeaningIsNoPublicAddress(value: UInt64) {
        var profile = SessionFixture.Profile()
        profile.publicAddress = DeviceAddress(value, isRandom: false)
        var fixture = SessionFixture(profile)
        let effects = fixture.begin() + fixture.bringUp(until: .loadBonds)
        #expect(effects.last == .loadBonds(nil))
    }

    @Test func publicAddressOfAnEarlierBringUpIsKept() {
        var fixture = SessionFixture.on()
        fixture.profile.publicAddress = DeviceAddress(0, isRandom: false)
        fixture.now = fixture.now + .seconds(5)
        let effects = fixture.session.failed("test", at: fixture.now) + fixture.bringUp(until: .loadBonds)
        #expect(effects.last == .loadBonds(SessionFixture.publicAddress))
    }

    // MARK: Commands that fail

    @Test(arguments: steps)
    private func refusedStepFailsTheBringUpIfItIsRequired(step: BringUpStep) throws {
        var fixture = SessionFixture.bringingUp(at: step, ControllerSessionBringUpTests.profile)
        let opcode = try opcode(of: step)
        let failure = CommandFailure.status(.unknownHCICommand, opcode)
        // The controller answers an unknown command with Command Status.
        let (tag, effects) = fixture.answer(opcode, [0x01], isStatus: true)
        #expect(tag == .bringUp(step))
        try expectFailure(failure, of: step, effects, &fixture)
    }

    @Test(arguments: steps)
    private func malformedAnswerFailsTheBringUpIfItIsRequired(step: BringUpStep) throws {
        var fixture = SessionFixture.bringingUp(at: step, ControllerSessionBringUpTests.profile)
        let opcode = try opcode(of: step)
        let failure = CommandFailure.malformedReply(opcode, .truncated(needed: 1, available: 0))
        try expectFailure(failure, of: step, fixture.answer(opcode, []).effects, &fixture)
    }

    @Test(arguments: steps)
    private func unansweredStepTimesOutAndFailsTheBringUpIfItIsRequired(step: BringUpStep) throws {
        var fixture = SessionFixture.bringingUp(at: step, ControllerSessionBringUpTests.profile)
        let opcode = try opcode(of: step)
        #expect(fixture.session.deadline == fixture.now + .seconds(4))
        #expect(fixture.advance(by: .milliseconds(3999)) == [])
        let effects = fixture.advance(by: .milliseconds(1))
        #expect(effects.first == .report(.unanswered(opcode)))
        try expectFailure(.timedOut(opcode), of: step, Array(effects.dropFirst()), &fixture)
        // The answer comes after all. It is for no command, also if the same command was sent again since.
        #expect(fixture.answer(opcode, fixture.reply(to: opcode)).tag == nil)
    }

    /// Expects the effects of a step whose command has failed.
    private func expectFailure(
        _ failure: CommandFailure,
        of step: BringUpStep,
        _ effects: [SessionEffect],
        _ fixture: inout SessionFixture
    ) throws {
        guard step.isOptional else {
            #expect(effects == [.closeTransport, .finish(call, .command(failure))])
            #expect(fixture.session.power == .off && fixture.session.deadline == nil)
            return
        }
        #expect(effects.first == .report(.optionalCommandFailed(failure)))
        let following = try opcodesAfterFailure(of: step)
        if step == .readAddress {
            #expect(effects.dropFirst() == [.loadBonds(nil)])
        } else if following.isEmpty {
            #expect(effects.count == 2 && fixture.step == .prepareAddresses)
        } else {
            #expect(effects.count == 2 && effects.sent == [following[0]])
        }
        let rest = effects + fixture.bringUp()
        #expect(rest.sent == following)
        #expect(rest.last == .finish(call, nil) && fixture.session.power == .on)
    }

    @Test func buffersOfAnOldControllerMustBeRead() {
        let opcode = LEReadBufferSize.opcode
        let refused = CommandFailure.status(.unknownHCICommand, opcode)
        let malformed = CommandFailure.malformedReply(opcode, .truncated(needed: 2, available: 1))
        for (reply, failure) in [([0x01], refused), ([0x00, 0x1B], malformed)] as [([UInt8], CommandFailure)] {
            var fixture = SessionFixture.bringingUp(at: .readLEBuffers, .least)
            let effects = fixture.answer(opcode, reply).effects
            #expect(effects == [.closeTransport, .finish(call, .command(failure))])
        }
        var fixture = SessionFixture.bringingUp(at: .readLEBuffers, .least)
        let effects = fixture.advance(by: .seconds(4))
        let failure = CommandFailure.timedOut(opcode)
        #expect(effects == [.report(.unanswered(opcode)), .closeTransport, .finish(call, .command(failure))])
    }

    // MARK: Errors of the controller

    @Test(arguments: steps.dropFirst())
    private func errorOfTheControllerStartsAgain(step: BringUpStep) throws {
        var fixture = SessionFixture.bringingUp(at: step, ControllerSessionBringUpTests.profile)
        let opcode = try opcode(of: step)
        let report = SessionEffect.report(.failedDuringBringUp(reason: "hardware error 7"))
        let reset = SessionEffect.send(SessionFixture.packet(Reset()))
        #expect(fixture.session.failed("hardware error 7", at: fixture.now) == [report, reset])
        // The late answer to the command before the reset.
        let late = fixture.answer(opcode, fixture.reply(to: opcode))
        #expect(late.tag == nil && late.effects == [] && fixture.step == .reset)
        #expect(fixture.bringUp().last == .finish(call, nil))
    }

    @Test func errorBeforeResetIsConfirmedIsIgnored() {
        var fixture = SessionFixture.bringingUp(at: .reset)
        #expect(fixture.session.failed("hardware error 7", at: fixture.now) == [])
        #expect(fixture.bringUp().last == .finish(call, nil))
    }

    @Test func startFailsAfterThreeErrors() {
        var fixture = SessionFixture.bringingUp(at: .setEventMask)
        let report = SessionEffect.report(.failedDuringBringUp(reason: "test"))
        for _ in 0..<2 {
            #expect(fixture.session.failed("test", at: fixture.now).sent == [Reset.opcode])
            _ = fixture.bringUp(until: .setEventMask)
        }
        let effects = fixture.session.failed("test", at: fixture.now)
        #expect(effects == [report, .closeTransport, .finish(call, .controllerFailed("test"))])
        #expect(fixture.session.power == .off)
        // It can be started again.
        #expect(fixture.session.start(call) == [.openTransport(generation: fixture.session.generation)])
        _ = fixture.session.transportOpened(at: fixture.now)
        #expect(fixture.bringUp().last == .finish(call, nil))
    }

    @Test(arguments: [BringUpStep.loadBonds, .prepareAddresses])
    private func errorDuringAStepOfTheCallerCountsAtItsEnd(step: BringUpStep) {
        var fixture = SessionFixture.bringingUp(at: step)
        let request = SessionFixture.request(LESetRandomAddress(randomAddress: SessionFixture.identity), by: 1)
        #expect(fixture.session.submit(request, at: fixture.now) == [.send(request.packet)])
        let report = SessionEffect.report(.failedDuringBringUp(reason: "test"))
        let aborted = SessionEffect.commandFailed(SessionFixture.tag(1), .aborted)
        #expect(fixture.session.failed("test", at: fixture.now) == [report, aborted])
        #expect(fixture.session.failed("again", at: fixture.now) == [])
        let effects =
            step == .loadBonds
            ? fixture.session.bondsLoaded(identity: SessionFixture.identity, obstacle: nil, at: fixture.now)
            : fixture.session.addressesPrepared(.aborted, at: fixture.now)
        #expect(effects == [.send(SessionFixture.packet(Reset()))])
        #expect(fixture.bringUp().last == .finish(call, nil))
    }

    // MARK: Transport and stored state

    @Test func startFailsWithoutATransport() {
        var fixture = SessionFixture()
        _ = fixture.session.start(call)
        let effects = fixture.session.transportNotOpened("test", at: fixture.now)
        #expect(effects == [.finish(call, .controllerFailed("test"))])
        #expect(fixture.session.power == .off && !fixture.session.isTransportOpen)
    }

    @Test(arguments: steps)
    private func startFailsIfTheTransportIsLost(step: BringUpStep) {
        var fixture = SessionFixture.bringingUp(at: step, ControllerSessionBringUpTests.profile)
        let effects = fixture.session.transportEnded("lost", at: fixture.now)
        let report = SessionEffect.report(.failedDuringBringUp(reason: "lost"))
        #expect(effects == [report, .finish(call, .controllerFailed("lost"))])
        #expect(fixture.session.power == .off && fixture.session.deadline == nil)
    }

    @Test func startFailsIfTheTransportIsLostDuringAStepOfTheCaller() {
        var fixture = SessionFixture.bringingUp(at: .prepareAddresses)
        #expect(fixture.session.transportEnded("lost", at: fixture.now).count == 1)
        let effects = fixture.session.addressesPrepared(.aborted, at: fixture.now)
        #expect(effects == [.finish(call, .controllerFailed("lost"))])
    }

    @Test func startFailsIfTheStoredStateIsRequiredAndCannotBeRead() {
        var fixture = SessionFixture.bringingUp(at: .loadBonds)
        let effects = fixture.session.bondsLoaded(
            identity: SessionFixture.identity,
            obstacle: "the file is damaged",
            at: fixture.now
        )
        #expect(effects == [.closeTransport, .finish(call, .stateUnavailable("the file is damaged"))])
    }

    @Test func startFailsIfAddressesCannotBeSetUp() {
        var fixture = SessionFixture.bringingUp(at: .prepareAddresses)
        let failure = CommandFailure.status(.commandDisallowed, LESetRandomAddress.opcode)
        let effects = fixture.session.addressesPrepared(failure, at: fixture.now)
        #expect(effects == [.closeTransport, .finish(call, .command(failure))])
    }

    @Test func resultsThatNothingWaitsForAreIgnored() {
        var fixture = SessionFixture.on()
        #expect(fixture.session.addressesPrepared(.aborted, at: fixture.now) == [])
        #expect(fixture.session.bondsLoaded(identity: SessionFixture.identity, obstacle: "test", at: fixture.now) == [])
        #expect(fixture.session.transportOpened(at: fixture.now) == [])
        #expect(fixture.session.transportNotOpened("test", at: fixture.now) == [])
        #expect(fixture.session.receive([0].rawSpan, for: .bringUp(.reset), at: fixture.now) == [])
        #expect(fixture.session.power == .on)
    }
}
