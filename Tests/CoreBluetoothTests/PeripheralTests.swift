import BLEATT
import BluetoothTypes
import Foundation
import Testing

@testable import BLEGATT
@testable import CoreBluetooth

@Suite("A peripheral")
struct PeripheralTests {
    // MARK: Discovery

    @Test("Services are in the order of their handles, without GAP and GATT, and stay the same objects")
    func servicesAreInTheOrderOfHandlesAndStayTheSameObjects() throws {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        #expect(peripheral.services == nil)
        peripheral.discoverServices([CBUUID(string: "180D")])
        fixture.answer(.discoverServices(["180D"]), .success([CentralFixture.service]))
        let first = try #require(peripheral.services?.first)
        #expect(first.uuid == CBUUID(string: "180D"))
        #expect(first.isPrimary)
        #expect(first.peripheral === peripheral)
        #expect(first.characteristics == nil)
        peripheral.discoverServices([])
        fixture.answer(
            .discoverServices(nil),
            .success([
                DiscoveredService(uuid: "180F", isPrimary: true, handle: 0x0020, endHandle: 0x002F),
                CentralFixture.service,
                DiscoveredService(uuid: "1800", isPrimary: true, handle: 0x0001, endHandle: 0x0007),
                DiscoveredService(uuid: "1801", isPrimary: true, handle: 0x0008, endHandle: 0x000F),
            ])
        )
        #expect(peripheral.services?.map(\.uuid.uuidString) == ["180D", "180F"])
        #expect(peripheral.services?.first === first)
        #expect(fixture.takeTold() == ["services", "services"])
    }

    @Test("Services found by type are added to those found before")
    func servicesFoundByTypeAreAddedToThoseFoundBefore() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        peripheral.discoverServices([CBUUID(string: "180D")])
        fixture.answer(.discoverServices(["180D"]), .success([CentralFixture.service]))
        peripheral.discoverServices([CBUUID(string: "180F")])
        fixture.answer(.discoverServices(["180F"]), .success([DiscoveredService]()))
        #expect(peripheral.services?.count == 1)
        peripheral.discoverServices(nil)
        fixture.answer(.discoverServices(nil), .success([DiscoveredService]()))
        #expect(peripheral.services == [])
        #expect(fixture.recorder.errors.isEmpty)
    }

    @Test("Characteristics, descriptors and included services are found with their parents")
    func attributesAreFoundWithTheirParents() throws {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let (service, measurement, location) = fixture.discover(peripheral)
        #expect(measurement.service === service)
        #expect(measurement.properties == [.read, .notify, .indicate])
        #expect(measurement.value == nil && measurement.descriptors == nil && !measurement.isNotifying)
        peripheral.discoverCharacteristics([CBUUID(string: "2A38")], for: service)
        fixture.answer(
            .discoverCharacteristics(CentralFixture.range),
            .success([CentralFixture.measurement, CentralFixture.location])
        )
        #expect(service.characteristics?.count == 2)
        #expect(service.characteristics?.contains { $0 === location } == true)
        peripheral.discoverDescriptors(for: measurement)
        fixture.answer(
            .discoverDescriptors(HandleRange(start: 0x0013, end: 0x0013)),
            .success([DiscoveredDescriptor(uuid: "2902", handle: 0x0013)])
        )
        let descriptor = try #require(measurement.descriptors?.first)
        #expect(descriptor.characteristic === measurement)
        #expect(descriptor.uuid == CBUUID(string: CBUUIDClientCharacteristicConfigurationString))
        // There is no handle left for descriptors, so no request is sent.
        peripheral.discoverDescriptors(for: location)
        #expect(fixture.takeTold() == ["characteristics", "descriptors", "descriptors"])
        #expect(location.descriptors == [])
        peripheral.discoverIncludedServices(nil, for: service)
        fixture.answer(
            .discoverIncludedServices(CentralFixture.range),
            .success([
                IncludedService(uuid: "180F", declarationHandle: 0x0011, handle: 0x0040, endHandle: 0x004F)
            ])
        )
        let included = try #require(service.includedServices?.first)
        #expect(!included.isPrimary)
        #expect(included.peripheral === peripheral)
        #expect(peripheral.services?.count == 1)
        peripheral.discoverServices(nil)
        let found = DiscoveredService(uuid: "180F", isPrimary: true, handle: 0x0040, endHandle: 0x004F)
        fixture.answer(.discoverServices(nil), .success([CentralFixture.service, found]))
        #expect(peripheral.services?.last === included && included.isPrimary)
    }

    @Test("An error of discovery is delivered and changes nothing")
    func errorOfDiscoveryIsDeliveredAndChangesNothing() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        peripheral.discoverServices(nil)
        let failure = Result<[DiscoveredService], BackendError>.failure(.core(.notConnected))
        fixture.answer(.discoverServices(nil), failure)
        #expect(peripheral.services == nil)
        #expect((fixture.recorder.errors.first as? CBError)?.code == .notConnected)
    }

    // MARK: Values

    @Test("A read value is set before the callback; an error leaves the value unchanged")
    func readValueIsSetBeforeTheCallback() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let (_, measurement, _) = fixture.discover(peripheral)
        peripheral.readValue(for: measurement)
        peripheral.readValue(for: measurement)
        fixture.answer(.read(0x0012), .success([1, 2] as [UInt8]))
        fixture.answer(.read(0x0012), Result<[UInt8], BackendError>.failure(.attribute(ATTErrorCode(rawValue: 0x81))))
        #expect(fixture.takeTold() == ["value [1, 2]", "value [1, 2]"])
        #expect((fixture.recorder.errors.first as? CBATTError)?.code.rawValue == 0x81)
    }

    @Test("Notifications arrive one by one, in order, each with its value")
    func notificationsArriveOneByOneEachWithItsValue() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let (_, measurement, _) = fixture.discover(peripheral)
        peripheral.setNotifyValue(true, for: measurement)
        fixture.answer(.configure(.notification, 0x0012), Result<Void, BackendError>.success(()))
        for value in 0..<3 as Range<UInt8> {
            fixture.backend.deliver(.valueReceived(peripheral.identifier, 0x0012, [value]))
        }
        fixture.backend.deliver(.valueReceived(peripheral.identifier, 0x0099, [9]))
        #expect(fixture.takeTold() == ["notifying true", "value [0]", "value [1]", "value [2]"])
        peripheral.setNotifyValue(false, for: measurement)
        fixture.answer(.configure([], 0x0012), Result<Void, BackendError>.success(()))
        #expect(fixture.takeTold() == ["notifying false"])
    }

    @Test("A value that can only be indicated is indicated; one that can be neither is an error")
    func valueThatCanOnlyBeIndicatedIsIndicated() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let (service, _, location) = fixture.discover(peripheral)
        peripheral.setNotifyValue(true, for: location)
        #expect(fixture.takeCalls().isEmpty)
        #expect(fixture.takeTold() == ["notifying false"])
        #expect((fixture.recorder.errors.first as? CBATTError)?.code == .requestNotSupported)
        let indicated = DiscoveredCharacteristic(
            uuid: "2A05",
            handle: 0x0016,
            valueHandle: 0x0017,
            endHandle: 0x0018,
            properties: .indicate
        )
        peripheral.discoverCharacteristics(nil, for: service)
        fixture.answer(.discoverCharacteristics(CentralFixture.range), .success([indicated]))
        _ = fixture.takeCalls()
        peripheral.setNotifyValue(true, for: service.characteristics![0])
        #expect(fixture.takeCalls() == [.configure(.indication, 0x0017)])
    }

    @Test("Descriptors are read in the type of their kind")
    func descriptorsAreReadInTheTypeOfTheirKind() throws {
        #expect(CBDescriptor.value([0x01, 0x00], of: "2900") as? NSNumber == 1)
        #expect(CBDescriptor.value([0x02, 0x01], of: "2902") as? Int == 0x0102)
        #expect(CBDescriptor.value([], of: "2903") as? NSNumber == 0)
        #expect(CBDescriptor.value(Array("Level".utf8), of: "2901") as? String == "Level")
        #expect(CBDescriptor.value([4, 0, 0, 0, 0, 0, 0], of: "2904") as? Data == Data([4, 0, 0, 0, 0, 0, 0]))
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let (_, measurement, _) = fixture.discover(peripheral)
        peripheral.discoverDescriptors(for: measurement)
        fixture.answer(
            .discoverDescriptors(HandleRange(start: 0x0013, end: 0x0013)),
            .success([DiscoveredDescriptor(uuid: "2901", handle: 0x0013)])
        )
        let descriptor = try #require(measurement.descriptors?.first)
        peripheral.readValue(for: descriptor)
        fixture.answer(.read(0x0013), .success(Array("Level".utf8)))
        peripheral.writeValue(Data("Rate".utf8), for: descriptor)
        fixture.answer(.write(Array("Rate".utf8), 0x0013), Result<Void, BackendError>.success(()))
        #expect(fixture.takeTold() == ["descriptors", "descriptor Level", "descriptor written"])
        #expect(descriptor.value as? String == "Level")
    }

    @Test("Each write with response has its callback; one over 512 bytes fails without being sent")
    func eachWriteWithResponseHasItsCallback() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let (_, _, location) = fixture.discover(peripheral)
        for value in 1...3 as ClosedRange<UInt8> {
            peripheral.writeValue(Data([value]), for: location, type: .withResponse)
        }
        #expect(fixture.takeCalls() == [.write([1], 0x0015), .write([2], 0x0015), .write([3], 0x0015)])
        fixture.answer(.write([1], 0x0015), Result<Void, BackendError>.success(()))
        fixture.answer(.write([2], 0x0015), Result<Void, BackendError>.failure(.attribute(.writeNotPermitted)))
        #expect(fixture.takeTold() == ["written", "written"])
        #expect((fixture.recorder.errors.first as? CBATTError)?.code == .writeNotPermitted)
        #expect(location.value == nil)
        peripheral.writeValue(Data(count: 513), for: location, type: .withResponse)
        #expect(fixture.takeCalls().isEmpty)
        #expect(fixture.takeTold() == ["written"])
        #expect((fixture.recorder.errors.last as? CBATTError)?.code == .invalidAttributeValueLength)
    }

    @Test("A write without response is dropped if the characteristic or the link cannot carry it")
    func writeThatCannotBeCarriedIsDropped() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral(mtu: 23)
        let (_, measurement, location) = fixture.discover(peripheral)
        #expect(peripheral.maximumWriteValueLength(for: .withoutResponse) == 20)
        #expect(peripheral.maximumWriteValueLength(for: .withResponse) == 512)
        peripheral.writeValue(Data([1]), for: measurement, type: .withoutResponse)
        peripheral.writeValue(Data(count: 21), for: location, type: .withoutResponse)
        #expect(fixture.takeCalls().isEmpty)
        fixture.deliver(.mtuChanged(peripheral.identifier, 185))
        #expect(peripheral.maximumWriteValueLength(for: .withoutResponse) == 182)
        peripheral.writeValue(Data(count: 182), for: location, type: .withoutResponse)
        #expect(fixture.takeCalls() == [.writeWithoutResponse(Array(repeating: 0, count: 182), 0x0015)])
        #expect(fixture.takeTold().isEmpty)
    }

    @Test("A write without response has at most 512 bytes, also if the MTU has room for more")
    func writeWithoutResponseHasAtMost512Bytes() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral(mtu: 517)
        let (_, _, location) = fixture.discover(peripheral)
        #expect(peripheral.maximumWriteValueLength(for: .withoutResponse) == 512)
        peripheral.writeValue(Data(count: 513), for: location, type: .withoutResponse)
        #expect(fixture.takeCalls().isEmpty)
        peripheral.writeValue(Data(count: 512), for: location, type: .withoutResponse)
        #expect(fixture.takeCalls() == [.writeWithoutResponse(Array(repeating: 0, count: 512), 0x0015)])
    }

    @Test("Room for writes without response ends, and is reported with one callback")
    func roomForWritesIsReportedWithOneCallback() {
        let fixture = CentralFixture()
        let peripheral = fixture.makePeripheral()
        #expect(!peripheral.canSendWriteWithoutResponse)
        fixture.connect(peripheral)
        let (_, _, location) = fixture.discover(peripheral)
        var sent = 0
        while peripheral.canSendWriteWithoutResponse {
            peripheral.writeValue(Data([0]), for: location, type: .withoutResponse)
            sent += 1
        }
        #expect(sent == CBPeripheral.writeLimit)
        // An app that does not check for room loses nothing.
        peripheral.writeValue(Data([1]), for: location, type: .withoutResponse)
        fixture.answer(.writeWithoutResponse([1], 0x0015), Result<Void, BackendError>.success(()))
        #expect(fixture.takeTold().isEmpty)
        for _ in 0..<sent {
            fixture.answer(.writeWithoutResponse([0], 0x0015), Result<Void, BackendError>.success(()))
        }
        #expect(fixture.takeTold() == ["ready"])
        #expect(peripheral.canSendWriteWithoutResponse)
    }

    @Test("The client configuration is not written as a descriptor")
    func clientConfigurationIsNotWrittenAsADescriptor() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let fixture = CentralFixture()
            let peripheral = fixture.connectedPeripheral()
            let (_, measurement, _) = fixture.discover(peripheral)
            peripheral.discoverDescriptors(for: measurement)
            fixture.answer(
                .discoverDescriptors(HandleRange(start: 0x0013, end: 0x0013)),
                .success([DiscoveredDescriptor(uuid: "2902", handle: 0x0013)])
            )
            peripheral.writeValue(Data([1, 0]), for: measurement.descriptors![0])
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(
            text.contains(
                "Client Characteristic Configuration descriptors must be configured using setNotifyValue:forCharacteristic:"
            )
        )
    }

    // MARK: The link

    @Test("The signal strength is read while connected; 127 means that it is not known")
    func signalStrengthIsReadAndUnknownIs127() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        peripheral.readRSSI()
        peripheral.readRSSI()
        fixture.answer(.readRSSI, Result<Int?, BackendError>.success(-61))
        fixture.answer(.readRSSI, Result<Int?, BackendError>.success(nil))
        #expect(fixture.takeTold() == ["rssi -61", "rssi 127"])
    }

    @Test("A channel is delivered with its streams, or the error")
    func channelIsDeliveredWithItsStreamsOrTheError() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        peripheral.openL2CAPChannel(0x00C0)
        peripheral.openL2CAPChannel(0x00C0)
        let streams = ChannelStreams(input: InputStream(data: Data()), output: OutputStream.toMemory())
        fixture.answer(.openChannel(0x00C0), Result<ChannelStreams, BackendError>.success(streams))
        fixture.answer(.openChannel(0x00C0), Result<ChannelStreams, BackendError>.failure(.core(.connectionFailed)))
        #expect(fixture.takeTold() == ["channel 192", "channel 0"])
        #expect(fixture.recorder.errors.count == 1)
    }

    @Test("No request is sent before a connection and after it")
    func noRequestIsSentWithoutAConnection() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let (service, measurement, location) = fixture.discover(peripheral)
        fixture.deliver(.disconnected(peripheral.connection, Disconnection(error: nil, time: 1)))
        _ = fixture.takeTold()
        for _ in 0..<2 {
            peripheral.discoverCharacteristics(nil, for: service)
            peripheral.discoverIncludedServices(nil, for: service)
            peripheral.discoverDescriptors(for: measurement)
            peripheral.readValue(for: measurement)
            peripheral.writeValue(Data([1]), for: location, type: .withResponse)
            peripheral.writeValue(Data([1]), for: location, type: .withoutResponse)
            peripheral.setNotifyValue(true, for: measurement)
            // Objects of the previous connection are invalid in this one.
            #expect(fixture.takeCalls().isEmpty)
            #expect(fixture.takeTold().isEmpty)
            fixture.connect(peripheral)
        }
    }

    @Test("Services, notifying and pending calls end with the connection; no callback follows")
    func endOfTheConnectionEndsServicesAndCallsWithoutACallback() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let (_, measurement, location) = fixture.discover(peripheral)
        peripheral.setNotifyValue(true, for: measurement)
        fixture.answer(.configure(.notification, 0x0012), Result<Void, BackendError>.success(()))
        peripheral.readValue(for: measurement)
        peripheral.writeValue(Data([1]), for: location, type: .withResponse)
        _ = fixture.takeTold()
        fixture.deliver(
            .disconnected(peripheral.connection, Disconnection(error: .core(.connectionTimeout), time: 1))
        )
        #expect(peripheral.services == nil)
        #expect(!measurement.isNotifying)
        #expect(peripheral.maximumWriteValueLength(for: .withoutResponse) == 20)
        fixture.backend.deliver(.valueReceived(peripheral.identifier, 0x0012, [7]))
        fixture.answer(.read(0x0012), .success([1] as [UInt8]))
        fixture.connect(peripheral)
        fixture.answer(.write([1], 0x0015), Result<Void, BackendError>.success(()))
        #expect(fixture.takeTold().isEmpty)
        #expect(measurement.value == nil)
    }

    @Test("Services that changed are removed from the list and reported; others stay")
    func changedServicesAreRemovedAndReportedAndOthersStay() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let (service, measurement, _) = fixture.discover(peripheral)
        peripheral.discoverServices([CBUUID(string: "180F")])
        fixture.answer(
            .discoverServices(["180F"]),
            .success([DiscoveredService(uuid: "180F", isPrimary: true, handle: 0x0020, endHandle: 0x002F)])
        )
        _ = fixture.takeTold()
        fixture.deliver(.servicesChanged(peripheral.identifier, HandleRange(start: 0x001A, end: 0x001F)))
        #expect(fixture.takeTold() == ["modified 1"])
        #expect(fixture.recorder.invalidated.first === service)
        #expect(peripheral.services?.map(\.uuid.uuidString) == ["180F"])
        peripheral.readValue(for: measurement)
        _ = fixture.backend.takeCalls()
        #expect(fixture.takeTold().isEmpty)
    }

    @Test("A discovery that ends after a change of its service is an error, and leaves nothing for the new database")
    func discoveryThatEndsAfterAChangeLeavesNothing() throws {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let (service, measurement, _) = fixture.discover(peripheral)
        peripheral.discoverCharacteristics(nil, for: service)
        peripheral.discoverIncludedServices(nil, for: service)
        peripheral.discoverDescriptors(for: measurement)
        peripheral.setNotifyValue(true, for: measurement)
        fixture.deliver(.servicesChanged(peripheral.identifier, CentralFixture.range))
        _ = fixture.takeTold()
        fixture.answer(.discoverCharacteristics(CentralFixture.range), .success([CentralFixture.measurement]))
        let included = IncludedService(uuid: "180F", declarationHandle: 0x0011, handle: 0x0040, endHandle: 0x004F)
        fixture.answer(.discoverIncludedServices(CentralFixture.range), .success([included]))
        fixture.answer(
            .discoverDescriptors(HandleRange(start: 0x0013, end: 0x0013)),
            .success([DiscoveredDescriptor(uuid: "2902", handle: 0x0013)])
        )
        fixture.answer(.configure(.notification, 0x0012), Result<Void, BackendError>.success(()))
        #expect(fixture.takeTold() == ["characteristics", "included", "descriptors", "notifying false"])
        #expect(
            fixture.recorder.errors.map { ($0 as? CBError)?.code }
                == [.invalidHandle, .invalidHandle, .invalidHandle, .invalidHandle]
        )
        peripheral.discoverServices(nil)
        fixture.answer(.discoverServices(nil), .success([CentralFixture.service]))
        let later = try #require(peripheral.services?.first)
        #expect(later !== service)
        peripheral.discoverCharacteristics(nil, for: later)
        let changed = DiscoveredCharacteristic(
            uuid: "2A37",
            handle: 0x0011,
            valueHandle: 0x0012,
            endHandle: 0x0012,
            properties: [.read]
        )
        fixture.answer(.discoverCharacteristics(CentralFixture.range), .success([changed]))
        let characteristic = try #require(later.characteristics?.first)
        #expect(characteristic !== measurement && characteristic.service === later)
        #expect(characteristic.properties == .read)
    }

    @Test("A changed name is reported once")
    func changedNameIsReportedOnce() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        #expect(peripheral.name == "Polar")
        fixture.deliver(.nameChanged(peripheral.identifier, "Polar"))
        fixture.deliver(.nameChanged(peripheral.identifier, "H10"))
        #expect(fixture.takeTold() == ["name H10"])
    }

    @Test("Parents are not retained by their children")
    func parentsAreNotRetainedByTheirChildren() {
        let service = CBMutableService(type: CBUUID(string: "180D"), primary: true)
        var characteristic: CBMutableCharacteristic?
        do {
            let parent = CBMutableService(type: CBUUID(string: "180F"), primary: false)
            let child = CBMutableCharacteristic(
                type: CBUUID(string: "2A19"),
                properties: .read,
                value: nil,
                permissions: .readable
            )
            parent.characteristics = [child]
            #expect(child.service === parent)
            characteristic = child
        }
        #expect(characteristic?.service == nil)
        #expect(service.peripheral == nil)
    }
}
