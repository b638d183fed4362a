import BLE

/// The simulated devices of the demo, each on a controller of its own.
struct DemoDevices: Sendable {
    static let thermometerAddress: DeviceAddress = "C0:DE:00:00:00:01"
    static let broadcasterAddress: DeviceAddress = "C0:DE:00:00:00:02"
    static let lampAddress: DeviceAddress = "C0:DE:00:00:00:03"

    private let adapters: [Adapter]
    private let work: Task<Void, Never>

    /// Starts the devices.
    ///
    /// - Parameter air: the virtual adapter whose air the devices share.
    static func start(on air: AdapterSpecification) async throws -> DemoDevices {
        let thermometer = try await DemoThermometer(adapter: open(air, "Demo Thermometer", thermometerAddress))
        let broadcaster = try await DemoBroadcaster(adapter: open(air, "Demo Hygrometer", broadcasterAddress))
        let lamp = try await DemoLamp(adapter: open(air, "Demo Lamp", lampAddress))
        // Each runs until its adapter is closed or the task is cancelled.
        let work = Task {
            await withDiscardingTaskGroup { group in
                group.addTask { try? await thermometer.run() }
                group.addTask { try? await broadcaster.run() }
                group.addTask { try? await lamp.run() }
            }
        }
        return DemoDevices(adapters: [thermometer.adapter, broadcaster.adapter, lamp.adapter], work: work)
    }

    /// Stops the devices.
    func stop() async {
        work.cancel()
        for adapter in adapters { await adapter.close() }
        await work.value
    }

    private static func open(
        _ air: AdapterSpecification,
        _ name: String,
        _ address: DeviceAddress
    ) async throws -> Adapter {
        var configuration = Adapter.Configuration()
        configuration.deviceName = name
        configuration.identityAddress = address
        configuration.stateLocation = .nowhere
        return try await Adapter.open(air, configuration: configuration)
    }
}

/// A value that rises and falls between two bounds, one step at a time.
struct SimulatedReading: Sendable {
    private(set) var value: Int
    private let bounds: ClosedRange<Int>
    private var step: Int

    init(bounds: ClosedRange<Int>, step: Int) {
        value = (bounds.lowerBound + bounds.upperBound) / 2
        self.bounds = bounds
        self.step = step
    }

    /// Takes the next step and returns the value.
    mutating func next() -> Int {
        if !bounds.contains(value + step) { step = -step }
        value += step
        return value
    }
}

extension Int {
    /// The two low bytes, the least significant one first.
    var littleEndian16: [UInt8] { [UInt8(truncatingIfNeeded: self), UInt8(truncatingIfNeeded: self >> 8)] }
}
