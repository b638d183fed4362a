import BLE
import BluetoothHost
import BluetoothTesting
import Testing

@Suite("Events, scans and advertisements", .timeLimit(.minutes(5)))
struct EventsTests {
    @Test("Closing the adapter ends the events of every reader", arguments: Place.allCases)
    func closingEndsEvents(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let adapter = fixture.central
            let events = await adapter.events()
            let securityEvents = await adapter.securityEvents()
            let peripheralEvents = await adapter.peripheral.events()
            async let first: Void = { for await _ in peripheralEvents {} }()
            async let second: Void = { for await _ in peripheralEvents {} }()
            async let third: Void = { for await _ in securityEvents {} }()
            await adapter.close()
            _ = await (first, second, third)
            var last: HostEvent?
            for await event in events { last = event }
            if case .closed = last {} else { Issue.record("the last event is \(String(describing: last))") }
            // A second iteration ends too, and so do sequences that begin after the end.
            for await _ in peripheralEvents {}
            for await _ in securityEvents {}
            for await _ in events {}
            for await _ in await adapter.peripheral.events() {}
            for await _ in await adapter.securityEvents() {}
            var count = 0
            for await _ in await adapter.events() { count += 1 }
            #expect(count == 1)
            #expect(await adapter.host.inspect().isEmpty)
        }
    }

    @Test("Events that one iteration does not read are kept for the next", arguments: Place.allCases)
    func secondIterationGetsTheRemainingEvents(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let events = await fixture.server.peripheral.events()
            let handle = fixture.characteristics[0].valueHandle
            let subscription = try await fixture.peer.subscribe(to: fixture.characteristics[0])
            await subscription.cancel()
            var isSubscribed = false
            for await event in events {
                if case .subscribed(fixture.client, handle, .notify) = event {
                    isSubscribed = true
                    break
                }
            }
            #expect(isSubscribed)
            var isUnsubscribed = false
            for await event in events {
                if case .unsubscribed(fixture.client, handle, .notify) = event {
                    isUnsubscribed = true
                    break
                }
            }
            #expect(isUnsubscribed)
        }
    }

    @Test("A cancelled reader of events ends, and another one continues to read", arguments: Place.allCases)
    func cancelledEventReaderEnds(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let events = await fixture.server.peripheral.events()
            let loop = Task(executorPreference: fixture.taskExecutor) { for await _ in events {} }
            loop.cancel()
            await loop.value
            await fixture.peer.disconnect()
            var isDisconnected = false
            for await event in events {
                if case .disconnected(fixture.client, _) = event {
                    isDisconnected = true
                    break
                }
            }
            #expect(isDisconnected)
        }
    }

    @Test("Discarded event sequences leave no observers", arguments: Place.allCases)
    func droppedEventsLeaveNoObservers(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let adapter = fixture.central
            let before = await fixture.held()
            for isIterated in [false, true] {
                for _ in 0..<50 {
                    let events = await adapter.events()
                    let securityEvents = await adapter.securityEvents()
                    let peripheralEvents = await adapter.peripheral.events()
                    guard isIterated else { continue }
                    let loop = Task(executorPreference: fixture.taskExecutor) {
                        for await _ in events {}
                        for await _ in securityEvents {}
                        for await _ in peripheralEvents {}
                    }
                    loop.cancel()
                    await loop.value
                }
                try await fixture.wait { await fixture.held() == before }
            }
        }
    }

    @Test("Releasing an advertising set stops advertising", arguments: Place.allCases)
    func releasingAnAdvertisingSetStopsIt(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let adapter = fixture.server
            var advertising: AdvertisingSet? = try await adapter.peripheral.startAdvertising(.init())
            #expect(await adapter.host.inspect().advertisements == 1)
            withExtendedLifetime(advertising) {}
            advertising = nil
            try await fixture.wait { await adapter.host.inspect().advertisements == 0 }
            // Releasing a set that was stopped does not affect another one.
            let stopped = try await adapter.peripheral.startAdvertising(.init())
            await stopped.stop()
            let other = try await adapter.peripheral.startAdvertising(.init())
            _ = consume stopped
            try await fixture.wait { await adapter.host.inspect().advertisements == 1 }
            await other.stop()
        }
    }

    @Test("An advertisement starts immediately after the only one that the controller can have was released")
    func releasedAdvertisingSetMakesRoom() throws {
        try World.run { world in
            let adapter = try await world.device("adapter").openAdapter { $0.usesExtendedCommands = false }
            #expect(try await adapter.information.numberOfAdvertisingSets == 1)
            for _ in 1...2 {
                let advertising = try await adapter.peripheral.startAdvertising(.init())
                withExtendedLifetime(advertising) {}
            }
        }
    }

    @Test(
        "A pairing whose client disconnects is reported as failed, before the end of the link",
        arguments: [false, true]
    )
    func pairingOfDisconnectedClientIsReportedAsFailed(isConnectedBefore: Bool) throws {
        try World.run { world in
            let server = try await world.device("server").openAdapter { $0.security.justWorks = .always }
            let device = world.device("client")
            let client = try await device.openAdapter()
            var events = await server.peripheral.events()
            let advertising = try await server.peripheral.startAdvertising(.init())
            let peer = try await client.central.connect(to: try await server.information.identityAddress)
            while await server.peripheral.clients.isEmpty { try await world.sleep(for: .milliseconds(10)) }
            if isConnectedBefore { events = await server.peripheral.events() }
            let pairing = Task(executorPreference: world.taskExecutor) { _ = try? await peer.pair() }
            var words: [String] = []
            for await event in events {
                switch event {
                case .pairingStarted:
                    words.append("pairingStarted")
                    device.vanish()
                case .paired: words.append("paired")
                case .pairingFailed: words.append("pairingFailed")
                case .disconnected: words.append("disconnected")
                default: continue
                }
                if words.last == "disconnected" { break }
            }
            #expect(words == ["pairingStarted", "pairingFailed", "disconnected"])
            await pairing.value
            await advertising.stop()
        }
    }

    @Test("A cancelled scan throws `cancelled` and stops", arguments: Place.allCases)
    func cancelledScanThrowsCancelled(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let adapter = fixture.central
            let scan = Task(executorPreference: fixture.taskExecutor) { for try await _ in adapter.central.scan() {} }
            try await fixture.wait { await fixture.held().scans == 1 }
            scan.cancel()
            await #expect(throws: BLEError.cancelled) { try await scan.value }
            try await fixture.wait { await fixture.held().scans == 0 }
        }
    }

    @Test("Closing the adapter ends a scan with an error", arguments: Place.allCases)
    func closingEndsAScan(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let adapter = fixture.central
            let scan = Task(executorPreference: fixture.taskExecutor) { for try await _ in adapter.central.scan() {} }
            try await fixture.wait { await fixture.held().scans == 1 }
            await adapter.close()
            await #expect(throws: BLEError.closed) { try await scan.value }
            await #expect(throws: BLEError.closed) { for try await _ in adapter.central.scan() {} }
        }
    }
}
