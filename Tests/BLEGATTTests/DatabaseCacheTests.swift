import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes
import Testing

/// Two services with everything that a service can contain. One of them includes the other.
private let services: [ServiceDefinition] = [
    .genericAttribute,
    ServiceDefinition(
        uuid: "180D",
        includes: [.index(2)],
        characteristics: [
            CharacteristicDefinition(
                uuid: "2A37",
                properties: [.read, .notify],
                permissions: .read,
                value: .stored([60])
            ),
            CharacteristicDefinition(
                uuid: "B0A1A2A3-0000-4000-8000-00112233AABB",
                properties: [.read, .indicate],
                permissions: .read,
                value: .stored([1]),
                descriptors: [DescriptorDefinition(uuid: "2901", value: .stored([0x68, 0x69]))]
            ),
        ]
    ),
    ServiceDefinition(
        uuid: "A0A1A2A3-0000-4000-8000-00112233AABB",
        isPrimary: false,
        characteristics: [
            CharacteristicDefinition(uuid: "2A19", properties: .read, permissions: .read, value: .stored([99]))
        ]
    ),
]
private let added = ServiceDefinition(
    uuid: "180F",
    characteristics: [
        CharacteristicDefinition(uuid: "2A19", properties: .read, permissions: .read, value: .stored([50]))
    ]
)
/// Read By Type Request for the Database Hash over all handles.
private let hashRequest: [UInt8] = [0x08, 0x01, 0x00, 0xFF, 0xFF, 0x2A, 0x2B]

@Suite("A client's cache of a server's database")
struct DatabaseCacheTests {
    @Test("The hash is the server's, with its most significant byte first")
    func hashIsThatOfTheServerMostSignificantByteFirst() throws {
        let conversation = try Conversation(services)
        #expect(try conversation.perform(ReadDatabaseHash())?.get() == conversation.server.databaseHash)
        #expect(conversation.server.databaseHash != nil)
        #expect(conversation.requests == [hashRequest])
        let without = try Conversation([added])
        #expect(try without.perform(ReadDatabaseHash())?.get() == .some(nil))
    }

    @Test("A verified server's database is discovered completely, and the client enables robust caching")
    func databaseOfAVerifiedServerIsDiscoveredCompletely() throws {
        let conversation = try Conversation(services)
        conversation.validate()
        let discovered = try conversation.perform(DiscoverAll())?.get()
        let cache = try #require(conversation.cache)
        #expect(cache.hash == conversation.server.databaseHash)
        #expect(cache.services == discovered && cache.services.count == 3)
        #expect(conversation.requests.first == hashRequest && conversation.requests.last == hashRequest)
        let features = try #require(
            cache.services[0].characteristics.first { $0.uuid == .clientSupportedFeatures }
        ).valueHandle
        let changed = try #require(conversation.server.serviceChanged)
        #expect(
            conversation.requests.suffix(3).dropLast() == [
                [0x12, UInt8(features.rawValue), 0, 0x05], [0x12, UInt8(changed.rawValue + 1), 0, 0x02, 0x00],
            ]
        )
        #expect(conversation.session.persistentState.clientFeatures == 0x05)
        #expect(conversation.session.configuration(of: changed) == .indication)
    }

    @Test("After a reconnection only the hash is read, in every kind of discovery")
    func cachedDatabaseIsNotRequestedAgain() throws {
        let conversation = try Conversation(services)
        let fresh = try walk(conversation)
        conversation.validate()
        conversation.reconnect()
        conversation.validate()
        #expect(try walk(conversation) == fresh)
        #expect(conversation.requests == [hashRequest])
    }

    @Test("A discarded cache is dropped, and the whole database is learned again")
    func discardedCacheIsLearnedAgain() throws {
        let conversation = try Conversation(services)
        conversation.client.discardDatabase()
        conversation.run()
        #expect(conversation.requests.isEmpty && conversation.caches.isEmpty)
        conversation.validate()
        let learned = try #require(conversation.cache)
        let count = conversation.requests.count
        conversation.client.discardDatabase()
        conversation.run()
        #expect(conversation.caches.suffix(2) == [nil, learned])
        #expect(conversation.requests.dropFirst(count).contains { $0.first == 0x10 })
    }

    @Test("A cache that is discarded while it is learned is learned once more")
    func cacheDiscardedWhileItIsLearnedIsLearnedOnceMore() throws {
        let conversation = try Conversation(services)
        conversation.client.validate(nil)
        var searches = 0
        conversation.onRequest = { [client = conversation.client] request in
            guard request.first == 0x10 else { return }
            searches += 1
            if searches == 1 { client.discardDatabase() }
        }
        conversation.run()
        #expect(conversation.cache != nil)
        #expect(searches > 1)
        let once = try Conversation(services)
        once.validate()
        #expect(once.requests.count < conversation.requests.count)
    }

    @Test("A cache that is discarded before validation has begun is discovered once")
    func cacheDiscardedBeforeItIsLearnedIsLearnedOnce() throws {
        let once = try Conversation(services)
        once.validate()
        let conversation = try Conversation(services)
        conversation.client.validate(nil)
        conversation.client.discardDatabase()
        conversation.run()
        #expect(conversation.requests == once.requests)
        #expect(conversation.caches == [nil, once.cache])
    }

    @Test("An indication before the server is verified concerns only the cache that was stored before")
    func earlyIndicationConcernsTheStoredCacheOnly() throws {
        var plain = ServiceDefinition.genericAttribute
        plain.characteristics.removeAll { $0.uuid == .databaseHash }
        let conversation = try Conversation([plain])
        conversation.validate()
        conversation.reconnect()
        try conversation.indicateServiceChanged()
        let stored = try #require(conversation.cache)
        #expect(conversation.client.hasConfirmedChange(of: stored))
        conversation.validate()
        #expect(conversation.caches == [stored, nil, stored], "it was dropped, and learned again")
        #expect(!conversation.client.hasConfirmedChange(of: stored))
    }

    /// Discovers everything in every way.
    private func walk(_ conversation: Conversation) throws -> [String] {
        var found: [String] = []
        let all = try #require(try conversation.perform(DiscoverAll())?.get())
        found.append("\(all)")
        found.append("\(try #require(try conversation.perform(DiscoverServices())?.get()))")
        found.append("\(try #require(try conversation.perform(DiscoverServices(isPrimary: false))?.get()))")
        found.append("\(try #require(try conversation.perform(DiscoverServicesByUUID(uuid: "180D"))?.get()))")
        found.append("\(try #require(try conversation.perform(DiscoverServicesByUUID(uuid: "1234"))?.get()))")
        for range in all.map({ HandleRange(start: $0.handle, end: $0.endHandle) }) + [.all] {
            found.append("\(try #require(try conversation.perform(FindIncludedServices(range: range))?.get()))")
            let characteristics = try #require(
                try conversation.perform(DiscoverCharacteristics(range: range))?.get()
            )
            found.append("\(characteristics)")
            let some = try conversation.perform(DiscoverCharacteristics(range: range, uuid: "2A19"))?.get()
            found.append("\(try #require(some))")
        }
        for characteristic in all.flatMap(\.characteristics) {
            guard let range = characteristic.descriptorRange else { continue }
            found.append("\(try #require(try conversation.perform(DiscoverDescriptors(range: range))?.get()))")
        }
        return found
    }

    @Test("A subscription to a cached characteristic writes its descriptor at once")
    func subscriptionToACachedCharacteristicWritesAtOnce() throws {
        let conversation = try Conversation(services)
        conversation.validate()
        let heart = try #require(conversation.cache?.services[1].characteristics.first)
        let before = conversation.requests.count
        _ = conversation.perform(
            SetClientConfiguration(.notification, inDescriptors: try #require(heart.descriptorRange))
        )
        let descriptor = UInt8(heart.valueHandle.rawValue + 1)
        #expect(conversation.requests.dropFirst(before) == [[0x12, descriptor, 0x00, 0x01, 0x00]])
    }

    @Test("A range beyond one characteristic's descriptors is requested even if the database is cached")
    func rangeBeyondOneCharacteristicIsRequestedDespiteTheCache() throws {
        let conversation = try Conversation(services)
        conversation.validate()
        let before = conversation.requests.count
        let found = try conversation.perform(DiscoverDescriptors(range: HandleRange(start: 1, end: 3)))?.get()
        #expect(
            found?.map(\.uuid)
                == [.genericAttributeService, .characteristic, .serviceChanged].map { uuid in
                    uuid == .genericAttributeService ? .primaryService : uuid
                }
        )
        #expect(conversation.requests.count == before + 1)
    }

    @Test("A database that has changed since is learned again")
    func databaseThatHasChangedIsLearnedAgain() throws {
        let conversation = try Conversation(services)
        conversation.validate()
        let old = conversation.cache
        _ = try conversation.server.publish([added])
        conversation.reconnect()
        conversation.validate()
        #expect(conversation.cache != old && conversation.cache?.services.count == 4)
        #expect(conversation.cache?.hash == conversation.server.databaseHash)
    }

    @Test("Nothing of an unverified server is cached, and each discovery sends requests")
    func nothingOfAnUnverifiedServerIsCached() throws {
        let conversation = try Conversation(services)
        _ = conversation.perform(DiscoverServices())
        let once = conversation.requests.count
        _ = conversation.perform(DiscoverServices())
        #expect(conversation.requests.count == 2 * once)
        #expect(conversation.cache == nil)
        #expect(!conversation.requests.contains(hashRequest))
    }

    @Test("A cache of a server without a hash is valid until Service Changed")
    func cacheOfAServerWithoutAHashIsValidUntilServiceChanged() throws {
        var plain = ServiceDefinition.genericAttribute
        plain.characteristics.removeAll { $0.uuid == .databaseHash }
        let conversation = try Conversation(
            [plain, services[1], services[2]].map {
                var service = $0
                service.includes = []
                return service
            }
        )
        conversation.validate()
        #expect(conversation.cache?.hash == nil && conversation.cache?.services.count == 3)
        conversation.reconnect()
        conversation.validate()
        _ = conversation.perform(DiscoverAll())
        #expect(conversation.requests == [hashRequest])
        _ = try conversation.server.publish([added])
        try conversation.indicateServiceChanged()
        #expect(conversation.cache?.services.count == 4)
    }

    @Test("A database without a hash that changes while it is learned for the first time is learned again")
    func serviceChangedDuringTheFirstLearningIsNotLost() throws {
        var plain = ServiceDefinition.genericAttribute
        plain.characteristics.removeAll { $0.uuid == .databaseHash }
        let conversation = try Conversation([plain])
        var changes = 0
        conversation.onRequest = { [unowned conversation] request in
            // The services are known by now.
            guard changes == 0, request.first == 0x08, request.suffix(2) == [0x03, 0x28] else { return }
            changes += 1
            guard (try? conversation.server.publish([added])) != nil,
                let handle = conversation.server.serviceChanged
            else { return }
            conversation.session.serviceChangedConfirmed(revision: conversation.session.databaseRevision)
            conversation.client.indicationReceived(from: handle)
        }
        conversation.validate()
        #expect(changes == 1)
        #expect(conversation.cache?.services.count == 2)
        #expect(conversation.caches.count == 1 && conversation.requests.count { $0 == hashRequest } == 2)
    }

    @Test("Service Changed discards the cache at once, including the stored one")
    func serviceChangedDiscardsTheCacheAtOnce() throws {
        let conversation = try Conversation(services)
        conversation.validate()
        let before = conversation.caches.count
        _ = try conversation.server.publish([added])
        try conversation.indicateServiceChanged(HandleRange(start: 0x20, end: 0x22))
        let kept = conversation.caches.dropFirst(before)
        #expect(kept.count == 2 && kept.first == .some(nil))
        #expect(kept.last??.services.last?.uuid == "180F")
        let requestCount = conversation.requests.count
        #expect(try conversation.perform(DiscoverAll())?.get().count == 4)
        #expect(conversation.requests.count == requestCount)
    }

    @Test("Another indication, or one of an unverified server, changes nothing")
    func otherIndicationsAndUnverifiedServersChangeNothing() throws {
        let conversation = try Conversation(services)
        try conversation.indicateServiceChanged()
        #expect(conversation.requests.isEmpty)
        conversation.validate()
        let before = conversation.requests.count
        conversation.client.indicationReceived(from: 0x0999)
        conversation.run()
        #expect(conversation.requests.count == before && conversation.cache != nil)
    }

    @Test("Database Out Of Sync ends the procedure with that error, and the database is learned again")
    func outOfSyncEndsTheProcedureAndTheDatabaseIsLearnedAgain() throws {
        let conversation = try Conversation(services)
        conversation.validate()
        let heart = try #require(conversation.cache?.services[1].characteristics.first)
        _ = try conversation.server.publish([added])
        let result = conversation.perform(ReadValue(handle: heart.valueHandle))
        #expect(
            result?.failure == .attribute(.databaseOutOfSync, handle: .invalid, request: .readRequest)
        )
        #expect(conversation.cache?.services.count == 4)
        #expect(try conversation.perform(ReadValue(handle: heart.valueHandle))?.get() == [60])
    }

    @Test("A database that changes while it is learned is discovered again, a limited number of times")
    func changingDatabaseIsDiscoveredAgain() throws {
        let conversation = try Conversation(services)
        var changes = 0
        conversation.onRequest = { request in
            // Just before the hash is read for the second time.
            guard request.first == 0x12, request.count == 5, changes < 1 else { return }
            changes += 1
            _ = try? conversation.server.publish([added])
        }
        conversation.validate()
        #expect(conversation.cache?.services.count == 4)
        #expect(conversation.requests.count { $0 == hashRequest } == 3)

        let restless = try Conversation(services)
        restless.onRequest = { request in
            if request.first == 0x12, request.count == 5 { _ = try? restless.server.publish([added]) }
        }
        restless.validate()
        #expect(restless.cache == nil)
        let before = restless.requests.count
        _ = restless.perform(DiscoverServices())
        #expect(restless.requests.count > before, "the server is asked, since nothing is certain")
    }

    @Test(
        "A server that indicates Service Changed at each write of its configuration is not learned without end",
        arguments: [true, false]
    )
    func serverThatIndicatesAtEachConfigurationIsNotLearnedWithoutEnd(hasHash: Bool) throws {
        var standard = ServiceDefinition.genericAttribute
        if !hasHash { standard.characteristics.removeAll { $0.uuid == .databaseHash } }
        let conversation = try Conversation([standard])
        var writes = 0
        conversation.onRequest = { [unowned conversation] request in
            // After ten writes the server stops, so that the test ends.
            guard request.first == 0x12, request.count == 5, writes < 10,
                let handle = conversation.server.serviceChanged
            else { return }
            writes += 1
            conversation.client.indicationReceived(from: handle)
        }
        conversation.validate()
        try conversation.indicateServiceChanged()
        #expect(writes == 1)
        #expect(conversation.cache?.services.count == 1)
    }

    @Test("After the client has forgotten the server, it configures the server again")
    func forgottenServerIsConfiguredAgain() throws {
        let conversation = try Conversation(services)
        conversation.validate()
        let writes = conversation.requests.filter { $0.first == 0x12 }
        conversation.client.forgetDatabase()
        conversation.client.validate(nil)
        conversation.run()
        #expect(writes.count == 2)
        #expect(conversation.requests.filter { $0.first == 0x12 } == writes + writes)
    }

    @Test("The app's requests are sent before those that discover the database")
    func requestsOfTheAppAreSentBeforeThoseThatLearn() throws {
        let conversation = try Conversation(services)
        let heart: AttributeHandle = 0x000E
        var reads: [Int] = []
        conversation.onRequest = { [unowned conversation] request in
            guard reads.count < 3, request.first != 0x0A else { return }
            conversation.client.perform(ReadValue(handle: heart))
        }
        conversation.onEnd = { [unowned conversation] _ in reads.append(conversation.requests.count) }
        conversation.client.validate(nil)
        conversation.run()
        // Each read follows the request during which it was submitted.
        #expect(reads == [2, 4, 6])
        #expect(conversation.requests[1] == [0x0A, 0x0E, 0x00])
        #expect(conversation.cache?.services.count == 3)
    }

    @Test("Discovery that waits when the server is verified is answered from the cache")
    func waitingDiscoveryIsAnsweredFromTheCacheOnceVerified() throws {
        let conversation = try Conversation(services)
        conversation.validate()
        conversation.reconnect()
        let discovery = conversation.client.perform(DiscoverServices())
        conversation.validate()
        #expect(conversation.requests == [hashRequest])
        #expect(try discovery.output().count == 2)
    }

    @Test(
        "A server with malformed answers is not cached, and gets a request each time",
        arguments: [
            [0x09, 0x05, 0x0D, 0x00, 1, 2, 3], [0x09], [0x01, 0x08, 0x00, 0x00, 0x12], [0x09, 0x12],
        ] as [[UInt8]]
    )
    func malformedServerIsNotCached(response: [UInt8]) {
        let client = Client()
        client.validate(nil)
        var buffer = PacketBuffer()
        var opcode = client.nextRequest(mtu: 23, into: &buffer)
        var count = 0
        while opcode != nil {
            count += 1
            buffer = PacketBuffer()
            let error: [UInt8] = [0x01, opcode?.rawValue ?? 0, 0, 0, response.last ?? 0]
            let next = response.first == 0x01 ? error : response
            opcode = client.receive(next.rawSpan, mtu: 23, into: &buffer)
        }
        #expect(count <= 5 && client.takeCaches().isEmpty)
        client.perform(DiscoverServices())
        buffer = PacketBuffer()
        let asked = client.nextRequest(mtu: 23, into: &buffer)
        #expect(asked == .readByGroupTypeRequest)
    }
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let failure) = self { failure } else { nil }
    }
}
