import BLE
import BLECapture
import BluetoothHost
import BluetoothTypes
import Foundation
import Synchronization
import Testing

@testable import CoreBluetooth

/// The order of the calls of apps that are written as for a phone, with real queues and threads.
@Suite("Call order on threads", .serialized)
struct CallOrderOnThreadsTests {
    private static let service = CBUUID(string: "FFC0")
    private static let notified = CBUUID(string: "FFC9")
    private static let callerCount = 4
    private static let callCount = 60

    /// A value that one caller writes and reads.
    private static func value(_ caller: Int) -> CBUUID { CBUUID(string: "FFD\(caller)") }

    /// Answers each write, and sends one notification before and one after the answer.
    private final class Board: NSObject, CBPeripheralManagerDelegate, Sendable {
        let told = Mailroom<String>()
        let calls = Mutex<[[UInt8]]>([])
        /// The number of writes that have been handled.
        let writes = Mutex(0)
        private let count = Mutex(0)
        let notified = CBMutableCharacteristic(
            type: CallOrderOnThreadsTests.notified,
            properties: [.notify],
            value: nil,
            permissions: []
        )

        func peripheralManagerDidUpdateState(_ manager: CBPeripheralManager) {
            guard manager.state == .poweredOn else { return }
            let service = CBMutableService(type: CallOrderOnThreadsTests.service, primary: true)
            service.characteristics =
                (0..<CallOrderOnThreadsTests.callerCount).map { caller in
                    CBMutableCharacteristic(
                        type: CallOrderOnThreadsTests.value(caller),
                        properties: [.read, .write, .writeWithoutResponse],
                        value: nil,
                        permissions: [.readable, .writeable]
                    )
                } + [notified]
            manager.add(service)
        }

        func peripheralManager(_ manager: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
            manager.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [service.uuid]])
        }

        func peripheralManagerDidStartAdvertising(_ manager: CBPeripheralManager, error: (any Error)?) {
            told.post("advertising")
        }

        func peripheralManager(_ manager: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
            request.value = Data([7])
            calls.withLock { $0.append([0x0B]) }
            manager.respond(to: request, withResult: .success)
        }

        func peripheralManager(_ manager: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
            notify(manager)
            defer { writes.withLock { $0 += requests.count } }
            guard requests[0].access.kind == .write else { return }
            calls.withLock { $0.append([0x13]) }
            manager.respond(to: requests[0], withResult: .success)
            notify(manager)
        }

        private func notify(_ manager: CBPeripheralManager) {
            let number = count.withLock { count in
                count += 1
                return [UInt8](number: count)
            }
            if manager.updateValue(Data(number), for: notified, onSubscribedCentrals: nil) {
                calls.withLock { $0.append([0x1B] + number) }
            }
        }
    }

    /// Finds the board, subscribes, and records the callbacks.
    private final class Phone: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate, Sendable {
        struct State {
            var peripheral: CBPeripheral?
            var callbacks: [String] = []
            var answers = 0
            var notifications = 0
        }

        let told = Mailroom<String>()
        let state = Mutex(State())
        /// Limits the number of outstanding requests of each caller.
        let permits = (0..<CallOrderOnThreadsTests.callerCount).map { _ in DispatchSemaphore(value: 8) }

        func centralManagerDidUpdateState(_ central: CBCentralManager) {
            guard central.state == .poweredOn else { return }
            central.scanForPeripherals(withServices: [CallOrderOnThreadsTests.service])
        }

        func centralManager(
            _ central: CBCentralManager,
            didDiscover peripheral: CBPeripheral,
            advertisementData: [String: Any],
            rssi: NSNumber
        ) {
            guard state.withLock({ $0.peripheral == nil }) else { return }
            state.withLock { $0.peripheral = peripheral }
            central.stopScan()
            peripheral.delegate = self
            central.connect(peripheral)
        }

        func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
            peripheral.discoverServices([CallOrderOnThreadsTests.service])
        }

        func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
            for service in peripheral.services ?? [] { peripheral.discoverCharacteristics(nil, for: service) }
        }

        func peripheral(
            _ peripheral: CBPeripheral,
            didDiscoverCharacteristicsFor service: CBService,
            error: (any Error)?
        ) {
            for characteristic in service.characteristics ?? [] where characteristic.properties.contains(.notify) {
                peripheral.setNotifyValue(true, for: characteristic)
            }
        }

        func peripheral(
            _ peripheral: CBPeripheral,
            didUpdateNotificationStateFor characteristic: CBCharacteristic,
            error: (any Error)?
        ) {
            told.post("subscribed")
        }

        func peripheral(
            _ peripheral: CBPeripheral,
            didUpdateValueFor characteristic: CBCharacteristic,
            error: (any Error)?
        ) {
            answered("value", characteristic)
        }

        func peripheral(
            _ peripheral: CBPeripheral,
            didWriteValueFor characteristic: CBCharacteristic,
            error: (any Error)?
        ) {
            answered("written", characteristic)
        }

        private func answered(_ text: String, _ characteristic: CBCharacteristic) {
            let caller = (0..<permits.count).first { CallOrderOnThreadsTests.value($0) == characteristic.uuid }
            state.withLock { state in
                state.callbacks.append("\(text) \(characteristic.discovered!.valueHandle)")
                if caller != nil { state.answers += 1 } else { state.notifications += 1 }
            }
            if let caller { permits[caller].signal() }
        }
    }

    /// The packets expected for the calls: of all callers together, and of each caller.
    private struct Calls {
        var all: [[UInt8]] = []
        var byCaller = [[[UInt8]]](repeating: [], count: CallOrderOnThreadsTests.callerCount)
        var requests = 0
        var writes = 0
    }

    /// - Parameter isSerial: whether the callers take turns, so that the order of all calls is known, and not only that
    ///   of each caller.
    @Test(
        "Calls from four queues leave in their order, and callbacks follow the order of the packets",
        .timeLimit(.minutes(10)),
        arguments: [true, false],
        [true, false]
    )
    func callsFromFourQueuesLeaveInTheirOrder(isSerial: Bool, isPaced: Bool) async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("call-order-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let captures = ["board", "phone"].map { directory.appendingPathComponent("\($0).btsnoop").path }
        let air = AdaptersOnAir("call order", seed: 5)
        let conditions = LinkConditions(isPaced: isPaced, bufferCount: 2, bufferLength: 251)
        let boardAdapter = try await air.open(
            "board",
            controller: { conditions.apply(to: &$0) },
            configure: { $0.capturePath = captures[0] }
        )
        let phoneAdapter = try await air.open(
            "phone",
            controller: { conditions.apply(to: &$0) },
            configure: { $0.capturePath = captures[1] }
        )
        let (board, phone) = (Board(), Phone())
        let managers = (
            CBPeripheralManager(
                delegate: board,
                queue: DispatchQueue(label: "board"),
                options: [CBPeripheralManagerOptionAdapterKey: boardAdapter]
            ),
            CBCentralManager(
                delegate: phone,
                queue: DispatchQueue(label: "phone"),
                options: [CBCentralManagerOptionAdapterKey: phoneAdapter]
            )
        )
        await phone.told.next { $0 == "subscribed" ? () : nil }
        let peripheral = try #require(phone.state.withLock { $0.peripheral })
        let all = try #require(peripheral.services?.first?.characteristics)

        let calls = Guarded(Calls())
        await withTaskGroup(of: Void.self) { group in
            for caller in 0..<Self.callerCount {
                let characteristic = all[caller]
                group.addTask {
                    await withCheckedContinuation { continuation in
                        DispatchQueue(label: "caller \(caller)").async {
                            for number in 0..<Self.callCount {
                                call(number, caller, peripheral, characteristic, phone, calls, isSerial: isSerial)
                            }
                            continuation.resume()
                        }
                    }
                }
            }
        }
        let (requests, writes) = calls.withLock { ($0.requests, $0.writes) }
        while phone.state.withLock({ $0.answers }) < requests { try await Task.sleep(for: .milliseconds(1)) }
        while board.writes.withLock({ $0 }) < writes { try await Task.sleep(for: .milliseconds(1)) }
        let notifications = board.calls.withLock { $0.count { $0[0] == 0x1B } }
        while phone.state.withLock({ $0.notifications }) < notifications { try await Task.sleep(for: .milliseconds(1)) }
        let callbacks = phone.state.withLock { $0.callbacks }
        await phoneAdapter.close()
        await boardAdapter.close()
        withExtendedLifetime(managers) {}

        let phoneTrace = try AttributeTrace([UInt8](Data(contentsOf: URL(fileURLWithPath: captures[1]))))
        let handles = all.prefix(Self.callerCount).map { $0.discovered!.valueHandle.bytes }
        let made = calls.withLock { $0 }
        for (caller, handle) in handles.enumerated() {
            #expect(firstPackets(in: phoneTrace, of: [handle]) == made.byCaller[caller])
        }
        if isSerial { #expect(firstPackets(in: phoneTrace, of: handles) == made.all) }
        expectCallbacks(callbacks, in: phoneTrace, of: handles)

        let boardTrace = try AttributeTrace([UInt8](Data(contentsOf: URL(fileURLWithPath: captures[0]))))
        let boardCalls = board.calls.withLock { $0 }
        // The phone also reads the device name and configures the board's characteristics. The stack answers these by
        // itself.
        var isAnsweredByStack = false
        let sent = boardTrace.entries.compactMap { entry -> [UInt8]? in
            let pdu = entry.pdu
            switch (entry.direction, pdu[0]) {
            case (.controllerToHost, 0x0A), (.controllerToHost, 0x12):
                isAnsweredByStack = !handles.contains(Array(pdu[1..<3]))
                return nil
            case (.hostToController, 0x0B), (.hostToController, 0x13): return isAnsweredByStack ? nil : [pdu[0]]
            case (.hostToController, 0x1B): return [0x1B] + pdu.dropFirst(3)
            default: return nil
            }
        }
        #expect(sent == boardCalls)
    }

    private func call(
        _ number: Int,
        _ caller: Int,
        _ peripheral: CBPeripheral,
        _ characteristic: CBCharacteristic,
        _ phone: Phone,
        _ calls: Guarded<Calls>,
        isSerial: Bool
    ) {
        let handle = characteristic.discovered!.valueHandle.bytes
        let value = [UInt8](number: number)
        let kind = (number &* 7 &+ caller &* 3) % 5
        let packet: [UInt8] =
            switch kind {
            case 0...2: [0x52] + handle + value
            case 3: [0x12] + handle + value
            default: [0x0A] + handle
            }
        let make = {
            switch kind {
            case 0...2: peripheral.writeValue(Data(value), for: characteristic, type: .withoutResponse)
            case 3: peripheral.writeValue(Data(value), for: characteristic, type: .withResponse)
            default: peripheral.readValue(for: characteristic)
            }
        }
        if kind > 2 { phone.permits[caller].wait() }
        calls.withLock { calls in
            calls.all.append(packet)
            calls.byCaller[caller].append(packet)
            if kind > 2 { calls.requests += 1 }
            if kind < 4 { calls.writes += 1 }
            if isSerial { make() }
        }
        if !isSerial { make() }
    }

    private func firstPackets(in trace: AttributeTrace, of handles: [[UInt8]]) -> [[UInt8]] {
        trace.sent.filter { [0x52, 0x12, 0x0A].contains($0[0]) && handles.contains(Array($0[1..<3])) }
    }

    /// Expects one callback for each response and notification, in the order of their arrival.
    private func expectCallbacks(_ callbacks: [String], in trace: AttributeTrace, of handles: [[UInt8]]) {
        var expected: [String] = []
        var open: String?
        for entry in trace.entries {
            let handle = entry.pdu.count < 3 ? [] : Array(entry.pdu[1..<3])
            let name = handle.count == 2 ? "\(AttributeHandle(UInt16(handle[0]) | UInt16(handle[1]) << 8))" : ""
            switch (entry.direction, entry.pdu[0]) {
            case (.hostToController, 0x0A): open = handles.contains(handle) ? "value \(name)" : nil
            case (.hostToController, 0x12): open = handles.contains(handle) ? "written \(name)" : nil
            case (.controllerToHost, 0x0B), (.controllerToHost, 0x13):
                if let open { expected.append(open) }
                open = nil
            case (.controllerToHost, 0x1B): expected.append("value \(name)")
            default: break
            }
        }
        #expect(callbacks == expected)
    }
}
