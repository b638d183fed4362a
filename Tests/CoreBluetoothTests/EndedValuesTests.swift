import BLE
import BLEATT
import BLEGATT
import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Values that are awaited when their source ends")
struct EndedValuesTests {
    private let fixture = CentralFixture()
    private let peripheral: CBPeripheral
    private let measurement: CBCharacteristic

    init() {
        peripheral = fixture.connectedPeripheral()
        measurement = fixture.discover(peripheral).measurement
    }

    /// The values of a sequence that should have ended: a value that is sent now is not among them.
    private func all(of values: Events<CBCharacteristicValue>) async -> [[UInt8]] {
        peripheral.broadcastOfValues().send(CBCharacteristicValue(characteristic: measurement, value: Data([99])))
        peripheral.broadcastOfValues().finish()
        var all: [[UInt8]] = []
        for await value in values { all.append([UInt8](value.value)) }
        return all
    }

    private func receive(_ value: UInt8) {
        fixture.deliver(.valueReceived(peripheral.identifier, 0x0012, [value]))
    }

    @Test(arguments: [false, true]) func endOfTheConnectionEndsAwaitedValues(isReconnecting: Bool) async {
        let values = peripheral.linux.values(of: measurement)
        receive(1)
        let end = Disconnection(error: .core(.connectionTimeout), isReconnecting: isReconnecting, time: 0)
        fixture.deliver(.disconnected(peripheral.connection, end))
        #expect(await all(of: values) == [[1]])
    }

    @Test(arguments: [CBManagerState.resetting, .poweredOff, .unsupported])
    func lossOfBluetoothEndsAwaitedValues(state: CBManagerState) async {
        let values = peripheral.linux.values(of: measurement)
        receive(1)
        fixture.deliver(.stateChanged(state))
        #expect(await all(of: values) == [[1]])
    }

    @Test func changeOfTheServiceEndsAwaitedValues() async {
        let values = peripheral.linux.values(of: measurement)
        fixture.deliver(.servicesChanged(peripheral.identifier, HandleRange(start: 0x0030, end: 0x003F)))
        receive(1)
        fixture.deliver(.servicesChanged(peripheral.identifier, CentralFixture.range))
        #expect(await all(of: values) == [[1]])
    }

    @Test func discoveryOfAnotherServiceInItsPlaceEndsAwaitedValues() async {
        let values = peripheral.linux.values(of: measurement)
        receive(1)
        peripheral.discoverServices(nil)
        let other = DiscoveredService(uuid: "180F", isPrimary: true, handle: 0x0010, endHandle: 0x001F)
        fixture.answer(.discoverServices(nil), .success([other]))
        #expect(await all(of: values) == [[1]])
    }

    @Test func valuesOfAnEarlierConnectionEndAtOnce() async {
        fixture.deliver(.disconnected(peripheral.connection, Disconnection(error: nil, time: 0)))
        fixture.connect(peripheral)
        _ = fixture.discover(peripheral)
        let values = peripheral.linux.values(of: measurement)
        receive(1)
        #expect(await all(of: values).isEmpty)
    }
}

@Suite("Cancelling tasks of awaited calls")
struct CancelledAwaitTests {
    private let fixture = CentralFixture()
    private let peripheral: CBPeripheral
    private let service: CBService
    private let measurement: CBCharacteristic
    private let location: CBCharacteristic

    init() {
        peripheral = fixture.connectedPeripheral()
        let discovered = fixture.discover(peripheral)
        service = discovered.service
        measurement = discovered.measurement
        location = discovered.location
    }

    /// Cancels a call that the host has not answered, then lets the host answer it.
    private func expectCancellable<Output: Sendable, Value>(
        _ call: ScriptedCentralBackend.Call,
        answer: Value,
        _ body: @escaping @Sendable () async throws -> Output
    ) async {
        let task = Task { try await body() }
        var calls: [ScriptedCentralBackend.Call] = []
        while calls.isEmpty {
            calls = fixture.backend.takeCalls()
            await Task.yield()
        }
        #expect(calls == [call])
        task.cancel()
        fixture.answer(call, Result<Value, BackendError>.success(answer))
        let result = await task.result
        #expect(throws: CancellationError.self) { _ = try result.get() }
    }

    @Test func readIsCancellable() async {
        let (peripheral, location) = (peripheral, location)
        await expectCancellable(.read(0x0015), answer: [7] as [UInt8]) { try await peripheral.linux.read(location) }
        // The host has performed the call nevertheless.
        #expect(location.value == Data([7]))
    }

    @Test func writeIsCancellable() async {
        let (peripheral, location) = (peripheral, location)
        await expectCancellable(.write([1], 0x0015), answer: ()) {
            try await peripheral.linux.write(Data([1]), to: location)
        }
    }

    @Test func subscribingIsCancellable() async {
        let (peripheral, measurement) = (peripheral, measurement)
        await expectCancellable(.configure(.notification, 0x0012), answer: ()) {
            try await peripheral.linux.setNotifying(true, for: measurement)
        }
        #expect(measurement.isNotifying)
    }

    @Test func discoveryIsCancellable() async {
        let (peripheral, service) = (peripheral, service)
        await expectCancellable(
            .discoverCharacteristics(CentralFixture.range),
            answer: [] as [DiscoveredCharacteristic]
        ) {
            try await peripheral.linux.discoverCharacteristics(for: service)
        }
        // The service is not found again.
        await expectCancellable(.discoverServices(nil), answer: [] as [DiscoveredService]) {
            try await peripheral.linux.discoverServices()
        }
    }

    @Test func changeOfPHYsIsCancellable() async {
        let peripheral = peripheral
        await expectCancellable(.setPHYs, answer: ()) {
            try await peripheral.linux.setPHYs(transmit: .le2M, receive: .le2M)
        }
    }

    @Test func callOfACancelledTaskAsksNothing() async {
        let (peripheral, location) = (peripheral, location)
        let hasEnded = Guarded(false)
        let task = Task {
            defer { hasEnded.withLock { $0 = true } }
            withUnsafeCurrentTask { $0?.cancel() }
            return try await peripheral.linux.read(location)
        }
        var calls: [ScriptedCentralBackend.Call] = []
        while calls.isEmpty, !hasEnded.withLock({ $0 }) {
            calls = fixture.backend.takeCalls()
            await Task.yield()
        }
        #expect((calls + fixture.takeCalls()).isEmpty)
        if !calls.isEmpty { fixture.answer(calls[0], Result<[UInt8], BackendError>.success([7])) }
        let result = await task.result
        #expect(throws: CancellationError.self) { _ = try result.get() }
    }
}

@Suite("Awaited subscriptions")
struct AwaitedSubscriptionTests {
    private let fixture = CentralFixture()
    private let peripheral: CBPeripheral
    private let measurement: CBCharacteristic

    init() {
        peripheral = fixture.connectedPeripheral()
        measurement = fixture.discover(peripheral).measurement
    }

    @Test("A characteristic that the peripheral removes before its answer is an error", arguments: [true, false])
    func removedCharacteristicDoesNotNotify(isRemoved: Bool) async throws {
        let (peripheral, measurement) = (peripheral, measurement)
        let task = Task { try await peripheral.linux.setNotifying(true, for: measurement) }
        var calls: [ScriptedCentralBackend.Call] = []
        while calls.isEmpty {
            calls = fixture.backend.takeCalls()
            await Task.yield()
        }
        if isRemoved { fixture.deliver(.servicesChanged(peripheral.identifier, CentralFixture.range)) }
        fixture.answer(.configure(.notification, 0x0012), Result<Void, BackendError>.success(()))
        if isRemoved {
            let error = await #expect(throws: CBError.self) { try await task.value }
            #expect(error?.code == .invalidHandle)
        } else {
            try await task.value
        }
        #expect(measurement.isNotifying == !isRemoved)
    }
}
