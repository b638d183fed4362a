import CoreBluetooth
import Testing

@testable import BLEExamples

@Suite("PracticalPeripheral")
struct PracticalPeripheralTests {
    private let start = Date(timeIntervalSinceReferenceDate: 0)

    private func proximity(_ readings: [(seconds: Double, rssi: Int)]) -> Proximity {
        var proximity = Proximity()
        for reading in readings {
            proximity.add(rssi: reading.rssi, at: start.addingTimeInterval(reading.seconds))
        }
        return proximity
    }

    @Test(
        "Later signals have more weight in the mean, and unknown strengths have none",
        arguments: [
            ([], 0, nil),
            ([(0, -60)], 0, -60),
            ([(0, -60)], 100, -60),
            ([(0, -60), (0, -40)], 0, -50),
            // After one half-life the first signal weighs half as much as the second.
            ([(0, -90), (2, -60)], 2, -70),
            ([(0, -90), (2, -60)], 8, -70),
            ([(0, 127)], 0, nil),
            ([(0, -60), (1, 127)], 1, -60),
        ] as [([(Double, Int)], Double, Double?)]
    )
    func laterSignalsHaveMoreWeightInTheMean(readings: [(Double, Int)], seconds: Double, mean: Double?) throws {
        let found = proximity(readings.map { ($0.0, $0.1) }).weightedMean(at: start.addingTimeInterval(seconds))
        #expect((found == nil) == (mean == nil))
        if let found, let mean { #expect(abs(found - mean) < 1e-9) }
    }

    @Test(
        "A device is in range while its signals are strong, and for a short time after",
        arguments: [
            ([], 0, false), ([(0, -60)], 0, true), ([(0, -60)], 9.9, true), ([(0, -60)], 10, false),
            ([(0, -90)], 0, false), ([(0, -60), (4, -95)], 4, true), ([(0, -60), (8, -95)], 8, false),
            ([(0, -60), (10, -95)], 10, false),
        ] as [([(Double, Int)], Double, Bool)]
    )
    func deviceIsInRangeForAShortTimeAfterStrongSignals(readings: [(Double, Int)], seconds: Double, isInRange: Bool) {
        let proximity = proximity(readings.map { ($0.0, $0.1) })
        #expect(proximity.isInRange(at: start.addingTimeInterval(seconds)) == isInRange)
    }

    @Test("A device that is received for days needs no more memory than after a minute")
    func numberOfKeptSignalsIsBounded() {
        let proximity = proximity((0..<1000).map { (Double($0), -50) })
        #expect(proximity.readings.count == Proximity.capacity)
        #expect(proximity.readings.last?.date == start.addingTimeInterval(999))
    }

    @Test("A connection passes through all states, once to its end and once to the app's own timeout")
    func connectionPassesThroughAllStates() async throws {
        let (_, lines) = try await Stage(.practicalPeripheral).perform()
        let states = lines.filter { $0.hasPrefix("Состояние") || $0 == "Время вышло" }
        #expect(
            states == [
                "Состояние: connecting", "Состояние: connected", "Состояние: disconnecting",
                "Состояние: disconnected", "Состояние: connecting", "Состояние: disconnecting", "Время вышло",
                "Состояние: disconnected",
            ]
        )
    }

    @Test("All callbacks of a manager arrive on the queue that it was given", .timeLimit(.minutes(10)))
    func callbacksArriveOnTheQueueOfTheManager() async throws {
        let stage = Stage(
            peripheral: Example.practicalPeripheral.peripheral,
            central: Part(expected: ["Пульс 61"]) { Follower(isForgetful: false, terminal: $0, options: $1) }
        )
        await stage.peripheral.begin()
        await stage.central.begin()
        _ = await stage.central.allLines
        #expect(stage.central.missing == [])
        await stage.central.end()
        await stage.peripheral.end()
    }

    @Test("A peripheral that nobody retains is released", .timeLimit(.minutes(10)))
    func unretainedPeripheralIsReleased() async throws {
        let stage = Stage(
            peripheral: Part(expected: ["Подписка", "Датчик свободен"]) { HeartRateSensor(terminal: $0, options: $1) },
            central: Part(expected: ["never"]) { Follower(isForgetful: true, terminal: $0, options: $1) }
        )
        await stage.peripheral.begin()
        await stage.central.begin()
        _ = await stage.peripheral.allLines
        #expect(stage.peripheral.missing == [])
        await stage.central.end()
        await stage.peripheral.end()
    }

    /// Connects to the first device that is found, and retains it unless it is forgetful; on a separate queue.
    private final class Follower: Screen, DeviceCentralObserver, TerminalApp {
        let isForgetful: Bool
        let terminal: any Terminal
        let queue = DispatchQueue(label: "bluetooth")
        let central: DeviceCentral
        private var isConnecting = false

        init(isForgetful: Bool, terminal: any Terminal, options: [String: Any]) {
            self.isForgetful = isForgetful
            self.terminal = terminal
            let queue = queue
            // The first callback can arrive before this returns: it waits in the queue.
            central = queue.sync { DeviceCentral(queue: queue, options: options) }
            queue.sync { central.observer = self }
        }

        func userReads(_ line: String) {}
        func viewWillDisappear() { queue.sync { central.stopScan() } }

        func centralIsReady(_ central: DeviceCentral) {
            dispatchPrecondition(condition: .onQueue(queue))
            central.scan()
        }

        func central(_ central: DeviceCentral, didSee device: DeviceController) {
            dispatchPrecondition(condition: .onQueue(queue))
            guard !isConnecting else { return }
            isConnecting = true
            central.stopScan()
            central.connect(device, timeout: 10)
        }

        func device(_ device: DeviceController, didReceiveHeartRate rate: Int) {
            dispatchPrecondition(condition: .onQueue(queue))
            print("Пульс \(rate)")
            if isForgetful { central.forget(device) }
        }

        func device(_ device: DeviceController, didChangeTo state: CBPeripheralState) {
            dispatchPrecondition(condition: .onQueue(queue))
        }

        func device(_ device: DeviceController, didReadLocation location: Int) {}
        func device(_ device: DeviceController, didReset error: Error?) {}
        func device(_ device: DeviceController, didMeasure proximity: Proximity) {}
        func central(_ central: DeviceCentral, didTimeOutConnectingTo device: DeviceController) {}
        func central(_ central: DeviceCentral, didFailWith error: Error?) {}
    }
}
