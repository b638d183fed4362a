import BLEHCI
import BLEVirtualController
import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BLE

@Suite("Channel Sounding")
struct ChannelSoundingTests {
    /// Two hosts with an encrypted link. Their controllers report each procedure as aborted.
    private struct Pair {
        let central: Adapter
        let peripheral: Adapter
        let link: RemotePeripheral
        let client: ClientID

        init(in world: World, centralCan: Bool = true, peripheralCan: Bool = true, pairs: Bool = true) async throws {
            central = try await Self.open("central", in: world, centralCan)
            peripheral = try await Self.open("peripheral", in: world, peripheralCan)
            let events = await peripheral.peripheral.events()
            let advertising = try await peripheral.peripheral.startAdvertising(AdvertisementConfiguration())
            link = try await central.central.connect(to: try await peripheral.information.identityAddress)
            if pairs { try await link.pair() }
            var connected: ClientID?
            for await event in events {
                if case .connected(let client, _) = event {
                    connected = client
                    break
                }
            }
            client = try #require(connected)
            await advertising.stop()
        }

        private static func open(_ name: String, in world: World, _ isAble: Bool) async throws -> Adapter {
            let device = world.device(name) { if !isAble { $0.features.remove(.channelSounding) } }
            return try await device.openAdapter { $0.security.justWorks = .always }
        }

        /// Starts a session of the peripheral as the reflector, and returns once it waits for the central.
        func reflect(in world: World) async throws -> Task<[ChannelSoundingEvent], any Error> {
            let (peripheral, client) = (peripheral, client)
            let task = Task(executorPreference: world.taskExecutor) {
                var events: [ChannelSoundingEvent] = []
                for try await event in peripheral.peripheral.channelSounding(with: client) { events.append(event) }
                return events
            }
            try await world.sleep(for: .milliseconds(100))
            return task
        }
    }

    private static func collect(_ events: ChannelSoundingEvents) async throws -> [ChannelSoundingEvent] {
        var all: [ChannelSoundingEvent] = []
        for try await event in events { all.append(event) }
        return all
    }

    @Test(arguments: [1, 3] as [UInt16]) func bothDevicesReportEachProcedure(count: UInt16) throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            #expect(try await pair.central.supportsChannelSounding)
            #expect(try await pair.central.channelSoundingCapabilities().numConfigSupported == 4)
            let reflecting = try await pair.reflect(in: world)
            let parameters = ChannelSoundingParameters(procedureCount: count, procedureInterval: 2...10)
            for (number, events) in [
                try await Self.collect(pair.link.channelSounding(parameters)), try await reflecting.value,
            ].enumerated() {
                guard case .started(let procedures)? = events.first else {
                    Issue.record("\(events)")
                    return
                }
                #expect(procedures.configuration.role == (number == 0 ? .initiator : .reflector))
                #expect(procedures.procedureCount == count)
                #expect(events.count == 1 + Int(count))
                for (index, event) in events.dropFirst().enumerated() {
                    guard case .subevent(let subevent) = event else {
                        Issue.record("\(event)")
                        continue
                    }
                    #expect(Int(subevent.procedureCounter) == index && subevent.stepCount == 0)
                    #expect(subevent.progress.procedureDoneStatus == .aborted)
                }
            }
            // A second session has nothing left of the first.
            let again = try await pair.reflect(in: world)
            #expect(try await Self.collect(pair.link.channelSounding()).count == 2)
            _ = try await again.value
            await pair.link.disconnect()
            #expect(await pair.central.host.inspect().soundings == 0)
        }
    }

    @Test func sessionStopsWithItsIterator() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let reflecting = try await pair.reflect(in: world)
            var count = 0
            for try await _ in pair.link.channelSounding(ChannelSoundingParameters(procedureCount: 0)) {
                count += 1
                if count == 4 { break }
            }
            // The central has stopped the procedures, so the peripheral's session ends as well.
            #expect(try await reflecting.value.count >= 4)
            try await world.sleep(for: .seconds(1))
            #expect(await pair.central.host.inspect().soundings == 0)
            #expect(await pair.peripheral.host.inspect().soundings == 0)
        }
    }

    /// The iterator of the first session is released immediately before the second session starts.
    @Test func nextSessionStartsImmediatelyAfterTheRelease() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let (peripheral, client) = (pair.peripheral.peripheral, pair.client)
            let reflecting = Task(executorPreference: world.taskExecutor) {
                for _ in 1...2 {
                    for try await _ in peripheral.channelSounding(with: client) {}
                }
            }
            try await world.sleep(for: .milliseconds(100))
            for _ in 1...2 {
                var first: ChannelSoundingEvent?
                for try await event in pair.link.channelSounding(ChannelSoundingParameters(procedureCount: 0)) {
                    first = event
                    break
                }
                guard case .started? = first else {
                    Issue.record("\(String(describing: first))")
                    return
                }
            }
            try await reflecting.value
        }
    }

    @Test func sessionEndsWithItsLink() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let reflecting = try await pair.reflect(in: world)
            await pair.link.disconnect()
            await #expect(throws: BLEError.self) { try await reflecting.value }
        }
    }

    @Test func onlyOneSessionRunsOnALink() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let reflecting = try await pair.reflect(in: world)
            await #expect(throws: BLEError.self) {
                try await Self.collect(pair.peripheral.peripheral.channelSounding(with: pair.client))
            }
            reflecting.cancel()
            _ = try? await reflecting.value
        }
    }

    @Test func controllerWithoutTheFeatureIsNotSupported() throws {
        try World.run { world in
            let pair = try await Pair(in: world, centralCan: false)
            #expect(try await !pair.central.supportsChannelSounding)
            let error = BLEError.notSupported("this controller does not support channel sounding")
            await #expect(throws: error) { try await Self.collect(pair.link.channelSounding()) }
            await #expect(throws: error) { try await pair.central.channelSoundingCapabilities() }
        }
    }

    @Test func peerWithoutTheFeatureRefuses() throws {
        try World.run { world in
            let pair = try await Pair(in: world, peripheralCan: false)
            await #expect(throws: BLEError.self) { try await Self.collect(pair.link.channelSounding()) }
            #expect(await pair.central.host.inspect().soundings == 0)
        }
    }

    @Test func peerThatIsNotPreparedRefusesTheRole() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            await #expect(throws: BLEError.self) { try await Self.collect(pair.link.channelSounding()) }
            // Later it is prepared.
            let reflecting = try await pair.reflect(in: world)
            #expect(try await Self.collect(pair.link.channelSounding()).count == 2)
            _ = try await reflecting.value
        }
    }

    /// Both sessions start immediately after the connection, before encryption has verified the devices.
    @Test func sessionWaitsUntilABondedPeerIsVerified() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            await pair.link.disconnect()
            let peripheral = pair.peripheral.peripheral
            let events = await peripheral.events()
            let reflecting: Task<Int, any Error> = Task(executorPreference: world.taskExecutor) {
                var count = 0
                for await event in events {
                    guard case .connected(let client, _) = event else { continue }
                    for try await _ in peripheral.channelSounding(with: client) { count += 1 }
                    break
                }
                return count
            }
            let advertising = try await peripheral.startAdvertising(AdvertisementConfiguration())
            let address = try await pair.peripheral.information.identityAddress
            let link = try await pair.central.central.connect(to: address)
            #expect(try await Self.collect(link.channelSounding()).count == 2)
            #expect(try await reflecting.value == 2)
            await advertising.stop()
        }
    }

    @Test func linkWithoutEncryptionIsRefused() throws {
        try World.run { world in
            let pair = try await Pair(in: world, pairs: false)
            do throws(BLEError) {
                for try await _ in pair.link.channelSounding() {}
                Issue.record("accepted")
            } catch {
                guard case .security = error else {
                    Issue.record("\(error)")
                    return
                }
            }
        }
    }
}
