import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BLE

@Suite("Broadcast isochronous streams")
struct BroadcastStreamTests {
    /// A broadcaster with a periodic train, and a receiver.
    private struct Pair {
        let senderDevice: Device
        let receiverDevice: Device
        let sender: Adapter
        let receiver: Adapter
        let advertising: AdvertisingSet
        let train: PeriodicTrainRequest

        init(in world: World) async throws {
            (senderDevice, receiverDevice) = (world.device("sender"), world.device("receiver"))
            sender = try await senderDevice.openAdapter()
            receiver = try await receiverDevice.openAdapter()
            advertising = try await sender.peripheral.startAdvertising(
                AdvertisementConfiguration(
                    isConnectable: false,
                    isScannable: false,
                    periodic: PeriodicAdvertisingConfiguration(interval: .milliseconds(50))
                )
            )
            let address = try await sender.information.identityAddress
            var found: PeriodicTrainRequest?
            for try await advertisement in receiver.central.scan() where advertisement.address == address {
                found = advertisement.advertisingSetIdentifier.map { PeriodicTrainRequest(address: address, sid: $0) }
                break
            }
            train = try #require(found)
        }
    }

    /// Asserts that a stream ends, after any number of SDUs.
    private static func end(of stream: IsochronousStream) async -> BLEError? {
        var iterator = stream.makeAsyncIterator()
        do throws(BLEError) {
            while try await iterator.next() != nil {}
            return nil
        } catch {
            return error
        }
    }

    @Test("SDUs of any length arrive on each chosen stream, in order", arguments: [nil, "secret"])
    func sdusArrive(_ text: String?) throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let code = text.flatMap { BroadcastCode($0) }
            let group = try await pair.advertising.startBroadcast(
                BroadcastGroupParameters(streamCount: 3, maximumSDU: 600, code: code)
            )
            #expect(group.streams.map(\.broadcastNumber) == [1, 2, 3])
            #expect(group.streams.allSatisfy { $0.canSend && !$0.canReceive && $0.maximumSDU == 600 && $0.link == nil })
            let reception = try await pair.receiver.central.receiveBroadcast(
                of: pair.train,
                BroadcastReceptionParameters(streams: [3, 1], code: code)
            )
            #expect(reception.streams.map(\.broadcastNumber) == [1, 3])
            #expect(reception.information.streamCount == 3 && reception.information.maximumSDU == 600)
            #expect(reception.information.isEncrypted == (code != nil))
            #expect(reception.information.sduInterval == .milliseconds(10))
            for number in 0..<20 {
                for stream in group.streams {
                    let byte = UInt8(stream.broadcastNumber ?? 0)
                    try await stream.send([UInt8](repeating: byte, count: number * 30))
                }
            }
            for (stream, byte) in zip(reception.streams, [1, 3] as [UInt8]) {
                var iterator = stream.makeAsyncIterator()
                for number in 0..<20 {
                    let sdu = try await iterator.next()
                    #expect(sdu?.data == [UInt8](repeating: byte, count: number * 30) && sdu?.status == .valid)
                    #expect(sdu?.timeStamp != nil)
                }
            }
        }
    }

    @Test("A wrong code ends the streams with a typed error")
    func wrongCodeEndsTheStreams() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let group = try await pair.advertising.startBroadcast(
                BroadcastGroupParameters(code: BroadcastCode("secret"))
            )
            let reception = try await pair.receiver.central.receiveBroadcast(
                of: pair.train,
                BroadcastReceptionParameters(code: BroadcastCode("guess"))
            )
            try await group.streams[0].send([1])
            #expect(await Self.end(of: reception.streams[0]) == .broadcast(.wrongCode))
        }
    }

    @Test(
        "A group that does not match the request is not received",
        arguments: [
            ("secret", nil, nil, BroadcastError.codeRequired), (nil, "secret", nil, .notEncrypted),
            (nil, nil, [2], .noStream(number: 2, count: 1)),
        ] as [(String?, String?, [Int]?, BroadcastError)]
    )
    func groupThatDoesNotMatch(_ theirs: String?, _ ours: String?, _ streams: [Int]?, _ expected: BroadcastError) throws
    {
        try World.run { world in
            let pair = try await Pair(in: world)
            let group = try await pair.advertising.startBroadcast(
                BroadcastGroupParameters(code: theirs.flatMap { BroadcastCode($0) })
            )
            do throws(BLEError) {
                _ = try await pair.receiver.central.receiveBroadcast(
                    of: pair.train,
                    BroadcastReceptionParameters(streams: streams, code: ours.flatMap { BroadcastCode($0) })
                )
                Issue.record("the group is received")
            } catch {
                #expect(error == .broadcast(expected))
            }
            await group.stop()
        }
    }

    @Test("The end of a group, or of its advertisement, reaches the receiver", arguments: [false, true])
    func endReachesTheReceiver(_ byAdvertisement: Bool) throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let group = try await pair.advertising.startBroadcast()
            let reception = try await pair.receiver.central.receiveBroadcast(of: pair.train)
            if byAdvertisement { await pair.advertising.stop() } else { await group.stop() }
            #expect(
                await Self.end(of: reception.streams[0]) == .disconnected(.controller(.remoteUserTerminatedConnection))
            )
            guard byAdvertisement else { return }
            #expect(
                await Self.end(of: group.streams[0]) == .disconnected(.controller(.connectionTerminatedByLocalHost))
            )
        }
    }

    @Test("Another group can be sent and received after the first one")
    func groupsFollowEachOther() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            for byte in 1...3 as ClosedRange<UInt8> {
                let group = try await pair.advertising.startBroadcast()
                let reception = try await pair.receiver.central.receiveBroadcast(of: pair.train)
                try await group.streams[0].send([byte])
                var iterator = reception.streams[0].makeAsyncIterator()
                #expect(try await iterator.next()?.data == [byte])
                await reception.stop()
                await group.stop()
                #expect(await Self.end(of: group.streams[0]) != nil)
            }
        }
    }

    @Test("A reception that is cancelled before the group exists stops")
    func receptionIsCancelled() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let (receiver, train) = (pair.receiver, pair.train)
            let task = Task(executorPreference: world.taskExecutor) {
                try await receiver.central.receiveBroadcast(of: train)
            }
            try await world.sleep(for: .seconds(2))
            task.cancel()
            await #expect(throws: BLEError.cancelled) { _ = try await task.value }
        }
    }

    @Test("An SDU beyond the maximum of the group is refused, and so is a second group of the advertisement")
    func argumentsAreChecked() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let group = try await pair.advertising.startBroadcast(BroadcastGroupParameters(maximumSDU: 10))
            do throws(BLEError) {
                try await group.streams[0].send([UInt8](repeating: 0, count: 11))
                Issue.record("the SDU is accepted")
            } catch {
                if case .invalidArgument = error {} else { Issue.record("\(error)") }
            }
            do throws(BLEError) {
                _ = try await pair.advertising.startBroadcast()
                Issue.record("a second group is accepted")
            } catch {
                if case .invalidArgument = error {} else { Issue.record("\(error)") }
            }
        }
    }

    @Test("A failure of either controller ends the streams, and others can be opened after its recovery")
    func failureOfAControllerEndsTheStreams() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            var group = try await pair.advertising.startBroadcast()
            let reception = try await pair.receiver.central.receiveBroadcast(of: pair.train)
            pair.receiverDevice.failWithHardwareError()
            let error = await Self.end(of: reception.streams[0])
            if case .disconnected(.controllerReset) = error {} else { Issue.record("\(error as Any)") }
            try await world.sleep(for: .seconds(2))
            let again = try await pair.receiver.central.receiveBroadcast(of: pair.train)
            pair.senderDevice.failWithHardwareError()
            let sent = await Self.end(of: group.streams[0])
            if case .disconnected(.controllerReset) = sent {} else { Issue.record("\(sent as Any)") }
            #expect(await Self.end(of: again.streams[0]) == .disconnected(.controller(.connectionTimeout)))
            try await world.sleep(for: .seconds(2))
            group = try await pair.advertising.startBroadcast()
            #expect(group.streams.count == 1)
        }
    }

    @Test("A reception that waits for a group ends with the synchronization of the app")
    func waitingReceptionEndsWithTheSynchronizationOfTheApp() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let (central, train) = (pair.receiver.central, pair.train)
            var events: PeriodicAdvertisingEvents.Iterator? = central.periodicAdvertising(train).makeAsyncIterator()
            _ = try await events?.next()
            let reception = Task(executorPreference: world.taskExecutor) {
                _ = try await central.receiveBroadcast(of: train)
            }
            try await world.sleep(for: .seconds(2))
            events = nil
            let ended = BLEError.disconnected(.controller(.connectionTerminatedByLocalHost))
            await #expect(throws: ended) { try await reception.value }
        }
    }

    @Test("A reception that shares the synchronization of an app ends with it")
    func receptionEndsWithTheSynchronizationOfTheApp() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let group = try await pair.advertising.startBroadcast()
            var events: PeriodicAdvertisingEvents.Iterator? = pair.receiver.central.periodicAdvertising(pair.train)
                .makeAsyncIterator()
            _ = try await events?.next()
            let reception = try await pair.receiver.central.receiveBroadcast(of: pair.train)
            try await group.streams[0].send([1])
            var sdus = reception.streams[0].makeAsyncIterator()
            #expect(try await sdus.next()?.data == [1])
            events = nil
            #expect(
                await Self.end(of: reception.streams[0])
                    == .disconnected(.controller(.connectionTerminatedByLocalHost))
            )
        }
    }
}
