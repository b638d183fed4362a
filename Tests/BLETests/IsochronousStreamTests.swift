import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BLE

@Suite("Isochronous streams")
struct IsochronousStreamTests {
    /// Two connected hosts that support streams.
    private struct Pair {
        let central: Adapter
        let peripheral: Adapter
        let peer: RemotePeripheral
        let requests: Events<IsochronousStreamOffer>
        let advertising: AdvertisingSet

        init(in world: World) async throws {
            central = try await world.device("central").openAdapter { $0.usesConnectedStreams = true }
            peripheral = try await world.device("peripheral").openAdapter { $0.usesConnectedStreams = true }
            requests = try await peripheral.peripheral.streamRequests()
            advertising = try await peripheral.peripheral.startAdvertising(AdvertisementConfiguration())
            peer = try await central.central.connect(to: try await peripheral.information.identityAddress)
        }

        func open(
            _ parameters: ConnectedGroupParameters = ConnectedGroupParameters()
        ) async throws -> (IsochronousStream, IsochronousStream) {
            async let opened = central.central.openStreams(to: [peer], parameters)
            var offer: IsochronousStreamOffer?
            for await request in requests {
                offer = request
                break
            }
            let accepted = try await #require(offer).accept()
            return (try await opened[0], accepted)
        }
    }

    @Test("SDUs of any length arrive in both directions, in order")
    func sdusArriveInBothDirections() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            var parameters = ConnectedGroupParameters()
            parameters.maximumSDUToPeripheral = 1000
            parameters.maximumSDUToCentral = 300
            let (central, peripheral) = try await pair.open(parameters)
            let long = (0..<1000).map { UInt8(truncatingIfNeeded: $0) }
            for count in 0..<40 {
                try await central.send(Array(long.prefix(count * 25)))
                try await peripheral.send(Array(long.prefix(count * 7)))
            }
            var (fromCentral, fromPeripheral) = (peripheral.makeAsyncIterator(), central.makeAsyncIterator())
            for count in 0..<40 {
                let first = try await fromCentral.next()
                #expect(first?.data == Array(long.prefix(count * 25)) && first?.status == .valid)
                let second = try await fromPeripheral.next()
                #expect(second?.data == Array(long.prefix(count * 7)) && second?.timeStamp != nil)
            }
        }
    }

    @Test("SDUs of the greatest length pass the buffers of the controller")
    func longestSDUsArrive() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            var parameters = ConnectedGroupParameters()
            parameters.maximumSDUToPeripheral = 4095
            let (central, peripheral) = try await pair.open(parameters)
            let longest = (0..<4095).map { UInt8(truncatingIfNeeded: $0) }
            for _ in 0..<10 { try await central.send(longest) }
            var received = peripheral.makeAsyncIterator()
            for _ in 0..<10 { #expect(try await received.next()?.data == longest) }
        }
    }

    @Test("Beyond 256 SDUs that are not read, the next one counts those that were dropped before it")
    func droppedSDUsAreCountedByTheNext() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let (central, peripheral) = try await pair.open()
            for number in 0..<260 { try await central.send([UInt8(truncatingIfNeeded: number), UInt8(number >> 8)]) }
            try await world.sleep(for: .seconds(2))
            var received = peripheral.makeAsyncIterator()
            let first = try await received.next()
            #expect(first?.data == [4, 0] && first?.droppedBefore == 4)
            let second = try await received.next()
            #expect(second?.data == [5, 0] && second?.droppedBefore == 0)
            withExtendedLifetime(central) {}
        }
    }

    @Test("An SDU whose call is cancelled is not sent")
    func cancelledSDUIsNotSent() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let (central, peripheral) = try await pair.open()
            let sending = Task(executorPreference: world.taskExecutor) {
                for number in 0..<UInt8(100) { try await central.send([number]) }
            }
            let cancelled = Task(executorPreference: world.taskExecutor) {
                // The queues of the host and of the controller are full by now.
                try await world.sleep(for: .milliseconds(1))
                try await central.send([255])
            }
            try await world.sleep(for: .milliseconds(2))
            cancelled.cancel()
            await #expect(throws: BLEError.cancelled) { try await cancelled.value }
            try await sending.value
            var received = peripheral.makeAsyncIterator()
            for number in 0..<UInt8(100) { #expect(try await received.next()?.data == [number]) }
            try await central.send([100])
            #expect(try await received.next()?.data == [100])
            withExtendedLifetime(central) {}
        }
    }

    @Test("A stream that only receives sends no SDU")
    func streamThatOnlyReceivesSendsNoSDU() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let (central, peripheral) = try await pair.open(ConnectedGroupParameters(maximumSDUToCentral: 0))
            #expect(central.canSend && !central.canReceive)
            #expect(!peripheral.canSend && peripheral.canReceive)
            await #expect(throws: BLEError.invalidArgument("the stream is closed or only receives")) {
                try await peripheral.send([1])
            }
            try await central.send([2])
            var received = peripheral.makeAsyncIterator()
            #expect(try await received.next()?.data == [2])
            withExtendedLifetime(central) {}
        }
    }

    @Test("The controller gets the time stamp of an SDU")
    func controllerGetsTheTimeStampOfAnSDU() throws {
        let world = World(recordsCaptures: true)
        defer { world.close() }
        try world.run {
            let pair = try await Pair(in: world)
            let (central, peripheral) = try await pair.open()
            try await central.send([0xAA, 0xBB], timeStamp: 0x0102_0304)
            var received = peripheral.makeAsyncIterator()
            #expect(try await received.next()?.data == [0xAA, 0xBB])
            withExtendedLifetime(central) {}
            let capture = world.devices[0].capture
            // The time stamp, the sequence number, the length and the data of the ISO packet (Vol 4, Part E, 5.4.5).
            let fields: [UInt8] = [4, 3, 2, 1, 0, 0, 2, 0, 0xAA, 0xBB]
            #expect(capture.indices.contains { capture[$0...].starts(with: fields) })
        }
    }

    @Test("A closed stream ends for the peer, and so does one whose link ends")
    func endsReachThePeer() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let (central, peripheral) = try await pair.open()
            await central.close()
            var iterator = peripheral.makeAsyncIterator()
            do throws(BLEError) {
                _ = try await iterator.next()
                Issue.record("the stream has not ended")
            } catch {
                #expect(error == .disconnected(.controller(.remoteUserTerminatedConnection)))
            }
            do throws(BLEError) {
                try await peripheral.send([1])
                Issue.record("the stream that has ended accepts an SDU")
            } catch {
                #expect(error == .disconnected(.controller(.remoteUserTerminatedConnection)))
            }
            let (again, _) = try await pair.open()
            await pair.peer.disconnect()
            var ended = again.makeAsyncIterator()
            do throws(BLEError) {
                while try await ended.next() != nil {}
                Issue.record("the stream has outlived its link")
            } catch {
                if case .disconnected = error {} else { Issue.record("\(error)") }
            }
        }
    }

    @Test("A request that is not accepted is rejected when it is released")
    func releasedRequestIsRejected() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            async let opened = pair.central.central.openStreams(to: [pair.peer])
            for await request in pair.requests {
                _ = request
                break
            }
            do {
                _ = try await opened
                Issue.record("the request was accepted")
            } catch BLEError.controllerFailed(_) {
            } catch {
                Issue.record("\(error)")
            }
        }
    }

    @Test("Of 17 requests that wait, one is rejected at once")
    func requestBeyondTheLimitIsRejectedAtOnce() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let start = world.elapsed
            async let opened = pair.central.central.openStreams(to: Array(repeating: pair.peer, count: 17))
            var offers: [IsochronousStreamOffer] = []
            for await offer in pair.requests {
                offers.append(offer)
                if offers.count == 16 { break }
            }
            #expect(Set(offers.map(\.stream)).count == 16)
            for offer in offers { await offer.reject() }
            do {
                _ = try await opened
                Issue.record("all requests were accepted")
            } catch BLEError.controllerFailed(_) {
            } catch {
                Issue.record("\(error)")
            }
            // The controller itself would have rejected a request that waits after five seconds.
            #expect(world.elapsed - start < .seconds(4))
        }
    }

    @Test("Without the setting of the configuration, streams are not supported")
    func streamsNeedTheConfiguration() throws {
        try World.run { world in
            let adapter = try await world.device("central").openAdapter()
            do throws(BLEError) {
                _ = try await adapter.peripheral.streamRequests()
                Issue.record("requests are accepted")
            } catch {
                if case .notSupported = error {} else { Issue.record("\(error)") }
            }
        }
    }
}
