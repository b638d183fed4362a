import BLEATT
import BluetoothTypes
import Foundation
import Testing

@testable import BLEGATT
@testable import CoreBluetooth

@Suite("Services that change while the app uses them")
struct ChangedServicesTests {
    private let fixture = CentralFixture()
    private let peripheral: CBPeripheral
    private let measurement: CBCharacteristic
    private let location: CBCharacteristic

    init() {
        peripheral = fixture.connectedPeripheral()
        let discovered = fixture.discover(peripheral)
        measurement = discovered.measurement
        location = discovered.location
    }

    private func change(number: UInt64 = 1) {
        fixture.deliver(.servicesChanged(peripheral.identifier, CentralFixture.range, number: number))
    }

    /// The errors that the delegate has received, as codes.
    private var codes: [CBError.Code?] { fixture.recorder.errors.map { ($0 as? CBError)?.code } }

    @Test("Reads and writes that end after a change of their service are errors, and store nothing")
    func readsAndWritesAfterAChangeAreErrors() throws {
        let descriptor = try discoverDescriptor()
        peripheral.readValue(for: measurement)
        peripheral.writeValue(Data([1]), for: location, type: .withResponse)
        peripheral.readValue(for: descriptor)
        peripheral.writeValue(Data([2]), for: descriptor)
        change()
        _ = fixture.takeTold()
        fixture.answer(.read(0x0012), .success([7] as [UInt8]))
        fixture.answer(.write([1], 0x0015), Result<Void, BackendError>.success(()))
        fixture.answer(.read(0x0013), .success([8] as [UInt8]))
        fixture.answer(.write([2], 0x0013), Result<Void, BackendError>.success(()))
        #expect(fixture.takeTold() == ["value nil", "written", "descriptor nil", "descriptor written"])
        #expect(codes == [.invalidHandle, .invalidHandle, .invalidHandle, .invalidHandle])
        #expect(measurement.value == nil && descriptor.value == nil)
    }

    @Test("A service replaces the former one with its handles, also if only some types are discovered")
    func serviceReplacesTheFormerOneWithItsHandles() throws {
        let former = try #require(peripheral.services?.first)
        let descriptor = try discoverDescriptor()
        peripheral.discoverServices([CBUUID(string: "180F")])
        fixture.answer(
            .discoverServices(["180F"]),
            .success([DiscoveredService(uuid: "180F", isPrimary: true, handle: 0x0010, endHandle: 0x001F)])
        )
        #expect(peripheral.services?.map(\.uuid.uuidString) == ["180F"])
        _ = fixture.takeCalls()
        peripheral.discoverCharacteristics(nil, for: former)
        peripheral.readValue(for: measurement)
        peripheral.readValue(for: descriptor)
        peripheral.writeValue(Data([1]), for: location, type: .withResponse)
        #expect(fixture.takeCalls().isEmpty)
        _ = fixture.takeTold()
        fixture.deliver(.valueReceived(peripheral.identifier, 0x0012, [7]))
        #expect(fixture.takeTold().isEmpty && measurement.value == nil)
    }

    @Test("A service that is not found again is no longer valid, nor are its characteristics and descriptors")
    func serviceThatIsNotFoundAgainIsInvalid() throws {
        let former = try #require(peripheral.services?.first)
        let descriptor = try discoverDescriptor()
        peripheral.discoverServices(nil)
        fixture.answer(.discoverServices(nil), .success([] as [DiscoveredService]))
        #expect(peripheral.services?.isEmpty == true)
        _ = fixture.takeCalls()
        peripheral.discoverCharacteristics(nil, for: former)
        peripheral.readValue(for: measurement)
        peripheral.readValue(for: descriptor)
        #expect(fixture.takeCalls().isEmpty)
    }

    @Test("The descriptors of a characteristic that was replaced are no longer valid")
    func descriptorsOfAReplacedCharacteristicAreInvalid() throws {
        let service = try #require(peripheral.services?.first)
        let descriptor = try discoverDescriptor()
        let body = DiscoveredCharacteristic(
            uuid: "2A39",
            handle: 0x0011,
            valueHandle: 0x0012,
            endHandle: 0x0013,
            properties: .read
        )
        peripheral.discoverCharacteristics([CBUUID(string: "2A39")], for: service)
        fixture.answer(.discoverCharacteristics(CentralFixture.range), .success([body, CentralFixture.location]))
        #expect(service.characteristics?.map(\.uuid.uuidString) == ["2A38", "2A39"])
        _ = fixture.takeCalls()
        peripheral.readValue(for: descriptor)
        #expect(fixture.takeCalls().isEmpty)
        peripheral.readValue(for: location)
        #expect(fixture.takeCalls() == [.read(0x0015)])
    }

    /// Discovers the descriptor of the measurement.
    private func discoverDescriptor() throws -> CBDescriptor {
        peripheral.discoverDescriptors(for: measurement)
        fixture.answer(
            .discoverDescriptors(HandleRange(start: 0x0013, end: 0x0013)),
            .success([DiscoveredDescriptor(uuid: "2901", handle: 0x0013)])
        )
        return try #require(measurement.descriptors?.first)
    }

    @Test("A characteristic or included service replaces the former one with its handles")
    func attributeReplacesTheFormerOneWithItsHandles() throws {
        let service = try #require(peripheral.services?.first)
        peripheral.discoverCharacteristics([CBUUID(string: "2A39")], for: service)
        let point = DiscoveredCharacteristic(
            uuid: "2A39",
            handle: 0x0014,
            valueHandle: 0x0015,
            endHandle: 0x0015,
            properties: .write
        )
        fixture.answer(.discoverCharacteristics(CentralFixture.range), .success([CentralFixture.measurement, point]))
        #expect(service.characteristics?.map(\.uuid.uuidString) == ["2A37", "2A39"])
        for uuid in ["180F", "1810"] as [BluetoothUUID] {
            peripheral.discoverIncludedServices([CBUUID(uuid)], for: service)
            let included = IncludedService(uuid: uuid, declarationHandle: 0x0011, handle: 0x0040, endHandle: 0x004F)
            fixture.answer(.discoverIncludedServices(CentralFixture.range), .success([included]))
            #expect(service.includedServices?.map(\.uuid) == [CBUUID(uuid)])
        }
    }

    @Test("A command has the number of the last change that was handled before it")
    func commandsHaveTheNumberOfTheLastChange() {
        peripheral.readValue(for: measurement)
        #expect(fixture.backend.changeOfLastCommand == 0)
        change(number: 7)
        peripheral.readRSSI()
        #expect(fixture.backend.changeOfLastCommand == 7)
    }

    @Test("An awaited read or write that ends after a change of its service throws")
    func awaitedCallsThrowAfterAChange() async {
        let (peripheral, measurement, location) = (peripheral, measurement, location)
        let read = Task { try await peripheral.linux.read(measurement) }
        await changeAndAnswer(.read(0x0012), [7] as [UInt8])
        let data = await read.result
        let readError = #expect(throws: CBError.self) { _ = try data.get() }
        #expect(readError?.code == .invalidHandle && measurement.value == nil)
        let present = fixture.discover(peripheral).location
        #expect(present !== location)
        let write = Task { try await peripheral.linux.write(Data([1]), to: present) }
        await changeAndAnswer(.write([1], 0x0015), ())
        let written = await write.result
        let writeError = #expect(throws: CBError.self) { try written.get() }
        #expect(writeError?.code == .invalidHandle)
    }

    /// Waits for a call to the host, changes the services, and answers the call.
    private func changeAndAnswer<Value>(_ call: ScriptedCentralBackend.Call, _ answer: Value) async {
        while !fixture.backend.takeCalls().contains(call) { await Task.yield() }
        change()
        fixture.answer(call, Result<Value, BackendError>.success(answer))
    }
}
