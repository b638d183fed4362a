import BLE
import Testing

@testable import GatewayCore

struct LinkCapacityTests {
    @Test func capacityIsUnknownUntilALinkIsRefused() {
        var capacity = LinkCapacity()
        for count in 1...7 { capacity.linkMade(count: count) }
        #expect(capacity.count == nil)
        capacity.linkRefused(count: 7)
        #expect(capacity.count == 7)
    }

    @Test func laterSuccessShowsMore() {
        var capacity = LinkCapacity()
        capacity.linkRefused(count: 3)
        #expect(capacity.count == 3)
        capacity.linkMade(count: 2)
        #expect(capacity.count == 3)
        capacity.linkMade(count: 4)
        #expect(capacity.count == 4)
    }

    @Test func linkThatEndsDuringTheRefusalDoesNotReduceTheCapacity() {
        var capacity = LinkCapacity()
        for count in 1...7 { capacity.linkMade(count: count) }
        capacity.linkRefused(count: 6)
        #expect(capacity.count == 7)
    }

    @Test func refusalOfTheFirstLinkLeavesRoomForOne() {
        var capacity = LinkCapacity()
        capacity.linkRefused(count: 0)
        #expect(capacity.count == 1)
    }

    @Test func capacityIsForgottenWhenTheControllerIsReset() async throws {
        try await withTable(adapterCount: 1) { world in
            let (runner, table) = (world.runners[0], world.table)
            let slot = try table.acquireSlot(for: 1, isRandom: false)
            table.release(slot, isRefused: true)
            #expect(table.connectionSlots == ConnectionSlots(free: 1, limit: 1))
            runner.handle(.resetting(reason: "test"), table.adaptersChanged)
            #expect(table.capacity(of: 0) == nil)
            runner.handle(.poweredOn(try await world.adapters[0].information), table.adaptersChanged)
            #expect(table.connectionSlots == ConnectionSlots(free: 20, limit: 20))
        }
    }

    @Test(
        arguments: [
            // The limit of the gateway, the connections in use, the adapters that can be used, and the slots.
            (20, 0, [], ConnectionSlots(free: 0, limit: 20)),
            (20, 3, [(nil, 3)], ConnectionSlots(free: 17, limit: 20)),
            (20, 7, [(7, 7)], ConnectionSlots(free: 0, limit: 7)),
            (20, 5, [(7, 5)], ConnectionSlots(free: 2, limit: 7)),
            (20, 9, [(7, 7), (5, 2)], ConnectionSlots(free: 3, limit: 12)),
            (20, 9, [(7, 7), (nil, 2)], ConnectionSlots(free: 11, limit: 20)),
            (4, 3, [(7, 3)], ConnectionSlots(free: 1, limit: 4)),
            // A link of an adapter that has been removed is ending.
            (20, 3, [(7, 2)], ConnectionSlots(free: 5, limit: 7)),
            // An attempt is under way beyond the capacity.
            (20, 8, [(7, 8)], ConnectionSlots(free: 0, limit: 7)),
        ] as [(Int, Int, [(Int?, Int)], ConnectionSlots)]
    )
    func slotsFollowWhatTheControllersHold(
        limit: Int,
        usedCount: Int,
        adapters: [(Int?, Int)],
        slots: ConnectionSlots
    ) {
        let adapters = adapters.map { ConnectionSlots.Adapter(capacity: $0.0, usedCount: $0.1) }
        #expect(ConnectionSlots(configuredLimit: limit, usedCount: usedCount, adapters: adapters) == slots)
    }

    @Test(arguments: [
        HCIErrorCode.memoryCapacityExceeded, .connectionLimitExceeded, .connectionRejectedDueToLimitedResources,
    ])
    func clientIsToldThatNoConnectionIsLeft(code: HCIErrorCode) {
        #expect(ClientErrorCode.connection(.disconnected(.controller(code))) == 17)
        #expect(DeviceCommandError(connection: .disconnected(.controller(code))).code == .connectionFailed)
    }
}
