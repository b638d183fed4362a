import BLE
import BluetoothTesting
import Testing

@testable import BluetoothHost

extension BluetoothHost {
    /// Reports events to all observers of the host, in one turn.
    fileprivate func emit(all events: [HostEvent]) {
        for event in events { emit(event) }
        endInput()
    }

    /// Reports events to all observers of the server, in one turn.
    fileprivate func emit(all events: [ServerRoleEvent]) {
        for event in events { emit(event) }
        endInput()
    }

    /// Reports events to all observers of security, in one turn.
    fileprivate func emit(all events: [SecurityEvent]) {
        for event in events { emit(event) }
        endInput()
    }

    /// Reports events to all observers of the only link, in one turn.
    fileprivate func emit(all events: [LinkEvent]) {
        guard let link = links.values.first else { return }
        for event in events { report(event, of: link) }
        endInput()
    }
}

@Suite("Sequences whose reader is too slow")
struct OverflowTests {
    /// The first two events, as text.
    private func firstTwo<Event: Sendable>(of events: Events<Event>) async -> [String] {
        var iterator = events.makeAsyncIterator()
        var texts: [String] = []
        for _ in 1...2 {
            if let event = await iterator.next() { texts.append("\(event)") }
        }
        return texts
    }

    @Test("Beyond 256 events of the adapter, the oldest are reported as dropped in their place")
    func droppedEventsOfTheAdapterAreReportedInTheirPlace() async throws {
        try await SequenceFixture.run(.simulated) { fixture in
            let events = await fixture.central.events()
            await fixture.central.host.emit(all: (1...259).map { HostEvent.scanRestarted(afterSilence: .seconds($0)) })
            let expected = [HostEvent.eventsDropped(3), .scanRestarted(afterSilence: .seconds(4))]
            #expect(await firstTwo(of: events) == expected.map { "\($0)" })
            #expect(events.droppedCount == 3)
        }
    }

    @Test("Beyond 65,536 events of the server, the oldest are reported as dropped in their place")
    func droppedEventsOfTheServerAreReportedInTheirPlace() async throws {
        try await SequenceFixture.run(.simulated) { fixture in
            let client = fixture.client
            let events = await fixture.server.peripheral.events()
            await fixture.server.host.emit(all: (1...65_539).map { ServerRoleEvent.mtuChanged(client, $0) })
            let expected = [PeripheralEvent.eventsDropped(3), .mtuChanged(client, 4)]
            #expect(await firstTwo(of: events) == expected.map { "\($0)" })
            #expect(events.droppedCount == 3)
        }
    }

    @Test("Beyond 4,096 events of security, the oldest are reported as dropped in their place")
    func droppedEventsOfSecurityAreReportedInTheirPlace() async throws {
        try await SequenceFixture.run(.simulated) { fixture in
            let removals = (1...4099).map { SecurityEvent.bondRemoved(identity: DeviceAddress($0, isRandom: false)) }
            let events = await fixture.central.securityEvents()
            await fixture.central.host.emit(all: removals)
            let expected = [SecurityEvent.eventsDropped(3), removals[3]]
            #expect(await firstTwo(of: events) == expected.map { "\($0)" })
            #expect(events.droppedCount == 3)
        }
    }

    @Test("Beyond 1,024 events of a link, the oldest are reported as dropped in their place")
    func droppedEventsOfALinkAreReportedInTheirPlace() async throws {
        try await SequenceFixture.run(.simulated) { fixture in
            let changes = (1...1027).map { interval in
                LinkEvent.parametersChanged(
                    NegotiatedConnectionParameters(interval: interval, latency: 0, supervisionTimeout: 400)
                )
            }
            var events = fixture.peer.connection.events().makeAsyncIterator()
            try await events.start()
            await fixture.central.host.emit(all: changes)
            #expect(try await events.next() == .eventsDropped(3))
            #expect(try await events.next() == changes[3])
        }
    }

    @Test("Beyond 4,096 advertisements, the next one counts those that were dropped before it")
    func droppedAdvertisementsAreCountedByTheNext() throws {
        try World.run { world in
            let beacon = try await world.device("beacon").openAdapter().peripheral
            let central = try await world.device("scanner").openAdapter().central
            let results = central.scan(ScanOptions(isActive: false, reportsDuplicates: true))
            let rssis = Log<Int?>()
            let counting = Task(executorPreference: world.taskExecutor) {
                for try await advertisement in results { rssis.append(advertisement.rssi) }
            }
            // The beacon starts when both scans run.
            async let started = { () async throws -> AdvertisingSet in
                try await world.sleep(for: .seconds(1))
                return try await beacon.startAdvertising(AdvertisementConfiguration(interval: .milliseconds(20)))
            }()
            var iterator = results.makeAsyncIterator()
            #expect(try await iterator.next()?.droppedBefore == 0)
            let advertising = try await started
            while rssis.all.count < 5000 { try await world.sleep(for: .seconds(1)) }
            await advertising.stop()
            try await world.sleep(for: .seconds(1))
            var dropped: [Int] = []
            for _ in 0..<4096 { dropped.append(try #require(try await iterator.next()).droppedBefore) }
            #expect(dropped.first == rssis.all.count - 1 - 4096)
            #expect(dropped.dropFirst().allSatisfy { $0 == 0 })
            counting.cancel()
            await #expect(throws: BLEError.cancelled) { try await counting.value }
        }
    }
}
