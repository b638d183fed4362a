import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BLE

@Suite("Periodic advertising with responses")
struct PeriodicResponsesTests {
    /// 4 subevents of 20 ms in an interval of 100 ms.
    static func configuration(
        _ subevents: PeriodicSubeventConfiguration = .init(count: 4)
    ) -> AdvertisementConfiguration {
        AdvertisementConfiguration(
            isConnectable: false,
            isScannable: false,
            periodic: PeriodicAdvertisingConfiguration(
                interval: .milliseconds(100),
                includesTXPower: true,
                subevents: subevents
            )
        )
    }

    static func data(_ bytes: [UInt8]) -> AdvertisingData {
        AdvertisingData([.manufacturerData(CompanyIdentifier(rawValue: 0xFFFF), bytes)])
    }

    static func value(_ data: AdvertisingData) -> [UInt8]? { data.manufacturerData.first.map { Array($0.data) } }

    /// Answers the data of a train's subevents with the slot and the same data.
    static func answer(
        _ central: Central,
        _ request: PeriodicTrainRequest,
        slot: UInt8,
        _ handle: @Sendable (PeriodicAdvertisingEvent) -> Void = { _ in }
    ) async throws {
        for try await event in central.periodicAdvertising(request) {
            handle(event)
            guard case .received(let advertisement) = event, let value = value(advertisement.data) else { continue }
            try await central.respond(data([slot] + value), to: advertisement, slot: slot)
        }
    }

    /// Sends numbered data in subevent 2 until each of two slots has answered a number of times from now on.
    static func exchange(_ advertising: AdvertisingSet, answers: Int) async throws {
        var left: [UInt8: Int] = [0: answers, 1: answers]
        var number: UInt8 = 0
        for await event in try await advertising.subeventEvents() {
            switch event {
            case .dataRequested(let subevents):
                guard subevents.contains(2) else { continue }
                number += 1
                try await advertising.send(data([number]), subevent: 2, responseSlots: 0..<3)
            case .response(let response):
                #expect(response.subevent == 2)
                guard response.outcome == .received else { continue }
                #expect(value(response.data)?.first == response.slot)
                #expect(response.rssi != nil && response.txPower != nil && response.slot < 2)
                left[response.slot]? -= 1
            case .notSent, .eventsDropped: Issue.record("\(event)")
            }
            if left.values.allSatisfy({ $0 <= 0 }) { return }
        }
        Issue.record("the events have ended")
    }

    @Test("Two responders in one subevent answer in their own slots, also after resets of the controllers")
    func respondersAnswerAlsoAfterResets() throws {
        try World.run { world in
            let advertiser = world.device("advertiser")
            let sender = try await advertiser.openAdapter()
            let devices = [world.device("first"), world.device("second")]
            var centrals: [Central] = []
            for device in devices { centrals.append(try await device.openAdapter().central) }
            let advertising = try await sender.peripheral.startAdvertising(Self.configuration())
            let request = PeriodicTrainRequest(
                address: try await sender.information.identityAddress,
                sid: 0,
                timeout: .seconds(1),
                subevents: [2],
                respondsWithTXPower: true
            )
            await withThrowingTaskGroup(of: Void.self) { group in
                for (slot, central) in centrals.enumerated() {
                    group.addTask {
                        // A response to a packet from before the reset is refused.
                        while !Task.isCancelled { try? await Self.answer(central, request, slot: UInt8(slot)) }
                    }
                }
                group.addTask {
                    try await Self.exchange(advertising, answers: 3)
                    advertiser.failWithHardwareError()
                    try await Self.exchange(advertising, answers: 3)
                    devices[0].failWithHardwareError()
                    try await world.sleep(for: .seconds(1))
                    try await Self.exchange(advertising, answers: 3)
                }
                // The last task has ended.
                await #expect(throws: Never.self) { try await group.next() }
                group.cancelAll()
            }
            await advertising.stop()
            await #expect(throws: BLEError.closed) {
                try await advertising.send(AdvertisingData(), subevent: 0)
            }
            await #expect(throws: BLEError.closed) { _ = try await advertising.subeventEvents() }
        }
    }

    /// A controller that sends a train, and one that listens to a subevent of it.
    private struct Shelf {
        let device: Device
        let sender: Adapter
        let advertising: AdvertisingSet
        let label: Adapter
        let labelAddress: DeviceAddress
        /// The data of each packet that the label has received; empty for a packet without data.
        let received = Log<[UInt8]>()
        let synchronization: Task<Void, any Error>

        /// - Parameter subevent: the subevent that the label listens to.
        init(
            in world: World,
            subevent: UInt8 = 1,
            configure: @Sendable (inout Adapter.Configuration) -> Void = { _ in }
        ) async throws {
            device = world.device("shelf")
            sender = try await device.openAdapter(configure)
            label = try await world.device("label").openAdapter(configure)
            labelAddress = try await label.information.identityAddress
            advertising = try await sender.peripheral.startAdvertising(PeriodicResponsesTests.configuration())
            let request = PeriodicTrainRequest(
                address: try await sender.information.identityAddress,
                sid: 0,
                subevents: [subevent]
            )
            let (central, received) = (label.central, received)
            let (found, continuation) = AsyncStream<Void>.makeStream()
            synchronization = Task(executorPreference: world.taskExecutor) {
                for try await case .received(let packet) in central.periodicAdvertising(request) {
                    received.append(PeriodicResponsesTests.value(packet.data) ?? [])
                    continuation.yield()
                }
            }
            var iterator = found.makeAsyncIterator()
            _ = await iterator.next()
        }
    }

    @Test("An advertiser connects to a device in a subevent of its train, and reads values of it")
    func advertiserConnectsInASubevent() throws {
        try World.run { world in
            let shelf = try await Shelf(in: world)
            let peer = try await shelf.advertising.connect(to: shelf.labelAddress, inSubevent: 1)
            #expect(peer.address == shelf.labelAddress)
            let names = try await peer.read(uuid: .deviceName)
            #expect(names.count == 1, "the attributes of the device are read")
            let again = try await shelf.advertising.connect(to: shelf.labelAddress, inSubevent: 1)
            let links = try await [peer.linkInformation, again.linkInformation]
            #expect(links[0] == links[1], "the link is shared")
            await again.disconnect()
            await peer.disconnect()
            shelf.synchronization.cancel()
        }
    }

    @Test("A device that listens to another subevent, or has another address, does not answer")
    func otherDevicesDoNotAnswer() throws {
        try World.run { world in
            let shelf = try await Shelf(in: world)
            for (address, subevent) in [(shelf.labelAddress, 2), (DeviceAddress(0xC000_0000_0001, isRandom: true), 1)] {
                await #expect(throws: BLEError.timedOut("connecting to \(address) in subevent \(subevent)")) {
                    _ = try await shelf.advertising.connect(
                        to: address,
                        inSubevent: UInt8(subevent),
                        timeout: .seconds(2)
                    )
                }
            }
            do throws(BLEError) {
                _ = try await shelf.advertising.connect(to: shelf.labelAddress, inSubevent: 4)
                Issue.record("there is no such subevent")
            } catch {
                if case .invalidArgument = error {} else { Issue.record("\(error)") }
            }
            let advertising = shelf.advertising
            let address = shelf.labelAddress
            let task = Task(executorPreference: world.taskExecutor) {
                try await advertising.connect(to: address, inSubevent: 2)
            }
            try await world.sleep(for: .seconds(1))
            task.cancel()
            await #expect(throws: BLEError.cancelled) { _ = try await task.value }
            // Nothing remains: a connection in the right subevent succeeds.
            let peer = try await advertising.connect(to: address, inSubevent: 1)
            await peer.disconnect()
            shelf.synchronization.cancel()
        }
    }

    @Test(
        "A connection in a subevent ends with its advertisement, continues after a reset, and does not hold up others"
    )
    func connectionInASubeventEndsWithItsAdvertisement() throws {
        try World.run { world in
            let shelf = try await Shelf(in: world)
            let (advertising, address) = (shelf.advertising, shelf.labelAddress)
            let absent = Task(executorPreference: world.taskExecutor) {
                try await advertising.connect(
                    to: DeviceAddress(0xC000_0000_0001, isRandom: true),
                    inSubevent: 2,
                    timeout: .seconds(3600)
                )
            }
            try await world.sleep(for: .seconds(1))
            let peer = try await advertising.connect(to: address, inSubevent: 1)
            await peer.disconnect()
            world.conditions = RadioConditions(isDead: true)
            let interrupted = Task(executorPreference: world.taskExecutor) {
                try await advertising.connect(to: address, inSubevent: 1, timeout: .seconds(60))
            }
            try await world.sleep(for: .milliseconds(500))
            shelf.device.failWithHardwareError()
            world.conditions = RadioConditions()
            try await interrupted.value.disconnect()
            await advertising.stop()
            await #expect(throws: BLEError.closed) { _ = try await absent.value }
            let lamp = try await world.device("lamp").openAdapter()
            let lampAdvertising = try await lamp.peripheral.startAdvertising(AdvertisementConfiguration())
            let other = try await shelf.sender.central.connect(to: lamp.information.identityAddress)
            await other.disconnect()
            await lampAdvertising.stop()
            shelf.synchronization.cancel()
        }
    }

    @Test("A device that also advertises with another address pairs on a connection in a subevent")
    func deviceThatAdvertisesPairsInASubevent() throws {
        try World.run { world in
            let shelf = try await Shelf(in: world) { $0.security.justWorks = .always }
            var configuration = AdvertisementConfiguration()
            configuration.address = DeviceAddress(0xC000_0000_0055, isRandom: true)
            let labelAdvertising = try await shelf.label.peripheral.startAdvertising(configuration)
            let peer = try await shelf.advertising.connect(to: shelf.labelAddress, inSubevent: 1)
            try await peer.pair()
            await peer.disconnect()
            await labelAdvertising.stop()
            shelf.synchronization.cancel()
        }
    }

    @Test("A request that is lost is repeated in the next event of the train")
    func lostRequestIsRepeated() throws {
        try World.run { world in
            let shelf = try await Shelf(in: world)
            let (advertising, address) = (shelf.advertising, shelf.labelAddress)
            world.conditions = RadioConditions(isDead: true)
            let task = Task(executorPreference: world.taskExecutor) {
                try await advertising.connect(to: address, inSubevent: 1)
            }
            try await world.sleep(for: .seconds(1))
            world.conditions = RadioConditions()
            let peer = try await task.value
            #expect(peer.address == address)
            await peer.disconnect()
            shelf.synchronization.cancel()
        }
    }

    @Test("The receiver learns the timing of the subevents, the place of each packet, and which it has missed")
    func receiverLearnsThePlaces() throws {
        try World.run { world in
            let sender = try await world.device("sender").openAdapter()
            let receiver = try await world.device("receiver").openAdapter()
            let advertising = try await sender.peripheral.startAdvertising(Self.configuration())
            let address = try await sender.information.identityAddress
            let request = PeriodicTrainRequest(address: address, sid: 0, subevents: [1, 3])
            var places: [PeriodicPlace] = []
            var missed: PeriodicPlace?
            for try await event in receiver.central.periodicAdvertising(request) {
                switch event {
                case .synchronized(let train):
                    let subevents = try #require(train.subevents)
                    #expect(train.interval == .milliseconds(100))
                    #expect(subevents.count == 4 && subevents.interval == .milliseconds(20))
                    #expect(subevents.responseSlotDelay == .milliseconds(10))
                    #expect(subevents.responseSlotSpacing == .microseconds(2500))
                case .received(let advertisement):
                    places.append(try #require(advertisement.place))
                    if places.count == 4 { world.conditions = RadioConditions(isDead: true) }
                case .missed(let place): missed = place
                case .lost, .eventsDropped: Issue.record("\(event)")
                }
                if missed != nil { break }
            }
            #expect(places.map(\.subevent) == [1, 3, 1, 3] || places.map(\.subevent) == [3, 1, 3, 1])
            let first = try #require(places.first)
            let last = try #require(places.last)
            #expect(last.event &- first.event == (first.subevent == 1 ? 1 : 2))
            #expect(missed?.event == last.event &+ (last.subevent == 3 ? 1 : 0))
            await advertising.stop()
        }
    }

    @Test("A response that is too late, too long, or to a packet of another train is refused")
    func impossibleResponsesAreRefused() throws {
        try World.run { world in
            let sender = try await world.device("sender").openAdapter()
            let central = try await world.device("receiver").openAdapter().central
            let advertising = try await sender.peripheral.startAdvertising(Self.configuration())
            let request = PeriodicTrainRequest(
                address: try await sender.information.identityAddress,
                sid: 0,
                subevents: [0]
            )
            var packet: PeriodicAdvertisement?
            for try await case .received(let advertisement) in central.periodicAdvertising(request) {
                packet = advertisement
                let long = AdvertisingData(decoding: [UInt8](repeating: 0, count: 248))
                await #expect(throws: BLEError.invalidArgument("a response has at most 247 bytes, not 248")) {
                    try await central.respond(long, to: advertisement, slot: 0)
                }
                await #expect(throws: BLEError.invalidArgument("a response slot is 0 to 254, not 255")) {
                    try await central.respond(AdvertisingData(), to: advertisement, slot: 255)
                }
                try await world.sleep(for: .milliseconds(30))
                do throws(BLEError) {
                    try await central.respond(AdvertisingData(), to: advertisement, slot: 0)
                    Issue.record("a late response was accepted")
                } catch {
                    guard case .controllerFailed = error else { throw error }
                }
                break
            }
            let received = try #require(packet)
            // The synchronization that the loop has left ends in the background.
            try await world.sleep(for: .milliseconds(1))
            await #expect(throws: BLEError.invalidArgument("the train of the advertisement is not received now")) {
                try await central.respond(AdvertisingData(), to: received, slot: 0)
            }
            await advertising.stop()
        }
    }

    @Test("Controllers without the features, and advertisements without subevents, are refused")
    func missingFeaturesAreRefused() throws {
        try World.run { world in
            let plain = world.device("plain") {
                $0.features.remove([
                    .periodicAdvertisingWithResponsesAdvertiser, .periodicAdvertisingWithResponsesScanner,
                ])
            }
            let adapter = try await plain.openAdapter()
            let address = DeviceAddress(0xC000_0000_0001, isRandom: true)
            await #expect(
                throws: BLEError.notSupported("this controller does not send periodic advertising with responses")
            ) {
                try await adapter.peripheral.startAdvertising(Self.configuration())
            }
            await #expect(
                throws: BLEError.notSupported("this controller does not receive periodic advertising with responses")
            ) {
                let request = PeriodicTrainRequest(address: address, sid: 0, subevents: [0])
                for try await _ in adapter.central.periodicAdvertising(request) {}
            }
            let advertising = try await adapter.peripheral.startAdvertising(AdvertisementConfiguration())
            let error = BLEError.invalidArgument("the advertisement has no subevents")
            await #expect(throws: error) { _ = try await advertising.subeventEvents() }
            await #expect(throws: error) { try await advertising.send(AdvertisingData(), subevent: 0) }
            await advertising.stop()
        }
    }

    @Test("A cancelled call sends nothing, and events end with the advertisement")
    func cancelledCallSendsNothing() throws {
        try World.run { world in
            let shelf = try await Shelf(in: world, subevent: 3)
            let advertising = shelf.advertising
            // The controller requests data after the last subevent, so the next request comes in 90 ms.
            try await world.sleep(for: .milliseconds(10))
            let events = try await advertising.subeventEvents()
            await withThrowingTaskGroup(of: Void.self) { group in
                // One is taken by the open request, the other waits.
                for _ in 0..<2 { group.addTask { try await advertising.send(Self.data([1]), subevent: 3) } }
                await #expect(throws: Never.self) { try await group.next() }
                group.cancelAll()
                await #expect(throws: BLEError.cancelled) { try await group.next() }
            }
            var isRequested = false
            for await case .dataRequested(let subevents) in events where subevents == [3] || subevents.count == 4 {
                // The second request finds nothing queued, so the app is asked.
                if isRequested { break }
                isRequested = true
            }
            // Ten events of the train.
            try await world.sleep(for: .seconds(1))
            await advertising.stop()
            for await event in events { if case .response = event { Issue.record("\(event)") } }
            #expect(shelf.received.all.filter { !$0.isEmpty } == [[1]])
            shelf.synchronization.cancel()
        }
    }

    @Test("A transferred synchronization receives subevents, and responds")
    func transferredSynchronizationResponds() throws {
        try World.run { world in
            let sender = try await world.device("sender").openAdapter()
            let receiver = try await world.device("receiver").openAdapter()
            let set = try await sender.peripheral.startAdvertising(AdvertisementConfiguration())
            let peer = try await receiver.central.connect(to: sender.information.identityAddress)
            await set.stop()
            let advertising = try await sender.peripheral.startAdvertising(Self.configuration())
            let client = try #require(await sender.peripheral.clients.first?.id)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    let parameters = PeriodicSyncTransferParameters(subevents: [2], respondsWithTXPower: true)
                    for try await event in peer.transferredTrains(parameters) {
                        if case .ready = event {
                            try await sender.peripheral.transferTrain(of: advertising, to: client)
                        }
                        guard case .received(let train) = event else { continue }
                        #expect(train.train.subevents?.count == 4)
                        for await case .received(let packet) in train.events {
                            guard let value = Self.value(packet.data) else { continue }
                            // A responder has one response for a subevent, so it answers in the two slots in turn.
                            let slot = value[0] % 2
                            try await receiver.central.respond(Self.data([slot] + value), to: packet, slot: slot)
                        }
                    }
                }
                group.addTask { try await Self.exchange(advertising, answers: 2) }
                try await group.next()
                group.cancelAll()
            }
            await advertising.stop()
        }
    }
}
