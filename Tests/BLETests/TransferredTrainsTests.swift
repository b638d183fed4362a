import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BLE

@Suite("Transferred trains")
struct TransferredTrainsTests {
    private static func data(_ byte: UInt8) -> AdvertisingData {
        AdvertisingData([.raw(.manufacturerSpecificData, [0xFF, 0xFF, byte])])
    }

    private static func train(_ byte: UInt8) -> AdvertisementConfiguration {
        AdvertisementConfiguration(
            isConnectable: false,
            isScannable: false,
            periodic: PeriodicAdvertisingConfiguration(interval: .milliseconds(50), data: data(byte))
        )
    }

    /// A host that is connected to another one, which has a train and knows when the connection is made.
    private struct Pair {
        let central: Adapter
        let peripheral: Adapter
        let link: RemotePeripheral
        let client: ClientID
        let train: AdvertisingSet
        let connectable: AdvertisingSet

        init(in world: World) async throws {
            central = try await world.device("central").openAdapter()
            peripheral = try await world.device("peripheral").openAdapter()
            train = try await peripheral.peripheral.startAdvertising(TransferredTrainsTests.train(1))
            let events = await peripheral.peripheral.events()
            connectable = try await peripheral.peripheral.startAdvertising(AdvertisementConfiguration())
            link = try await central.central.connect(to: try await peripheral.information.identityAddress)
            var connected: ClientID?
            for await event in events {
                if case .connected(let client, _) = event {
                    connected = client
                    break
                }
            }
            client = try #require(connected)
        }
    }

    /// Waits until transfers are accepted.
    private static func begin(_ trains: TransferredTrains) async throws -> TransferredTrains.Iterator {
        var iterator = trains.makeAsyncIterator()
        guard case .ready = try await iterator.next() else { throw BLEError.notReady }
        return iterator
    }

    private static func next(_ iterator: inout TransferredTrains.Iterator) async throws -> TransferredTrain {
        let event = try await iterator.next()
        guard case .received(let train) = event else {
            throw BLEError.malformedResponse("\(String(describing: event))")
        }
        return train
    }

    @Test("A peripheral transfers its train, which the central receives without a scan until it is lost")
    func peripheralTransfersItsTrain() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            var parameters = PeriodicSyncTransferParameters()
            parameters.timeout = .seconds(1)
            var transfers = try await Self.begin(pair.link.transferredTrains(parameters))
            try await pair.peripheral.peripheral.transferTrain(of: pair.train, serviceData: 7, to: pair.client)
            let train = try await Self.next(&transfers)
            let address = try await pair.peripheral.information.identityAddress
            #expect(train.peer == pair.link.address && train.serviceData == 7)
            #expect(train.request.address == address)
            #expect(train.request.timeout == .seconds(1) && train.train.interval == .milliseconds(50))
            var words: [String] = []
            for await event in train.events {
                switch event {
                case .received(let advertisement):
                    let word = advertisement.data == Self.data(1) ? "first" : "second"
                    guard words.last != word else { continue }
                    words.append(word)
                    if word == "first" {
                        try await pair.train.setPeriodicData(Self.data(2))
                    } else {
                        await pair.train.stop()
                    }
                case .lost: words.append("lost")
                case .synchronized, .missed, .eventsDropped: Issue.record("\(event)")
                }
            }
            #expect(words == ["first", "second", "lost"])
            await pair.link.disconnect()
            do throws(BLEError) {
                _ = try await transfers.next()
                Issue.record("the reception has outlived its link")
            } catch {
                if case .disconnected = error {} else { Issue.record("\(error)") }
            }
        }
    }

    @Test("A central transfers its train to a client of a host that accepts transfers on all links")
    func centralTransfersItsTrain() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let advertising = try await pair.central.peripheral.startAdvertising(Self.train(5))
            var transfers = try await Self.begin(pair.peripheral.central.transferredTrains())
            try await pair.link.transferTrain(of: advertising)
            let train = try await Self.next(&transfers)
            var isReceived = false
            for await case .received(let advertisement) in train.events {
                isReceived = advertisement.data == Self.data(5)
                break
            }
            #expect(isReceived)
            await advertising.stop()
        }
    }

    @Test("A host transfers a train of a third one, and it is transferred on")
    func synchronizationIsTransferredOn() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            let third = try await world.device("third").openAdapter()
            let advertising = try await third.peripheral.startAdvertising(Self.train(9))
            let request = PeriodicTrainRequest(address: try await third.information.identityAddress, sid: 0)
            await #expect(throws: BLEError.self, "the train is not received") {
                try await pair.link.transferSynchronization(with: request)
            }
            var transfers = try await Self.begin(pair.peripheral.central.transferredTrains())
            for try await event in pair.central.central.periodicAdvertising(request) {
                guard case .synchronized = event else { continue }
                try await pair.link.transferSynchronization(with: request, serviceData: 0xFFFF)
                break
            }
            let train = try await Self.next(&transfers)
            #expect(train.request.address == request.address && train.request.sid == 0)
            #expect(train.serviceData == 0xFFFF)
            var count = 0
            for await case .received(let advertisement) in train.events {
                #expect(advertisement.data == Self.data(9))
                count += 1
                if count == 3 { break }
            }
            #expect(count == 3)
            // The host that got the train gives it back: the first one no longer receives it.
            var back = try await Self.begin(pair.link.transferredTrains())
            try await pair.peripheral.peripheral.transferSynchronization(with: train.request, to: pair.client)
            let returned = try await Self.next(&back)
            #expect(returned.request.address == request.address)
            await advertising.stop()
        }
    }

    @Test("A train whose last reference is released is no longer received")
    func releasedTrainIsNoLongerReceived() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            var transfers = try await Self.begin(pair.link.transferredTrains())
            try await pair.peripheral.peripheral.transferTrain(of: pair.train, to: pair.client)
            var train: TransferredTrain? = try await Self.next(&transfers)
            #expect(train != nil)
            #expect(await pair.central.host.inspect().synchronizations == 1)
            train = nil
            try await world.sleep(for: .milliseconds(100))
            #expect(await pair.central.host.inspect().synchronizations == 0)
            // It can be transferred again, which a controller that receives it would ignore.
            try await pair.peripheral.peripheral.transferTrain(of: pair.train, to: pair.client)
            _ = try await Self.next(&transfers)
        }
    }

    @Test("Transfers that cannot be made are errors")
    func transfersThatCannotBeMadeAreErrors() throws {
        try World.run { world in
            let pair = try await Pair(in: world)
            await #expect(throws: BLEError.invalidArgument("the advertisement has no periodic train")) {
                try await pair.peripheral.peripheral.transferTrain(of: pair.connectable, to: pair.client)
            }
            await pair.train.stop()
            await #expect(throws: BLEError.closed) {
                try await pair.peripheral.peripheral.transferTrain(of: pair.train, to: pair.client)
            }
            for parameters in [
                PeriodicSyncTransferParameters(skip: 500), PeriodicSyncTransferParameters(timeout: .milliseconds(99)),
            ] {
                await #expect(throws: BLEError.self) {
                    for try await _ in pair.central.central.transferredTrains(parameters) {}
                }
            }
            await pair.link.disconnect()
            await #expect(throws: BLEError.self) {
                try await pair.peripheral.peripheral.transferTrain(of: pair.train, to: pair.client)
            }
        }
    }
}
