import BLEHCI
import BLEL2CAP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Subrate, transmit power and path loss of one link")
struct LinkPowerTests {
    private typealias Fixture = LinkControlFixture
    private let calls = LinkControlFixture.calls
    private let thresholds = PathLossThresholds(low: 50, high: 80, hysteresis: 3, minimumEvents: 5)

    private func finish(_ call: Int, _ error: HostError? = nil) -> ControlEffect { .finish(calls[call], error) }

    private func observation(_ value: UInt64) -> LinkObservation {
        LinkObservation(value: value, link: LinkIdentifier(handle: Fixture.handle, serial: 1))
    }

    private func bytes(_ effect: ControlEffect?) -> String {
        guard case .command(let command, _)? = effect else { return "no command" }
        let request: CommandRequest? =
            switch command {
            case .requestSubrate(let command): CommandRequest(command, .unawaited)
            case .readRemotePower(let command): CommandRequest(command, .unawaited)
            case .reportTransmitPower(let command): CommandRequest(command, .unawaited)
            case .setPathLossThresholds(let command): CommandRequest(command, .unawaited)
            case .reportPathLoss(let command): CommandRequest(command, .unawaited)
            case .setPHY(let command): CommandRequest(command, .unawaited)
            default: nil
            }
        return request.map { $0.packet.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() } ?? ""
    }

    // MARK: Subrate

    @Test func requestsOfASubrateFollowEachOther() {
        var link = Fixture()
        let first = link.request(Fixture.subrate, 0)
        #expect(first == [Fixture.requestSubrate(1)])
        #expect(bytes(first.first) == "017e200c4000020004000100" + "01009001")
        #expect(link.request(Fixture.subrate, 1) == [])
        let changed = link.control.received(Fixture.subrated(3), link.context)
        #expect(
            changed == [.report(.parametersChanged(link.control.parameters)), finish(0), Fixture.requestSubrate(2)]
        )
        #expect(link.control.parameters.subrateFactor == 3 && link.control.parameters.continuationNumber == 1)
        #expect(link.control.parameters.latencyInEvents == 1)
        #expect(link.control.parameters.supervisionTimeout == .seconds(5))
        let refused = HCIErrorCode.unsupportedRemoteFeature
        #expect(
            link.control.received(Fixture.subrated(1, refused), link.context)
                == [finish(1, .command(.status(refused, LESubrateRequest.opcode)))]
        )
        #expect(link.control.parameters.subrateFactor == 3)
    }

    @Test func subrateOfThePeerIsReported() {
        var link = Fixture(.peripheral)
        #expect(
            link.control.received(Fixture.subrated(4), link.context)
                == [.report(.parametersChanged(link.control.parameters))]
        )
        #expect(link.control.parameters.subrateFactor == 4)
    }

    @Test func anotherIntervalEndsSubrating() {
        var link = Fixture()
        _ = link.control.received(Fixture.subrated(4), link.context)
        _ = link.updated(24)
        #expect(link.control.parameters.subrateFactor == 4 && link.control.parameters.continuationNumber == 1)
        _ = link.updated(40)
        #expect(link.control.parameters.subrateFactor == 1 && link.control.parameters.continuationNumber == 0)
    }

    @Test(
        arguments: [
            (SubrateParameters(factor: 1...500), true), (SubrateParameters(factor: 1...501), false),
            (SubrateParameters(factor: 0...1), false), (SubrateParameters(factor: 1...250, maximumLatency: 1), true),
            (SubrateParameters(factor: 1...251, maximumLatency: 1), false),
            (SubrateParameters(factor: 1...4, continuationNumber: 3), true),
            (SubrateParameters(factor: 1...4, continuationNumber: 4), false),
            (SubrateParameters(factor: 1...1, supervisionTimeout: .milliseconds(90)), false),
            (SubrateParameters(factor: 1...1, supervisionTimeout: .milliseconds(32_010)), false),
            (SubrateParameters(factor: -3...1), false),
            (SubrateParameters(factor: 1...1, maximumLatency: .max - 1), false),
        ] as [(SubrateParameters, Bool)]
    )
    func subrateParametersHaveRanges(parameters: SubrateParameters, isValid: Bool) {
        #expect(parameters.isValid == isValid)
    }

    /// The interval of the link is 30 ms. The subrate factor counts although another interval ends subrating.
    @Test(
        arguments: [
            (30...30, 480, false), (30...30, 490, true), (40...40, 640, false), (40...40, 650, true),
            (20...40, 640, false), (20...40, 650, true),
        ] as [(ClosedRange<Int>, Int, Bool)]
    )
    func updateOfASubratedLinkNeedsALongTimeout(interval: ClosedRange<Int>, timeout: Int, isSent: Bool) {
        var link = Fixture()
        _ = link.control.received(Fixture.subrated(4), link.context)
        let wanted = ConnectionParameters(
            interval: .milliseconds(interval.lowerBound)...(.milliseconds(interval.upperBound)),
            latencyInEvents: 1,
            supervisionTimeout: .milliseconds(timeout)
        )
        #expect(wanted.isValid)
        let effects = link.request(.parameters(wanted), 0)
        if isSent {
            #expect(effects.count == 1 && link.control.procedures[.connectionUpdate].isRunning)
        } else {
            guard case .finish(calls[0], .invalidArgument(let text)?)? = effects.first else {
                Issue.record("\(effects)")
                return
            }
            #expect(text.hasSuffix("use more than \(Duration.milliseconds(16 * interval.upperBound))"))
            #expect(effects.count == 1 && !link.control.procedures[.connectionUpdate].isRunning)
        }
        let event = LERemoteConnectionParameterRequest(
            connectionHandle: Fixture.handle,
            intervalMin: wanted.intervalMinimum,
            intervalMax: wanted.intervalMaximum,
            maxLatency: 1,
            timeout: wanted.timeout
        )
        #expect(link.control.accepts(event) == isSent)
    }

    @Test("A peripheral's request that waited while the subrate changed is dropped if it does not fit any more")
    func requestOfThePeripheralThatNoLongerFitsIsDropped() {
        var link = Fixture()
        _ = link.request(Fixture.request(50), 0)
        let request = ConnectionParameterUpdateRequest(intervalMin: 40, intervalMax: 40, latency: 0, timeout: 40)
        #expect(link.control.parameters.allow(request))
        #expect(link.control.peerRequested(request, link.context) == [])
        _ = link.control.received(Fixture.subrated(4), link.context)
        // The interval stays, and so does the subrate.
        #expect(link.updated(24) == [.finish(calls[0], nil)])
        #expect(!link.control.parameters.allow(request))
        #expect(!link.control.procedures[.connectionUpdate].isRunning)
        #expect(!link.control.procedures[.connectionUpdate].isPostponed)
    }

    @Test func supervisionTimeoutIsLongerThanTwoSubratedIntervals() {
        let parameters = SubrateParameters(factor: 1...10, maximumLatency: 1, supervisionTimeout: .seconds(4))
        #expect(parameters.areValid(interval: .milliseconds(98.75)))
        #expect(!parameters.areValid(interval: .milliseconds(100)))
    }

    // MARK: Transmit power

    @Test func readingsOfThePeersPowerFollowEachOther() throws {
        var link = Fixture()
        let first = link.request(.peerPower(.le1M), 0)
        #expect(first == [Fixture.readPower(.le1M, 1)])
        #expect(bytes(first.first) == "01772003400001")
        #expect(link.request(.peerPower(.leCodedS2), 1) == [])
        let effects = link.control.received(Fixture.power(.remoteRead, -4, limits: .minimum), link.context)
        guard case .finishPowerRead(calls[0], let power)? = effects.first else {
            Issue.record("\(effects)")
            return
        }
        #expect(power.level == -4 && power.isMinimum && !power.isMaximum && power.isManaged && power.phy == .le1M)
        #expect(effects.last == Fixture.readPower(.leCodedS2, 2))
        let refused = HCIErrorCode.unsupportedRemoteFeature
        #expect(
            link.control.received(Fixture.power(.remoteRead, 127, status: refused), link.context)
                == [finish(1, .command(.status(refused, LEReadRemoteTransmitPowerLevel.opcode)))]
        )
    }

    @Test(arguments: [(126, nil, false), (127, nil, true), (20, 20, true), (-127, -127, true)] as [(Int8, Int?, Bool)])
    func levelsWithoutAPowerAreNil(level: Int8, expected: Int?, isManaged: Bool) {
        let power = TransmitPower(Fixture.power(.remoteRead, level, limits: [.minimum, .maximum]))
        #expect(power.level == expected && power.isManaged == isManaged)
        #expect(power.isMinimum == (expected != nil) && power.isMaximum == (expected != nil))
    }

    @Test func changeOfAPowerEndsNoReading() {
        var link = Fixture()
        _ = link.request(.peerPower(.le1M), 0)
        let effects = link.control.received(Fixture.power(.remoteChange, -8, delta: -4), link.context)
        guard case .report(.transmitPowerChanged(let change))? = effects.first else {
            Issue.record("\(effects)")
            return
        }
        #expect(effects.count == 1 && change.isOfPeer && change.delta == -4 && change.power.level == -8)
        #expect(link.control.received(Fixture.power(.localChange, 0, status: .unspecifiedError), link.context) == [])
        #expect(link.control.procedures[.powerRead].isRunning)
    }

    @Test func codingOfThePHYIsSent() {
        var link = Fixture()
        let coded = LinkRequest.phys(transmit: .leCoded, receive: .leCoded, coding: .preferS2Coding)
        #expect(bytes(link.request(coded, 0).first) == "013220074000" + "0004040100")
    }

    // MARK: Reports

    @Test func powerIsReportedWhileAnObserverWantsIt() throws {
        var link = Fixture()
        let plain = try link.control.observe(observation(1), LinkEventRequest())
        #expect(plain == [])
        let enable = try link.control.observe(observation(2), LinkEventRequest(transmitPower: true))
        #expect(bytes(enable.first) == "017a200440000101")
        let more = try link.control.observe(observation(3), LinkEventRequest(transmitPower: true))
        #expect(more == [], "a command is in flight")
        #expect(link.control.reportsChanged(.enableTransmitPower) == [])
        let change = TransmitPowerChange(
            isOfPeer: true,
            power: TransmitPower(Fixture.power(.remoteChange, 0)),
            delta: nil
        )
        let wanting = link.control.reports.observations(of: .transmitPowerChanged(change))
        #expect(wanting == [observation(2), observation(3)])
        #expect(link.control.removeObservation(observation(2)) == [])
        let disable = link.control.removeObservation(observation(3))
        #expect(bytes(disable.first) == "017a200440000000")
        #expect(link.control.reportsChanged(.disableTransmitPower) == [])
        #expect(link.control.reports.observations == [observation(1)])
    }

    @Test func thresholdsAreSetBeforePathLossIsReported() throws {
        var link = Fixture()
        let set = try link.control.observe(observation(1), LinkEventRequest(pathLoss: thresholds))
        #expect(bytes(set.first) == "01782008400050033203" + "0500")
        let enable = link.control.reportsChanged(.setPathLossThresholds)
        #expect(bytes(enable.first) == "01792003400001")
        #expect(link.control.reportsChanged(.enablePathLoss) == [])
        let event = LEPathLossThreshold(connectionHandle: Fixture.handle, currentPathLoss: 84, zoneEntered: .high)
        #expect(
            link.control.received(event) == [.report(.pathLossZoneEntered(PathLossReport(pathLoss: 84, zone: .high)))]
        )
        let unknown = LEPathLossThreshold(connectionHandle: Fixture.handle, currentPathLoss: 0xFF, zoneEntered: .low)
        #expect(
            link.control.received(unknown) == [.report(.pathLossZoneEntered(PathLossReport(pathLoss: nil, zone: .low)))]
        )
        #expect(throws: HostError.self) {
            try link.control.observe(observation(2), LinkEventRequest(pathLoss: PathLossThresholds(low: 40)))
        }
        let disable = link.control.removeObservation(observation(1))
        #expect(bytes(disable.first) == "01792003400000")
        // While that command is in flight, others are wanted.
        let next = try link.control.observe(observation(2), LinkEventRequest(pathLoss: PathLossThresholds(low: 40)))
        #expect(next == [])
        #expect(bytes(link.control.reportsChanged(.disablePathLoss).first) == "017820084000ff0028020400")
    }

    @Test func refusedReportsEndTheirObservers() throws {
        var link = Fixture()
        _ = try link.control.observe(observation(1), LinkEventRequest(transmitPower: true))
        _ = try link.control.observe(observation(2), LinkEventRequest(pathLoss: thresholds))
        let refusal = CommandFailure.status(.commandDisallowed, LESetTransmitPowerReportingEnable.opcode)
        let effects = link.control.commandFailed(.reports(.enableTransmitPower), refusal, link.context)
        #expect(effects.first == .endObservation(observation(1), .command(refusal)))
        #expect(effects.count == 2, "path loss follows")
        #expect(link.control.reports.observations == [observation(2)])
    }

    @Test(
        arguments: [
            (PathLossThresholds(low: 50, high: 54, hysteresis: 2), true),
            (PathLossThresholds(low: 50, high: 53, hysteresis: 2), false),
            (PathLossThresholds(low: 1, hysteresis: 2), false), (PathLossThresholds(low: 255), false),
            (PathLossThresholds(low: 50, high: 255), false), (PathLossThresholds(low: 50, hysteresis: -1), false),
            (PathLossThresholds(low: 50, minimumEvents: 65_536), false),
            (PathLossThresholds(low: 60, high: 50, hysteresis: 0), false), (PathLossThresholds(low: 2), true),
        ] as [(PathLossThresholds, Bool)]
    )
    func pathLossThresholdsHaveRanges(thresholds: PathLossThresholds, isValid: Bool) {
        #expect(thresholds.isValid == isValid)
    }

    @Test func observersOfALinkAreBounded() throws {
        var link = Fixture()
        for number in 0..<LinkReports.limit {
            _ = try link.control.observe(observation(UInt64(number)), LinkEventRequest())
        }
        let error = HostError.limitReached("32 observers receive the events of the link, the maximum; end one first")
        #expect(throws: error) { try link.control.observe(observation(99), LinkEventRequest()) }
    }

    @Test func endOfTheLinkEndsItsObservers() throws {
        var link = Fixture()
        _ = try link.control.observe(observation(1), LinkEventRequest(transmitPower: true))
        let error = HostError.disconnected(.controller(.connectionTimeout))
        #expect(link.control.linkEnded(.controller(.connectionTimeout)) == [.endObservation(observation(1), error)])
        #expect(throws: error) { try link.control.observe(observation(2), LinkEventRequest()) }
        #expect(link.control.reportsChanged(.enableTransmitPower) == [])
        #expect(link.control.removeObservation(observation(1)) == [])
        #expect(link.control.received(Fixture.subrated(2), link.context) == [])
        #expect(link.control.received(Fixture.power(.remoteRead, 1), link.context) == [])
    }
}
