import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

extension SynchronizationPlanFixture {
    /// A plan for a controller with a periodic advertiser list.
    fileprivate static var withList: SynchronizationPlanFixture {
        SynchronizationPlanFixture(
            commands: [LEAddDeviceToPeriodicAdvertiserList.opcode, LEClearPeriodicAdvertiserList.opcode]
        )
    }

    @discardableResult
    fileprivate mutating func start(
        _ number: UInt64,
        timeout: Duration = .seconds(1),
        address: DeviceAddress? = nil
    ) throws -> SynchronizationIdentifier {
        let identifier = SynchronizationIdentifier(value: number)
        let address = address ?? GAPSample.address(number)
        try plan.start(identifier, PeriodicTrainRequest(address: address, sid: 3, timeout: timeout))
        return identifier
    }

    /// Answers commands with success until there is none.
    ///
    /// - Returns: their bytes after the H4 indicator, without those of the event mask.
    fileprivate mutating func settledBytes() -> [String] {
        settle().filter { $0.opcode != LESetEventMask.opcode }.map(\.hexadecimal)
    }

    fileprivate mutating func established(
        _ handle: UInt16,
        _ number: UInt64,
        _ status: HCIErrorCode = .success
    ) -> [SynchronizationEffect] {
        plan.established(
            LEPeriodicAdvertisingSyncEstablishedV2(
                status: status,
                syncHandle: handle,
                advertisingSID: 3,
                advertiserAddress: PeerAddress(GAPSample.address(number)),
                advertiserPHY: .le1M,
                periodicAdvertisingInterval: 80,
                advertiserClockAccuracy: 0
            )
        )
    }
}

private let train = PeriodicTrain(interval: .milliseconds(100), phy: .le1M)

@Suite("The plan for synchronizations, with the periodic advertiser list")
struct PeriodicAdvertiserListPlanTests {
    private static let clear = "492000"
    private static let cancel = "452000"
    private static func add(_ number: String) -> String { "47200801\(number)00000000c003" }
    /// Without the options: SID 3, random address, no skip, a timeout of 1 s.
    private static func create(_ options: String, _ number: String) -> String {
        "44200e\(options)0301\(number)00000000c00000640000"
    }

    @Test("Several trains are searched for at the same time, and one alone without the list")
    func severalTrainsAreSearchedForAtTheSameTime() throws {
        var fixture = SynchronizationPlanFixture.withList
        let first = try fixture.start(1)
        let second = try fixture.start(2)
        let third = try fixture.start(3)
        #expect(
            fixture.settledBytes() == [Self.add("01"), Self.add("02"), Self.add("03"), Self.create("01", "01")]
        )
        #expect(fixture.plan.deadline == nil, "none waits for its turn")
        #expect(fixture.established(7, 2) == [.synchronized(second, train)])
        #expect(
            fixture.settledBytes() == [Self.clear, Self.add("01"), Self.add("03"), Self.create("01", "01")]
        )
        #expect(fixture.established(8, 3) == [.synchronized(third, train)])
        #expect(fixture.settledBytes() == [Self.create("00", "01")])
        #expect(fixture.established(9, 1) == [.synchronized(first, train)])
        #expect(fixture.settledBytes() == [] && !fixture.plan.isSearching)
    }

    @Test("Trains with other parameters, and those of private addresses, take turns")
    func trainsWithOtherParametersTakeTurns() throws {
        var fixture = SynchronizationPlanFixture.withList
        try fixture.start(1)
        try fixture.start(2, timeout: .seconds(2))
        try fixture.start(3)
        try fixture.start(4, address: DeviceAddress(0x4000_0000_0004, isRandom: true))
        #expect(fixture.settledBytes() == [Self.add("01"), Self.add("03"), Self.create("01", "01")])
        let deadline = try #require(fixture.plan.deadline)
        fixture.now = deadline
        let isDue = fixture.plan.advance(to: deadline)
        #expect(isDue)
        #expect(fixture.settledBytes() == [Self.cancel])
        #expect(fixture.established(0, 0, .operationCancelledByHost) == [])
        #expect(fixture.settledBytes() == ["44200e0003010200000000c00000c80000"], "the second one alone")
    }

    @Test("A stopped synchronization leaves the list, and the others are searched for further")
    func stoppedSynchronizationLeavesTheList() throws {
        var fixture = SynchronizationPlanFixture.withList
        let first = try fixture.start(1)
        let second = try fixture.start(2)
        try fixture.start(3)
        _ = fixture.settle()
        fixture.plan.stop(first)
        let cancel = try fixture.requireNext()
        #expect(cancel.command.hexadecimal == Self.cancel)
        // The stopped one is found at the same time.
        #expect(fixture.established(7, 1) == [])
        #expect(
            fixture.plan.failed(cancel.step, GAPSample.refusal(of: cancel.command, .commandDisallowed)).count == 1
        )
        #expect(
            fixture.settledBytes() == [
                "4620020700", Self.clear, Self.add("02"), Self.add("03"), Self.create("01", "02"),
            ]
        )
        #expect(fixture.established(8, 2) == [.synchronized(second, train)])
    }

    @Test("A full list holds as many trains as fit; the others have their turns")
    func fullListHoldsAsManyAsFit() throws {
        var fixture = SynchronizationPlanFixture.withList
        for number in 1...3 as ClosedRange<UInt64> { try fixture.start(number) }
        let mask = try fixture.requireNext()
        fixture.plan.finished(mask.step)
        for _ in 0..<2 {
            let add = try fixture.requireNext()
            fixture.plan.finished(add.step)
        }
        let third = try fixture.requireNext()
        #expect(third.command.hexadecimal == Self.add("03"))
        let full = GAPSample.refusal(of: third.command, .memoryCapacityExceeded)
        #expect(fixture.plan.failed(third.step, full) == [.ignore(full)])
        #expect(fixture.settledBytes() == [Self.create("01", "01")])
        fixture.now = try #require(fixture.plan.deadline)
        _ = fixture.plan.advance(to: fixture.now)
        _ = fixture.settle()
        _ = fixture.established(0, 0, .operationCancelledByHost)
        #expect(fixture.settledBytes() == [Self.clear, Self.add("03"), Self.add("01"), Self.create("01", "03")])
    }

    @Test("A change of the list that is refused because of a lost end of a creation is tried again")
    func changeThatIsRefusedAfterALostEndIsTriedAgain() throws {
        var fixture = SynchronizationPlanFixture.withList
        let first = try fixture.start(1)
        try fixture.start(2)
        _ = fixture.settle()
        fixture.plan.stop(first)
        #expect(fixture.settledBytes() == [Self.cancel])
        // The end of the creation is not reported, and the controller continues.
        fixture.now = try #require(fixture.plan.deadline)
        let isDue = fixture.plan.advance(to: fixture.now)
        #expect(isDue)
        try fixture.start(3)
        let clear = try fixture.requireNext()
        #expect(clear.command.hexadecimal == Self.clear)
        let refusal = GAPSample.refusal(of: clear.command, .commandDisallowed)
        #expect(fixture.plan.failed(clear.step, refusal) == [.ignore(refusal)])
        #expect(fixture.settledBytes() == [Self.cancel])
        #expect(fixture.established(0, 0, .operationCancelledByHost) == [])
        #expect(fixture.settledBytes() == [Self.clear, Self.add("02"), Self.add("03"), Self.create("01", "02")])
    }

    @Test(
        "A controller that refuses the list, or its use, creates one synchronization after the other",
        arguments: 0..<4
    )
    func controllerThatRefusesTheListCreatesOneAfterTheOther(refused: Int) throws {
        var fixture = SynchronizationPlanFixture.withList
        try fixture.start(1)
        try fixture.start(2)
        let mask = try fixture.requireNext()
        fixture.plan.finished(mask.step)
        // The commands: two additions, the creation, and the event of a train that was not asked for.
        for _ in 0..<min(refused, 2) {
            let next = try fixture.requireNext()
            fixture.plan.finished(next.step)
        }
        let next = try fixture.requireNext()
        if refused < 3 {
            let failure = GAPSample.refusal(of: next.command)
            #expect(fixture.plan.failed(next.step, failure) == [.ignore(failure)])
            #expect(fixture.settledBytes() == [Self.create("00", "01")])
        } else {
            fixture.plan.finished(next.step)
            #expect(fixture.established(7, 9) == [])
            #expect(fixture.settledBytes() == ["4620020700", Self.create("00", "01")])
        }
        _ = fixture.plan.controllerLost()
        #expect(fixture.settledBytes() == [Self.add("01"), Self.add("02"), Self.create("01", "01")], "after a reset")
    }
}
