import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BLE

@Suite("Periodic advertising")
struct PeriodicAdvertisingTests {
    private static func data(_ byte: UInt8, length: Int = 10) -> AdvertisingData {
        var data = AdvertisingData()
        var remaining = length
        while remaining > 0 {
            let size = min(remaining, 255)
            data.append(.raw(.manufacturerSpecificData, [UInt8](repeating: byte, count: size - 2)))
            remaining -= size
        }
        return data
    }

    private static func configuration(_ data: AdvertisingData) -> AdvertisementConfiguration {
        AdvertisementConfiguration(
            isConnectable: false,
            isScannable: false,
            periodic: PeriodicAdvertisingConfiguration(interval: .milliseconds(50), data: data)
        )
    }

    /// The address and the identifier of the advertising set that a scan reports.
    private static func find(_ address: DeviceAddress, _ adapter: Adapter) async throws -> PeriodicTrainRequest {
        for try await advertisement in adapter.central.scan() where advertisement.address == address {
            let sid = try #require(advertisement.advertisingSetIdentifier)
            return PeriodicTrainRequest(address: address, sid: sid, timeout: .seconds(1))
        }
        throw BLEError.closed
    }

    @Test("A train of any length is received, and follows changes of its data", arguments: [0, 10, 252, 253, 600])
    func trainOfAnyLengthIsReceived(length: Int) throws {
        try World.run { world in
            let sender = try await world.device("sender").openAdapter()
            let receiver = try await world.device("receiver").openAdapter()
            let first = Self.data(1, length: length)
            let advertising = try await sender.peripheral.startAdvertising(Self.configuration(first))
            let request = try await Self.find(try await sender.information.identityAddress, receiver)
            var isSynchronized = false
            var expected = [first, Self.data(2), Self.data(3, length: 700), Self.data(4, length: 252)]
            for try await event in receiver.central.periodicAdvertising(request) {
                switch event {
                case .synchronized(let train):
                    #expect(train.interval == .milliseconds(50))
                    isSynchronized = true
                case .received(let advertisement):
                    #expect(isSynchronized && !advertisement.isTruncated)
                    guard advertisement.data == expected.first else { continue }
                    expected.removeFirst()
                    if let next = expected.first { try await advertising.setPeriodicData(next) }
                // Data of several commands ends the train, and begins another one.
                case .lost: #expect(expected.first == Self.data(3, length: 700))
                case .missed, .eventsDropped: Issue.record("\(event)")
                }
                if expected.isEmpty { break }
            }
            #expect(expected.isEmpty)
            await advertising.stop()
        }
    }

    @Test("A train is received again immediately after its iteration has ended")
    func nextIterationReceivesTheTrainAgain() throws {
        try World.run { world in
            let sender = try await world.device("sender").openAdapter()
            let receiver = try await world.device("receiver").openAdapter()
            let advertising = try await sender.peripheral.startAdvertising(Self.configuration(Self.data(1)))
            let request = try await Self.find(try await sender.information.identityAddress, receiver)
            for _ in 1...2 {
                var received: AdvertisingData?
                for try await case .received(let advertisement) in receiver.central.periodicAdvertising(request) {
                    received = advertisement.data
                    break
                }
                #expect(received == Self.data(1))
            }
            await advertising.stop()
        }
    }

    @Test("A train that ends is lost, and is received again when it is back")
    func trainThatEndsIsLostAndReceivedAgain() throws {
        try World.run { world in
            let sender = try await world.device("sender").openAdapter()
            let receiver = try await world.device("receiver").openAdapter()
            var advertising = try await sender.peripheral.startAdvertising(Self.configuration(Self.data(1)))
            let request = try await Self.find(try await sender.information.identityAddress, receiver)
            var words: [String] = []
            for try await event in receiver.central.periodicAdvertising(request) {
                switch event {
                case .synchronized: words.append("synchronized")
                case .lost:
                    words.append("lost")
                    advertising = try await sender.peripheral.startAdvertising(Self.configuration(Self.data(2)))
                case .received(let advertisement):
                    let word = advertisement.data == Self.data(1) ? "first" : "second"
                    guard words.last != word else { continue }
                    words.append(word)
                    if word == "first" { await advertising.stop() }
                case .missed, .eventsDropped: Issue.record("\(event)")
                }
                if words.last == "second" { break }
            }
            #expect(words == ["synchronized", "first", "lost", "synchronized", "second"])
            await advertising.stop()
        }
    }

    @Test("Several trains are received at the same time, also one that is not there yet")
    func severalTrainsAreReceivedAtTheSameTime() throws {
        try World.run { world in
            let receiver = try await world.device("receiver").openAdapter()
            var addresses: [DeviceAddress] = []
            var senders: [Adapter] = []
            for index in 0..<3 {
                let sender = try await world.device("sender\(index)").openAdapter()
                senders.append(sender)
                addresses.append(try await sender.information.identityAddress)
            }
            // The first train begins after the others were received, although it is asked for first.
            let others = [
                try await senders[1].peripheral.startAdvertising(Self.configuration(Self.data(1))),
                try await senders[2].peripheral.startAdvertising(Self.configuration(Self.data(2))),
            ]
            let central = receiver.central
            let first: AdvertisingSet? = try await withThrowingTaskGroup(of: Int.self) { group in
                for (index, address) in addresses.enumerated() {
                    group.addTask {
                        let request = PeriodicTrainRequest(address: address, sid: 0)
                        for try await event in central.periodicAdvertising(request) {
                            if case .received(let advertisement) = event {
                                #expect(advertisement.data == Self.data(UInt8(index)))
                                return index
                            }
                        }
                        return -1
                    }
                }
                var received: Set = [try await group.next(), try await group.next()]
                #expect(received == [1, 2])
                let advertising = try await senders[0].peripheral.startAdvertising(Self.configuration(Self.data(0)))
                received.insert(try await group.next())
                #expect(received == [0, 1, 2])
                return advertising
            }
            await first?.stop()
            for advertising in others { await advertising.stop() }
        }
    }

    @Test("Requests and trains out of range are refused, and so is the same train twice")
    func requestsOutOfRangeAreRefused() throws {
        try World.run { world in
            let adapter = try await world.device("adapter").openAdapter()
            let address = DeviceAddress(0xC000_0000_0001, isRandom: true)
            let requests = [
                PeriodicTrainRequest(address: address, sid: 16),
                PeriodicTrainRequest(address: address, sid: 0, skip: 500),
                PeriodicTrainRequest(address: address, sid: 0, timeout: .milliseconds(99)),
            ]
            for request in requests {
                await #expect(throws: BLEError.self) {
                    for try await _ in adapter.central.periodicAdvertising(request) {}
                }
            }
            for interval in [Duration.milliseconds(7), .milliseconds(82_000)] {
                var configuration = Self.configuration(AdvertisingData())
                configuration.periodic?.interval = interval
                await #expect(throws: BLEError.self) { try await adapter.peripheral.startAdvertising(configuration) }
            }
            var configuration = Self.configuration(AdvertisingData())
            configuration.isConnectable = true
            await #expect(throws: BLEError.self) { try await adapter.peripheral.startAdvertising(configuration) }
            let plain = try await adapter.peripheral.startAdvertising(AdvertisementConfiguration())
            await #expect(throws: BLEError.invalidArgument("the advertisement has no periodic train")) {
                try await plain.setPeriodicData(AdvertisingData())
            }
            await plain.stop()
        }
    }
}
