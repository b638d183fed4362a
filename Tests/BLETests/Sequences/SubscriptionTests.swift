import BLE
import BluetoothHost
import Testing

@Suite("Subscriptions", .timeLimit(.minutes(5)))
struct SubscriptionTests {
    @Test("Values that one iteration does not read are kept for the next", arguments: Place.allCases)
    func secondIterationGetsTheRemainingValues(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let subscription = try await fixture.peer.subscribe(to: fixture.characteristics[0])
            try await fixture.notify(1...3)
            try await fixture.waitForDelivery()
            #expect(try await subscription.first { $0.value == [1] }?.value == [1])
            #expect(try await subscription.first { $0.value == [2] }?.value == [2])
            #expect(try await subscription.first { _ in true }?.value == [3])
            #expect(subscription.droppedCount == 0)
        }
    }

    @Test("Two tasks that read one subscription share its values", arguments: Place.allCases)
    func twoTasksShareTheValues(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let subscription = try await fixture.peer.subscribe(to: fixture.characteristics[0])
            async let first = { () async throws in try await subscription.reduce(into: []) { $0 += $1.value } }()
            async let second = { () async throws in try await subscription.reduce(into: []) { $0 += $1.value } }()
            try await fixture.notify(0..<200)
            try await fixture.waitForDelivery()
            await subscription.cancel()
            let received = try await first + second
            #expect(received.sorted() == Array(0..<200))
        }
    }

    @Test("Releasing the last subscription turns notifications off at the peer", arguments: Place.allCases)
    func releasingTheLastSubscriptionTurnsNotificationsOff(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let events = await fixture.server.peripheral.events()
            var subscription: Subscription? = try await fixture.peer.subscribe(to: fixture.characteristics[0])
            #expect(subscription?.droppedCount == 0)
            subscription = nil
            let handle = fixture.characteristics[0].valueHandle
            var configured: [String] = []
            for await event in events {
                if case .subscribed(fixture.client, handle, .notify) = event { configured.append("on") }
                if case .unsubscribed(fixture.client, handle, .notify) = event { configured.append("off") }
                if configured.count == 2 { break }
            }
            #expect(configured == ["on", "off"])
        }
    }

    @Test("Cancelling one of two subscriptions leaves the other working", arguments: Place.allCases)
    func cancellingOneSubscriptionLeavesTheOther(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let events = await fixture.server.peripheral.events()
            let first = try await fixture.peer.subscribe(to: fixture.characteristics[0])
            let second = try await fixture.peer.subscribe(to: fixture.characteristics[0])
            try await fixture.notify([1])
            await first.cancel()
            try await fixture.notify([2])
            var iterator = second.makeAsyncIterator()
            #expect(try await iterator.next()?.value == [1])
            #expect(try await iterator.next()?.value == [2])
            await second.cancel()
            #expect(try await iterator.next() == nil)
            let handle = fixture.characteristics[0].valueHandle
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

    @Test("A subscription that starts while the last one is turned off gets values", arguments: Place.allCases)
    func subscribingWhileTurningOffEndsSubscribed(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            var subscription = try await fixture.peer.subscribe(to: fixture.characteristics[0])
            for number in 0..<UInt8(20) {
                let last = subscription
                // Both are in progress at once, in either order.
                async let ending: Void = last.cancel()
                subscription = try await fixture.peer.subscribe(to: fixture.characteristics[0])
                await ending
                try await fixture.notify([number])
                var iterator = subscription.makeAsyncIterator()
                #expect(try await iterator.next()?.value == [number])
            }
        }
    }

    @Test("A subscribe call that is cancelled leaves the peer unconfigured", arguments: Place.allCases)
    func cancelledSubscribeLeavesNothing(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let before = await fixture.held()
            for _ in 0..<20 {
                let call = Task(executorPreference: fixture.taskExecutor) {
                    try await fixture.peer.subscribe(to: fixture.characteristics[0])
                }
                await Task.yield()
                call.cancel()
                do {
                    await (try call.value).cancel()
                } catch {
                    #expect(error as? BLEError == .cancelled)
                }
            }
            try await fixture.wait { await fixture.held() == before }
            // The server has no subscriber, so the values of a new subscription begin with its own.
            try await fixture.wait { try await !fixture.isConfigured() }
            let subscription = try await fixture.peer.subscribe(to: fixture.characteristics[0])
            try await fixture.notify([7])
            #expect(try await subscription.first { _ in true }?.value == [7])
        }
    }

    @Test("A cancelled loop throws `cancelled`, and another task continues to read", arguments: Place.allCases)
    func cancelledLoopThrowsCancelled(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let subscription = try await fixture.peer.subscribe(to: fixture.characteristics[0])
            let loop = Task(executorPreference: fixture.taskExecutor) { for try await _ in subscription {} }
            loop.cancel()
            await #expect(throws: BLEError.cancelled) { try await loop.value }
            try await fixture.notify([1])
            #expect(try await subscription.first { _ in true }?.value == [1])
        }
    }

    @Test("The end of the link ends a subscription for every reader", arguments: Place.allCases)
    func linkEndEndsEveryReader(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let subscription = try await fixture.peer.subscribe(to: fixture.characteristics[0])
            let waiting = Task(executorPreference: fixture.taskExecutor) { for try await _ in subscription {} }
            try await fixture.notify([1])
            try await fixture.waitForDelivery()
            await fixture.server.peripheral.disconnect(fixture.client)
            await #expect(throws: BLEError.self) { try await waiting.value }
            let reason = try await fixture.peer.disconnection()
            for _ in 0..<2 {
                await #expect(throws: BLEError.disconnected(reason)) { for try await _ in subscription {} }
            }
        }
    }

    @Test("A slow reader is informed of the number of lost values, at their position", arguments: Place.allCases)
    func slowReaderLearnsOfDroppedValues(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let subscription = try await fixture.peer.subscribe(to: fixture.characteristics[0], bufferedValueLimit: 4)
            try await fixture.notify(0..<10)
            try await fixture.waitForDelivery()
            await subscription.cancel()
            var received: [[Int]] = []
            for try await value in subscription { received.append([Int(value.value[0]), value.droppedBefore]) }
            #expect(received == [[6, 6], [7, 0], [8, 0], [9, 0]])
            #expect(subscription.droppedCount == 6)
        }
    }

    @Test("Subscribing and cancelling leave nothing on the link", arguments: Place.allCases)
    func subscriptionsLeaveNothing(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let before = await fixture.held()
            for index in 0..<30 {
                let subscription = try await fixture.peer.subscribe(to: fixture.characteristics[0])
                #expect(await fixture.held().subscribers == before.subscribers + 1)
                #expect(await fixture.held().endObservers == before.endObservers + 1)
                if index.isMultiple(of: 2) {
                    await subscription.cancel()
                    #expect(await fixture.held().ofCalls == before.ofCalls)
                } else {
                    let loop = Task(executorPreference: fixture.taskExecutor) { for try await _ in subscription {} }
                    loop.cancel()
                    _ = await loop.result
                }
                _ = consume subscription
                try await fixture.wait { await fixture.held() == before }
            }
        }
    }

    @Test("Waiting for the end of a link can be cancelled at once", arguments: Place.allCases)
    func cancelledDisconnectionWaitEndsAtOnce(_ place: Place) async throws {
        try await SequenceFixture.run(place) { fixture in
            let before = await fixture.held()
            for _ in 0..<10 {
                let call = Task(executorPreference: fixture.taskExecutor) { try await fixture.peer.disconnection() }
                try await fixture.wait { await fixture.held().endObservers == before.endObservers + 1 }
                call.cancel()
                await #expect(throws: BLEError.cancelled) { _ = try await call.value }
            }
            var other: RemotePeripheral? = try await fixture.central.central.connect(to: fixture.peer.address)
            let call = Task(executorPreference: fixture.taskExecutor) { [other] in try await other?.disconnection() }
            try await fixture.wait { await fixture.held().endObservers == before.endObservers + 2 }
            call.cancel()
            await #expect(throws: BLEError.cancelled) { _ = try await call.value }
            other = nil
            try await fixture.wait { await fixture.held().endObservers <= before.endObservers + 1 }
        }
    }
}

extension SequenceFixture {
    /// Whether the first characteristic's Client Characteristic Configuration is set at the server.
    fileprivate func isConfigured() async throws -> Bool {
        let configuration = characteristics[0].descriptors.first { $0.uuid == .clientCharacteristicConfiguration }
        return try await peer.read(#require(configuration).handle) != [0, 0]
    }
}
