import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

private typealias Fixture = SynchronizationPlanFixture

extension SynchronizationPlanFixture {
    fileprivate static func link(_ handle: UInt16) -> LinkIdentifier {
        LinkIdentifier(handle: ConnectionHandle(handle), serial: UInt64(handle))
    }

    fileprivate static let parameters = PeriodicSyncTransferParameters(skip: 2, timeout: .milliseconds(2560))

    /// Begins a reception of all links, or of one.
    @discardableResult
    fileprivate mutating func receive(
        _ number: UInt64,
        on link: LinkIdentifier? = nil,
        _ parameters: PeriodicSyncTransferParameters = parameters,
        existing: [UInt16] = []
    ) throws -> SyncTransferReceptionIdentifier {
        let identifier = SyncTransferReceptionIdentifier(value: number)
        try plan.reception.start(
            .init(identifier: identifier, link: link, parameters: parameters),
            existing: existing.map { ConnectionHandle($0) }
        )
        return identifier
    }

    /// Answers commands with success until there is none.
    ///
    /// - Returns: their bytes after the H4 indicator.
    fileprivate mutating func settledBytes() -> [String] { settle().map(\.hexadecimal) }

    fileprivate mutating func transferred(
        _ handle: UInt16,
        on link: UInt16 = 0x40,
        sid: UInt8 = 9,
        _ status: HCIErrorCode = .success,
        as number: UInt64 = 100
    ) -> [SynchronizationEffect] {
        plan.transferReceived(
            LEPeriodicAdvertisingSyncTransferReceivedV2(
                status: status,
                connectionHandle: ConnectionHandle(link),
                serviceData: 0x5678,
                syncHandle: handle,
                advertisingSID: sid,
                advertiserAddress: PeerAddress(GAPSample.address(1)),
                advertiserPHY: .le2M,
                periodicAdvertisingInterval: 80,
                advertiserClockAccuracy: 0
            ),
            as: SynchronizationIdentifier(value: number)
        )
    }

    /// The effect of a transfer that begins a synchronization.
    fileprivate static func effect(
        _ reception: SyncTransferReceptionIdentifier,
        on link: UInt16 = 0x40,
        as number: UInt64 = 100
    ) -> SynchronizationEffect {
        .transferred(
            reception,
            TransferredSynchronization(
                identifier: SynchronizationIdentifier(value: number),
                link: ConnectionHandle(link),
                serviceData: 0x5678,
                request: request,
                train: train
            )
        )
    }

    fileprivate static let request = PeriodicTrainRequest(
        address: GAPSample.address(1),
        sid: 9,
        skip: 2,
        timeout: .milliseconds(2560)
    )
    fileprivate static let train = PeriodicTrain(interval: .milliseconds(100), phy: .le2M)

    fileprivate func mask(withTransfers: Bool = true) -> String {
        mask(withTransfers ? [.periodicAdvertisingSyncTransferReceived] : [])
    }

    fileprivate var subeventMask: String {
        mask([
            .periodicAdvertisingSyncTransferReceived, .periodicAdvertisingSyncTransferReceivedV2,
            .periodicAdvertisingSyncEstablishedV2, .periodicAdvertisingReportV2, .enhancedConnectionCompleteV2,
        ])
    }

    private func mask(_ others: LEEventMask) -> String {
        let mask = information.leEvents.union(others).union([
            .periodicAdvertisingSyncEstablished, .periodicAdvertisingReport, .periodicAdvertisingSyncLost,
        ])
        return GAPCommand(LESetEventMask(leEventMask: mask)).hexadecimal
    }
}

@Suite("The plan for transferred synchronizations")
struct SyncTransferPlanTests {
    // Mode 2 (reports enabled), skip 2, timeout 2.56 s, every kind of constant tone extension; or mode 0.
    private static let accept = "020200000100"
    private static let ignore = "000000e80300"

    private static func later(_ setting: String) -> String { "5d2006" + setting }
    private static func link(_ handle: String, _ setting: String) -> String { "5c2008" + handle + setting }

    @Test("The event mask is set first, then the setting of later links, then that of each link")
    func controllerIsToldToAcceptTransfers() throws {
        var fixture = Fixture()
        let reception = try fixture.receive(1, existing: [0x40, 0x41])
        #expect(fixture.plan.reception.takeReady() == [])
        #expect(
            fixture.settledBytes() == [
                fixture.mask(), Self.later(Self.accept), Self.link("4000", Self.accept),
                Self.link("4100", Self.accept),
            ]
        )
        #expect(fixture.plan.reception.takeReady() == [reception])
        #expect(fixture.plan.reception.takeReady() == [])
        fixture.plan.reception.stop(reception)
        #expect(
            fixture.settledBytes() == [
                Self.later(Self.ignore), Self.link("4000", Self.ignore), Self.link("4100", Self.ignore),
            ]
        )
        #expect(fixture.settledBytes() == [])
    }

    @Test("A reception of one link leaves the others alone, and precedes that of all links")
    func receptionOfOneLinkPrecedes() throws {
        var fixture = Fixture()
        let other = PeriodicSyncTransferParameters(skip: 0, timeout: .milliseconds(100))
        let own = try fixture.receive(1, on: Fixture.link(0x41), existing: [0x40, 0x41])
        #expect(fixture.settledBytes() == [fixture.mask(), Self.link("4100", Self.accept)])
        let all = try fixture.receive(2, other, existing: [0x40, 0x41])
        #expect(fixture.settledBytes() == [Self.later("0200000a0000"), Self.link("4000", "0200000a0000")])
        #expect(fixture.transferred(7, on: 0x41) == [Fixture.effect(own, on: 0x41)])
        fixture.plan.reception.stop(own)
        #expect(fixture.settledBytes() == [Self.link("4100", "0200000a0000")])
        fixture.plan.reception.stop(all)
        #expect(fixture.settledBytes().count == 3)
    }

    @Test("A later link has the setting of later links, unless that was changed while the link began")
    func laterLinkHasTheSettingOfLaterLinks() throws {
        var fixture = Fixture()
        #expect(fixture.plan.reception.linkBegan(0x40) == false, "no reception")
        try fixture.receive(1, existing: [])
        let mask = try fixture.requireNext()
        fixture.plan.finished(mask.step)
        let setting = try fixture.requireNext()
        _ = fixture.plan.reception.linkBegan(0x40)
        fixture.plan.finished(setting.step)
        #expect(fixture.settledBytes() == [Self.link("4000", Self.accept)])
        _ = fixture.plan.reception.linkBegan(0x41)
        #expect(fixture.settledBytes() == [])
        #expect(fixture.plan.reception.linkEnded(Fixture.link(0x41)) == [])
        #expect(fixture.settledBytes() == [])
    }

    @Test("A reception ends with its link")
    func receptionEndsWithItsLink() throws {
        var fixture = Fixture()
        let reception = try fixture.receive(1, on: Fixture.link(0x40), existing: [0x40])
        _ = fixture.settle()
        #expect(fixture.plan.reception.linkEnded(Fixture.link(0x40)) == [reception])
        #expect(fixture.plan.reception.receivers.isEmpty)
        #expect(fixture.settledBytes() == [])
        #expect(fixture.transferred(7) == [], "no reception")
        #expect(fixture.settledBytes() == ["4620020700"], "the train is not wanted")
    }

    @Test("A transferred train is received without a scan, and ends when it is lost")
    func transferredTrainIsReceived() throws {
        var fixture = Fixture()
        let reception = try fixture.receive(1, existing: [0x40])
        _ = fixture.settle()
        #expect(fixture.transferred(7) == [Fixture.effect(reception)])
        #expect(!fixture.plan.isSearching && fixture.settledBytes() == [])
        #expect(fixture.plan.handle(of: Fixture.request.train) == 7)
        let identifier = SynchronizationIdentifier(value: 100)
        #expect(fixture.plan.lost(7) == [.endTransferred(identifier)])
        #expect(fixture.plan.entries.isEmpty && !fixture.plan.isSearching)
        _ = fixture.transferred(8)
        #expect(fixture.plan.controllerLost() == [.endTransferred(identifier)])
        #expect(fixture.plan.entries.isEmpty)
        #expect(fixture.settledBytes() == [fixture.mask(), Self.later(Self.accept)], "the links have ended")
        #expect(fixture.plan.reception.takeReady() == [reception])
    }

    @Test("A transfer that fails is reported, and one of a train with an invalid identifier is not")
    func failedTransferIsReported() throws {
        var fixture = Fixture()
        let reception = try fixture.receive(1, existing: [0x40])
        _ = fixture.settle()
        #expect(
            fixture.transferred(0, .connectionFailedToBeEstablished)
                == [.transferFailed(reception, 0x40, serviceData: 0x5678, .connectionFailedToBeEstablished)]
        )
        #expect(fixture.transferred(7, sid: 16) == [])
        #expect(fixture.settledBytes() == ["4620020700"])
        _ = fixture.transferred(8)
        #expect(fixture.transferred(8, sid: 3, as: 101) == [], "a handle that is in use")
        #expect(fixture.plan.entries.count == 1)
    }

    @Test("A train that an app waits for goes to its synchronization", arguments: [false, true])
    func awaitedTrainGoesToItsSynchronization(isCreating: Bool) throws {
        var fixture = Fixture()
        try fixture.receive(1, existing: [0x40])
        _ = fixture.settle()
        let own = SynchronizationIdentifier(value: 50)
        try fixture.plan.start(own, Fixture.request)
        if isCreating { _ = fixture.settle() }
        #expect(fixture.transferred(7) == [.synchronized(own, Fixture.train)])
        #expect(!fixture.plan.isSearching)
        #expect(fixture.settledBytes() == (isCreating ? ["452000"] : []))
        // The train is found at the same time.
        let found = LEPeriodicAdvertisingSyncEstablished(
            syncHandle: 8,
            advertisingSID: 9,
            advertiserAddress: PeerAddress(GAPSample.address(1)),
            advertiserPHY: .le2M,
            periodicAdvertisingInterval: 80,
            advertiserClockAccuracy: 0
        )
        #expect(fixture.plan.established(.init(found)) == [])
        #expect(fixture.settledBytes() == ["4620020800"])
        #expect(fixture.transferred(9) == [], "the train is received already")
        #expect(fixture.settledBytes() == ["4620020900"])
    }

    @Test("A train without the subevents that an app searches for does not end the search", arguments: [false, true])
    func unfittingTrainDoesNotEndTheSearch(isCreating: Bool) throws {
        var fixture = Fixture()
        try fixture.receive(1, existing: [0x40])
        _ = fixture.settle()
        var request = Fixture.request
        request.subevents = [1]
        try fixture.plan.start(SynchronizationIdentifier(value: 50), request)
        if isCreating {
            let mask = try fixture.requireNext()
            #expect(mask.command.hexadecimal == fixture.subeventMask, "transfers are reported with their subevents")
            fixture.plan.finished(mask.step)
            _ = fixture.settle()
        }
        #expect(fixture.transferred(7) == [])
        #expect(fixture.plan.isSearching)
        #expect(fixture.settledBytes().contains("4620020700"))
    }

    @Test("Trains beyond the limit of synchronizations are refused")
    func trainsBeyondTheLimitAreRefused() throws {
        var fixture = Fixture()
        let reception = try fixture.receive(1, existing: [0x40])
        _ = fixture.settle()
        for number in 0..<UInt64(SynchronizationPlan.limit) {
            let request = PeriodicTrainRequest(address: GAPSample.address(1000 + number), sid: 1)
            try fixture.plan.start(SynchronizationIdentifier(value: number), request)
        }
        #expect(
            fixture.transferred(7, as: 1000)
                == [.transferFailed(reception, 0x40, serviceData: 0x5678, .memoryCapacityExceeded)]
        )
        let terminate = try fixture.requireNext()
        #expect(terminate.command == GAPCommand(LEPeriodicAdvertisingTerminateSync(syncHandle: 7)))
        for number in 2...UInt64(SyncTransferReception.limit) { try fixture.receive(number) }
        let error = HostError.limitReached(
            "there are 64 receptions of transferred trains, the maximum; stop another one first"
        )
        #expect(throws: error) { try fixture.receive(1000) }
    }

    @Test("A setting that the controller refuses ends the receptions that need it, and is not repeated")
    func refusedSettingEndsItsReceptions() throws {
        var fixture = Fixture()
        let all = try fixture.receive(1, existing: [0x40])
        let own = try fixture.receive(2, on: Fixture.link(0x40))
        let mask = try fixture.requireNext()
        fixture.plan.finished(mask.step)
        let later = try fixture.requireNext()
        let refusal = GAPSample.refusal(of: later.command)
        #expect(fixture.plan.failed(later.step, refusal) == [.endReception(all, refusal)])
        let reset = try fixture.requireNext()
        #expect(reset.command.hexadecimal == Self.later(Self.ignore), "no reception of all links is left")
        let ignored = GAPSample.refusal(of: reset.command)
        #expect(fixture.plan.failed(reset.step, ignored) == [.ignore(ignored)])
        let link = try fixture.requireNext()
        let unknown = CommandFailure.status(.unknownConnectionIdentifier, link.command.opcode)
        #expect(fixture.plan.failed(link.step, unknown) == [.endReception(own, unknown)])
        _ = fixture.settle()
        #expect(fixture.plan.reception.receivers.isEmpty && fixture.settledBytes() == [])
    }

    @Test("Refused events of subevents end the synchronization that needs them, and no reception")
    func refusedEventsOfSubeventsEndNoReception() throws {
        var fixture = Fixture()
        try fixture.receive(1)
        _ = fixture.settle()
        let identifier = SynchronizationIdentifier(value: 50)
        var request = Fixture.request
        request.subevents = [0]
        try fixture.plan.start(identifier, request)
        let mask = try fixture.requireNext()
        let refusal = GAPSample.refusal(of: mask.command)
        #expect(fixture.plan.failed(mask.step, refusal) == [.end(identifier, refusal)])
        #expect(fixture.next() == nil)
        #expect(fixture.plan.reception.receivers.count == 1)
    }

    @Test("Refused reports of transfers with subevents do not hide those without")
    func refusedTransfersOfSubeventsAreRequestedOnce() throws {
        var fixture = Fixture()
        let first = try fixture.receive(1)
        _ = fixture.settle()
        fixture.plan.reception.stop(first)
        _ = fixture.settle()
        var request = Fixture.request
        request.subevents = [0]
        try fixture.plan.start(SynchronizationIdentifier(value: 50), request)
        _ = fixture.settle()
        try fixture.receive(2)
        let mask = try fixture.requireNext()
        #expect(mask.command.hexadecimal == fixture.subeventMask)
        let refusal = GAPSample.refusal(of: mask.command)
        #expect(fixture.plan.failed(mask.step, refusal) == [.ignore(refusal)])
        #expect(fixture.settledBytes() == [Self.later(Self.accept)])
    }

    @Test("A train with the handle of an earlier one, which is being ended, is ended as well")
    func trainWithAReusedHandleEnds() throws {
        var fixture = Fixture()
        let reception = try fixture.receive(1, existing: [0x40])
        _ = fixture.settle()
        #expect(fixture.transferred(7) == [Fixture.effect(reception)])
        fixture.plan.stop(SynchronizationIdentifier(value: 100))
        let terminate = try fixture.requireNext()
        #expect(fixture.plan.lost(7) == [])
        #expect(fixture.transferred(7, as: 101) == [Fixture.effect(reception, as: 101)])
        let end = SynchronizationEffect.endTransferred(SynchronizationIdentifier(value: 101))
        #expect(fixture.plan.finished(terminate.step) == [end])
        #expect(fixture.plan.entries.isEmpty)
    }

    @Test("The event mask that synchronizations set does not hide transfers")
    func eventMaskKeepsTransfers() throws {
        var fixture = Fixture()
        try fixture.plan.start(SynchronizationIdentifier(value: 1), Fixture.request)
        let mask = try fixture.requireNext()
        #expect(mask.command.hexadecimal == fixture.mask(withTransfers: false))
        fixture.plan.finished(mask.step)
        try fixture.receive(1)
        #expect(fixture.settledBytes().prefix(2) == [fixture.mask(), Self.later(Self.accept)])
    }
}
