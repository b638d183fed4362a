import BLE
import Testing

/// Two adapters in a virtual air of their own.
private func makePair(_ name: String) async throws -> (peripheral: Adapter, central: Adapter) {
    let specification = AdapterSpecification.virtual(name: name)
    return (try await Adapter.open(specification), try await Adapter.open(specification))
}

private let service = ServiceDefinition(
    uuid: "9F3B0001-5C3A-4F8E-9A52-0D4A1E6C7B11",
    characteristics: [
        CharacteristicDefinition(
            uuid: "9F3B0002-5C3A-4F8E-9A52-0D4A1E6C7B11",
            properties: [.read, .write, .writeWithoutResponse],
            permissions: [.read, .write],
            value: .stored(Array(repeating: 0x5A, count: 512))
        ),
        CharacteristicDefinition(
            uuid: "9F3B0003-5C3A-4F8E-9A52-0D4A1E6C7B11",
            properties: [.notify, .indicate],
            permissions: [],
            value: .stored([])
        ),
        CharacteristicDefinition(
            uuid: "9F3B0004-5C3A-4F8E-9A52-0D4A1E6C7B11",
            properties: [.read, .write],
            permissions: [.read, .write],
            value: .handled
        ),
    ]
)

@Suite("A central and a peripheral on two virtual adapters")
struct ConversationTests {
    /// Publishes the service, advertises it and connects the other adapter to it.
    private func connect(
        _ name: String,
        handler: Peripheral.ValueHandler? = nil
    ) async throws -> (peripheral: Adapter, central: Adapter, published: PublishedService, peer: RemotePeripheral) {
        let (peripheral, central) = try await makePair(name)
        let published = try await peripheral.peripheral.publish([service], handler: handler)
        let advertising = try await peripheral.peripheral.startAdvertising(
            AdvertisementConfiguration(
                interval: .milliseconds(20),
                advertisingData: AdvertisingData([.serviceUUIDs([service.uuid], isComplete: true)])
            )
        )
        var address: DeviceAddress?
        for try await advertisement in central.central.scan(ScanOptions(serviceUUIDs: [service.uuid])) {
            address = advertisement.address
            break
        }
        let peer = try await central.central.connect(to: #require(address))
        await advertising.stop()
        return (peripheral, central, published[0], peer)
    }

    @Test("A published service is discovered, and long values are read and written completely")
    func longValuesAreReadAndWrittenCompletely() async throws {
        let (peripheral, central, published, peer) = try await connect("values")
        let services = try await peer.discoverAll()
        #expect(services.map(\.uuid) == ["1800", "1801", service.uuid])
        #expect(services.last?.characteristics.map(\.valueHandle) == published.characteristics.map(\.valueHandle))
        let handle = published.characteristics[0].valueHandle
        #expect(try await peer.read(handle) == Array(repeating: 0x5A, count: 512))
        for kind in [WriteKind.withResponse, .reliable] {
            let value = (0..<512).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            try await peer.write(value, to: handle, kind: kind)
            #expect(await peripheral.peripheral.value(of: handle) == value)
            try await peer.write([1], to: handle)
        }
        await central.close()
        await peripheral.close()
    }

    @Test("Writes without response arrive before later requests, and before the link ends")
    func writesWithoutResponseArriveBeforeLaterRequestsAndTheEnd() async throws {
        let (peripheral, central, published, peer) = try await connect("commands")
        let events = await peripheral.peripheral.events()
        let handle = published.characteristics[0].valueHandle
        for number in 1...600 {
            let value = [UInt8(number & 0xFF), UInt8(number >> 8)]
            try await peer.write(value, to: handle, kind: number % 60 == 0 ? .withResponse : .withoutResponse)
            if number % 100 == 0 { #expect(try await peer.read(handle) == value) }
        }
        // The MTU has room for 514 bytes, but an attribute value has at most 512.
        let mtu = await peer.mtu
        #expect(mtu == 517)
        for length in [513, mtu - 2] {
            let tooLong = [UInt8](repeating: 0, count: length)
            await #expect(throws: BLEError.self) { try await peer.write(tooLong, to: handle, kind: .withoutResponse) }
        }
        for number in 601...620 {
            try await peer.write([UInt8(number & 0xFF), UInt8(number >> 8)], to: handle, kind: .withoutResponse)
        }
        await peer.disconnect()
        await #expect(throws: BLEError.self) { try await peer.write([0, 0], to: handle, kind: .withoutResponse) }
        var numbers: [Int] = []
        for await event in events {
            if case .written(_, handle, _, let value, _) = event { numbers.append(Int(value[0]) | Int(value[1]) << 8) }
            if case .disconnected = event { break }
        }
        #expect(numbers == Array(1...620))
        await central.close()
        await peripheral.close()
    }

    @Test("Writes without response arrive before the link ends, also if the task that disconnects is cancelled")
    func writesWithoutResponseArriveBeforeACancelledTaskEndsTheLink() async throws {
        let (peripheral, central, published, peer) = try await connect("cancelled disconnection")
        let events = await peripheral.peripheral.events()
        let handle = published.characteristics[0].valueHandle
        let task = Task {
            for number in 0..<UInt8(120) { try await peer.write([number], to: handle, kind: .withoutResponse) }
            withUnsafeCurrentTask { $0?.cancel() }
            await peer.disconnect()
        }
        try await task.value
        await #expect(throws: BLEError.self) { try await peer.write([0], to: handle, kind: .withoutResponse) }
        var numbers: [UInt8] = []
        for await event in events {
            if case .written(_, handle, _, let value, _) = event { numbers += value }
            if case .disconnected = event { break }
        }
        #expect(numbers == Array(0..<120))
        await central.close()
        await peripheral.close()
    }

    @Test("A thousand notifications arrive in order, and indications are confirmed")
    func notificationsArriveInOrderAndIndicationsAreConfirmed() async throws {
        let (peripheral, central, published, peer) = try await connect("notifications")
        let handle = published.characteristics[1].valueHandle
        let services = try await peer.discoverAll()
        let characteristic = try #require(services.last?.characteristics[1])
        let notifications = try await peer.subscribe(to: characteristic)
        async let sending: Void = {
            for index in 0..<1000 {
                try await peripheral.peripheral.notify([UInt8(index & 0xFF), UInt8(index >> 8)], of: handle)
            }
        }()
        var expected = 0
        for try await notification in notifications {
            #expect(Int(notification.value[0]) | Int(notification.value[1]) << 8 == expected)
            expected += 1
            if expected == 1000 { break }
        }
        #expect(expected == 1000)
        try await sending
        await notifications.cancel()
        let indications = try await peer.subscribe(to: characteristic, preferring: .indication)
        try await peripheral.peripheral.indicate([7], of: handle)
        var iterator = indications.makeAsyncIterator()
        let indication = try await iterator.next()
        #expect(indication?.value == [7] && indication?.isIndication == true)
        await central.close()
        await peripheral.close()
    }

    @Test("The app answers accesses to its values, with values and with errors")
    func appAnswersAccessesWithValuesAndErrors() async throws {
        let (peripheral, central, published, peer) = try await connect("handled") { _, access in
            switch access {
            case .read(_, let offset): return Array([1, 2, 3].dropFirst(offset))
            case .write(let write, _): guard write.value == [9] else { throw ATTErrorCode(rawValue: 0x81) }
            case .execute: throw ATTErrorCode.writeNotPermitted
            }
            return []
        }
        let handle = published.characteristics[2].valueHandle
        #expect(try await peer.read(handle) == [1, 2, 3])
        try await peer.write([9], to: handle)
        await #expect(throws: BLEError.attribute(.init(rawValue: 0x81), handle: handle)) {
            try await peer.write([8], to: handle)
        }
        await central.close()
        await peripheral.close()
    }

    @Test("Both sides detect a disconnection, and later calls report it")
    func bothSidesDetectADisconnectionAndLaterCallsReportIt() async throws {
        let (peripheral, central, published, peer) = try await connect("disconnection")
        let events = await peripheral.peripheral.events()
        async let reason = peer.disconnection()
        let handle = published.characteristics[0].valueHandle
        _ = try await peer.read(handle)
        await peer.disconnect()
        #expect(try await reason.isLocal)
        var reported: DisconnectionReason?
        for await event in events {
            if case .disconnected(_, let reason) = event {
                reported = reason
                break
            }
        }
        #expect(reported?.isLocal == false)
        await #expect(throws: BLEError.self) { try await peer.read(handle) }
        await central.close()
        await peripheral.close()
    }

    @Test("Connecting to an absent peer times out, and a cancelled attempt ends at once")
    func connectingToAnAbsentPeerTimesOut() async throws {
        let central = try await Adapter.open(.virtual(name: "nobody"))
        let nobody = DeviceAddress(0xC000_0000_0001, isRandom: true)
        await #expect(throws: BLEError.timedOut("connecting to C0:00:00:00:00:01")) {
            _ = try await central.central.connect(to: nobody, timeout: .milliseconds(20))
        }
        let attempt = Task { try await central.central.connect(to: nobody, timeout: nil) }
        attempt.cancel()
        await #expect(throws: BLEError.cancelled) { _ = try await attempt.value }
        await central.close()
        await #expect(throws: BLEError.closed) { _ = try await central.central.connect(to: nobody) }
    }
}
