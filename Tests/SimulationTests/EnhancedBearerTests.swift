import BLE
import BLEGATT
import BluetoothTesting
import Synchronization
import Testing

@testable import BluetoothHost

/// Two of our hosts on software controllers, with a paired link.
private struct EnhancedPair {
    static let characteristicCount = 8

    let world: World
    let server: Adapter
    let client: Adapter
    let serverDevice: Device
    let peer: RemotePeripheral
    /// The value handles of the server's characteristics.
    let handles: [AttributeHandle]
    let accesses: Accesses
    private let advertising: AdvertisingSet

    /// What the server's app has seen, and how it answers.
    final class Accesses: Sendable {
        struct State {
            var writes: [AttributeHandle: [UInt8]] = [:]
            var pending = 0
            var mostPending = 0
        }

        let state = Mutex(State())
    }

    static func make(
        in world: World,
        serverLimit: Int = 5,
        clientLimit: Int = 5,
        answerDelay: Duration = .milliseconds(200)
    ) async throws -> EnhancedPair {
        let serverDevice = world.device("server")
        let server = try await serverDevice.openAdapter {
            $0.security.justWorks = .always
            $0.enhancedBearerLimit = serverLimit
        }
        let client = try await world.device("client").openAdapter {
            $0.security.justWorks = .always
            $0.enhancedBearerLimit = clientLimit
        }
        let accesses = Accesses()
        let definition = ServiceDefinition(
            uuid: "FFF0",
            characteristics: (0..<characteristicCount).map { number in
                CharacteristicDefinition(
                    uuid: BluetoothUUID(UInt16(0xFFF1 + number)),
                    properties: [.read, .write, .writeWithoutResponse, .notify],
                    permissions: [.read, .write],
                    value: .handled
                )
            }
        )
        let host = server.host
        let published = try await host.publish([definition]) { link, request in
            Self.answer(request, of: link, at: host, accesses, after: answerDelay, in: world)
        }
        let advertising = try await server.peripheral.startAdvertising(AdvertisementConfiguration())
        let peer = try await client.central.connect(to: server.information.identityAddress)
        try await peer.pair()
        return EnhancedPair(
            world: world,
            server: server,
            client: client,
            serverDevice: serverDevice,
            peer: peer,
            handles: published[0].characteristics.map(\.valueHandle),
            accesses: accesses,
            advertising: advertising
        )
    }

    /// Records a write at once. Answers a request later, with the handle as the value of a read.
    private static func answer(
        _ request: AccessRequest,
        of link: LinkIdentifier,
        at host: BluetoothHost,
        _ accesses: Accesses,
        after delay: Duration,
        in world: World
    ) {
        let value: [UInt8]
        switch request.kind {
        case .read(let handle, _): value = [UInt8(truncatingIfNeeded: handle.rawValue)]
        case .write(let write, let isCommand):
            accesses.state.withLock { $0.writes[write.handle, default: []] += write.value }
            if isCommand { return }
            value = []
        case .execute: value = []
        }
        accesses.state.withLock { state in
            state.pending += 1
            state.mostPending = max(state.mostPending, state.pending)
        }
        Task(executorPreference: world.taskExecutor) {
            try? await world.sleep(for: delay)
            accesses.state.withLock { $0.pending -= 1 }
            host.submitAnswer(request.identifier, on: link, with: .success(value))
        }
    }

    /// Waits until the client has this number of enhanced bearers.
    func waitForBearers(_ count: Int) async throws {
        while try await peer.linkInformation.enhancedBearerMTUs.count != count {
            try await world.sleep(for: .milliseconds(10))
        }
    }

    /// Reads all characteristics at the same time.
    func readAll() async throws -> [[UInt8]] {
        let peer = peer
        return try await withThrowingTaskGroup(of: (Int, [UInt8]).self) { group in
            for (index, handle) in handles.enumerated() {
                group.addTask { (index, try await peer.read(handle)) }
            }
            var values = [[UInt8]](repeating: [], count: handles.count)
            for try await (index, value) in group { values[index] = value }
            return values
        }
    }

    var expectedValues: [[UInt8]] { handles.map { [UInt8(truncatingIfNeeded: $0.rawValue)] } }

    /// Ends both hosts, after the last delayed answer of the server's app.
    func close() async {
        try? await world.sleep(for: .seconds(1))
        await client.close()
        await server.close()
    }
}

/// Counts the calls that have ended.
private final class EndCount: Sendable {
    let value = Mutex(0)
}

@Suite("Enhanced bearers of two hosts")
struct EnhancedBearerTests {
    @Test(arguments: [(5, 5, 5), (5, 2, 2), (3, 5, 3), (0, 5, 0), (5, 0, 0)])
    func bearersAreOpenedUpToTheLimitOfBothSides(serverLimit: Int, clientLimit: Int, expected: Int) throws {
        try LeakCheck.run(seed: 1) { world in
            let pair = try await EnhancedPair.make(in: world, serverLimit: serverLimit, clientLimit: clientLimit)
            try await pair.waitForBearers(expected)
            try await world.sleep(for: .seconds(1))
            #expect(try await pair.peer.linkInformation.enhancedBearerMTUs == .init(repeating: 517, count: expected))
            #expect(try await pair.readAll() == pair.expectedValues)
            let mostPending = pair.accesses.state.withLock { $0.mostPending }
            #expect(mostPending == expected + 1, "requests that the server has had at once")
            await pair.close()
        }
    }

    /// The server's app needs 10 ms for each answer. All time is that of the simulated world.
    @Test func eightReadersTakeLessThanHalfTheTimeOnFiveMoreBearers() throws {
        let durations = try [0, 5].map { limit in
            try LeakCheck.run(seed: 1) { world in
                let pair = try await EnhancedPair.make(in: world, clientLimit: limit, answerDelay: .milliseconds(10))
                try await pair.waitForBearers(limit)
                let start = world.elapsed
                for _ in 0..<50 { #expect(try await pair.readAll() == pair.expectedValues) }
                let duration = world.elapsed - start
                await pair.close()
                return duration
            }
        }
        print("400 reads of eight readers: \(durations[0]) on one bearer, \(durations[1]) on six")
        #expect(durations[1] < durations[0] / 2)
    }

    @Test func aReconnectedPairOpensItsBearersAgain() throws {
        try LeakCheck.run(seed: 2) { world in
            let pair = try await EnhancedPair.make(in: world)
            try await pair.waitForBearers(5)
            await pair.peer.disconnect()
            let address = try await pair.server.information.identityAddress
            let peer = try await pair.client.central.connect(to: address)
            #expect(try await peer.read(pair.handles[0]) == pair.expectedValues[0])
            while try await peer.linkInformation.enhancedBearerMTUs.count != 5 {
                try await world.sleep(for: .milliseconds(10))
            }
            await pair.close()
        }
    }

    /// The client writes rising numbers to each characteristic, with and without response, and waits for no write.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func writesOfEachCharacteristicArriveInTheirOrder(seed: UInt64) throws {
        try LeakCheck.run(seed: seed) { world in
            let pair = try await EnhancedPair.make(in: world, answerDelay: .milliseconds(Int(seed) * 7))
            try await pair.waitForBearers(5)
            let dice = Dice(world.makeGenerator())
            let link = try await pair.peer.linkInformation.identifier
            let (host, handles) = (pair.client.host, pair.handles)
            let ended = EndCount()
            var count = 0
            for number in UInt8(0)..<40 {
                for handle in handles where dice.chance(0.7) {
                    count += 1
                    let isCommand = dice.chance(0.3)
                    await host.submitWrite(of: [number], to: handle, on: link, isCommand: isCommand) { result in
                        if case .failure(let error) = result { Issue.record("\(error)") }
                        ended.value.withLock { $0 += 1 }
                    }
                }
            }
            while ended.value.withLock({ $0 }) < count { try await world.sleep(for: .milliseconds(100)) }
            try await world.sleep(for: .seconds(1))
            let writes = pair.accesses.state.withLock { $0.writes }
            #expect(writes.values.reduce(0) { $0 + $1.count } == count)
            for (handle, values) in writes { #expect(values == values.sorted(), "values of \(handle)") }
            await pair.close()
        }
    }

    @Test(arguments: 0..<10 as Range<UInt64>)
    func aBearerThatTheServerEndsFailsOnlyItsOwnProcedures(seed: UInt64) throws {
        try LeakCheck.run(seed: seed) { world in
            let pair = try await EnhancedPair.make(in: world)
            try await pair.waitForBearers(5)
            let (peer, handles) = (pair.peer, pair.handles)
            let failures = try await withThrowingTaskGroup(of: Bool.self) { group in
                for handle in handles + handles {
                    group.addTask {
                        do throws(BLEError) {
                            let value = try await peer.read(handle)
                            #expect(value == [UInt8(truncatingIfNeeded: handle.rawValue)])
                            return false
                        } catch .channel(.ended(.byPeer)) {
                            return true
                        } catch {
                            Issue.record("\(error)")
                            return true
                        }
                    }
                }
                try await world.sleep(for: .milliseconds(100 + Int(seed) * 10))
                await pair.server.host.endOldestBearer()
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            // Each bearer has a read, and no answer has been sent yet.
            #expect(failures == 1)
            #expect(try await peer.linkInformation.enhancedBearerMTUs.count == 4)
            #expect(try await pair.readAll() == pair.expectedValues)
            await pair.close()
        }
    }

    @Test(arguments: 0..<10 as Range<UInt64>)
    func aLostLinkEndsTheProceduresOfAllBearers(seed: UInt64) throws {
        try LeakCheck.run(seed: seed) { world in
            let pair = try await EnhancedPair.make(in: world)
            try await pair.waitForBearers(5)
            let (peer, handles) = (pair.peer, pair.handles)
            await withTaskGroup(of: Void.self) { group in
                for handle in handles + handles {
                    group.addTask {
                        await #expect(throws: BLEError.self) {
                            for _ in 0..<1000 { _ = try await peer.read(handle) }
                        }
                    }
                }
                try? await world.sleep(for: .milliseconds(500 + Int(seed) * 37))
                pair.serverDevice.vanish()
            }
            await pair.close()
        }
    }

    @Test func aPeerThatAnswersNothingMoreOnOneBearerLosesThatBearerOnly() throws {
        try LeakCheck.run(seed: 3) { world in
            let pair = try await EnhancedPair.make(in: world)
            try await pair.waitForBearers(5)
            // The server never answers reads of the last characteristic; the others continue.
            let silent = try await pair.server.host.publish([
                ServiceDefinition(
                    uuid: "FFE0",
                    characteristics: [
                        CharacteristicDefinition(
                            uuid: "FFE1",
                            properties: .read,
                            permissions: .read,
                            value: .handled
                        )
                    ]
                )
            ]) { _, _ in }[0].characteristics[0].valueHandle
            try await world.sleep(for: .seconds(20))
            let (peer, handles) = (pair.peer, pair.handles)
            await withTaskGroup(of: Void.self) { group in
                // The fixed channel is busy, so the read goes to an enhanced bearer.
                group.addTask { _ = try? await peer.read(handles[0]) }
                try? await world.sleep(for: .milliseconds(50))
                group.addTask {
                    await #expect(throws: BLEError.timedOut("the operation")) { try await peer.read(silent) }
                }
            }
            #expect(try await peer.linkInformation.enhancedBearerMTUs.count == 4)
            #expect(try await pair.readAll() == pair.expectedValues)
            await pair.close()
        }
    }

    @Test func notificationsThatWaitArriveTogetherAndInOrder() throws {
        try LeakCheck.run(seed: 4) { world in
            let pair = try await EnhancedPair.make(in: world)
            try await pair.waitForBearers(5)
            let peer = pair.peer
            let characteristics = try await peer.discoverAll().flatMap(\.characteristics)
            let subscribed = try #require(characteristics.first { $0.valueHandle == pair.handles[0] })
            let subscription = try await peer.subscribe(to: subscribed)
            let (host, handle) = (pair.server.host, pair.handles[0])
            for number in UInt8(0)..<200 {
                await host.beginNotifying([number], of: handle) { _ in }
            }
            var values = subscription.makeAsyncIterator()
            for number in UInt8(0)..<200 { #expect(try await values.next()?.value == [number]) }
            await pair.close()
        }
    }
}

extension BluetoothHost {
    /// Writes to a characteristic without waiting for earlier writes.
    fileprivate func submitWrite(
        of value: [UInt8],
        to handle: AttributeHandle,
        on link: LinkIdentifier,
        isCommand: Bool,
        completion: @escaping @Sendable (Result<Void, HostError>) -> Void
    ) {
        if isCommand {
            beginWriteWithoutResponse(value, to: handle, on: link, completion: completion)
        } else {
            begin(WriteValue(handle: handle, value: value), on: link, characteristic: handle, completion: completion)
        }
    }

    /// Ends the channel of the oldest enhanced bearer, as a peer that violates nothing may do at any time.
    fileprivate func endOldestBearer() {
        guard let channel = links.values.first?.att.enhanced?.bearers.first?.channel else { return }
        closeChannel(channel)
    }
}
