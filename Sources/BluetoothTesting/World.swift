import BLE
import BLEHCITransport
import BLEVirtualController
import BluetoothHost
import BluetoothTypes
import Synchronization

/// A radio world in one process and one thread: devices with controllers and hosts, the air between them, and simulated
/// time that jumps from one event to the next.
///
/// ```swift
/// let world = World(seed: 1)
/// try world.run {
///     let lamp = try await world.peripheral("lamp", services: [
///         ScriptedService("FFE0", [ScriptedCharacteristic("FFE1", properties: [.read, .write], value: [0])])
///     ])
///     let phone = try await world.device("phone").openAdapter()
///     let peer = try await phone.central.connect(to: lamp.address)
///     …
/// }
/// ```
///
/// The same seed and the same calls produce the same packets at the same times, in each run. For this, all participants
/// run in the thread that calls ``run(limit:_:)``: the body, its child tasks, and the hosts. A task that is not a child
/// of the body, created with `Task { … }`, would run elsewhere: give it ``taskExecutor``.
public final class World: Sendable {
    /// The seed of all random decisions.
    public let seed: UInt64
    /// Whether each device keeps a capture of its HCI packets; see ``Device/capture``.
    public let recordsCaptures: Bool
    /// The devices in the order of their creation.
    public var devices: [Device] { state.devices }

    package let loop: SimulatedEventLoop
    package var air: Air { state.air }
    let pendingSleeps: PendingSleeps
    var peripherals: [ScriptedPeripheral] { state.peripherals }
    private let start: Instant
    private let confined: LoopConfined<State>
    private var state: State { confined.value }

    private final class State {
        let air: Air
        var random: SeededGenerator
        var alarm: (any Alarm)?
        var alarmDue: Instant?
        var devices: [Device] = []
        var peripherals: [ScriptedPeripheral] = []
        var pairConditions: [(one: Device, other: Device, conditions: RadioConditions)] = []

        init(seed: UInt64, start: Instant) {
            random = SeededGenerator(seed: seed)
            air = Air(now: start, seed: random.next())
        }
    }

    /// - Parameters:
    ///   - seed: the seed of all random decisions.
    ///   - recordsCaptures: whether each device keeps a capture of its HCI packets.
    public convenience init(seed: UInt64 = 0, recordsCaptures: Bool = false) {
        self.init(seed: seed, recordsCaptures: recordsCaptures, turnLimit: SimulatedEventLoop.defaultTurnLimit)
    }

    /// - Parameter turnLimit: maximum number of turns of the loop at one instant.
    package init(seed: UInt64 = 0, recordsCaptures: Bool = false, turnLimit: Int) {
        loop = SimulatedEventLoop(turnLimit: turnLimit)
        self.seed = seed
        self.recordsCaptures = recordsCaptures
        start = loop.now
        pendingSleeps = PendingSleeps(loop: loop)
        confined = LoopConfined(State(seed: seed, start: start), to: loop)
    }

    // MARK: Time

    /// The age of the world, in its own time.
    public var elapsed: Duration { loop.now - start }

    /// The world's time, for code that takes a clock.
    public var clock: WorldClock { WorldClock(world: self) }

    /// The executor for tasks in the world: `Task(executorPreference: world.taskExecutor) { … }`.
    public var taskExecutor: any TaskExecutor { loop.taskExecutor }

    /// Waits in the world's time.
    ///
    /// - Throws: `CancellationError` if the task is cancelled or the world is closed.
    public func sleep(for duration: Duration, file: StaticString = #fileID, line: Int = #line) async throws {
        try await sleep(until: clock.now.advanced(by: duration), caller: "the sleep at \(file):\(line)")
    }

    func sleep(until deadline: WorldClock.Instant, caller: String) async throws {
        try await pendingSleeps.sleep(until: start + deadline.sinceStart, caller: caller)
    }

    /// Advances the time between two runs, with all work that becomes due. Work that repeats without time passing stops
    /// it early, as it ends ``run(limit:_:)``; ``elapsed`` then shows how much time has passed.
    public func advance(by duration: Duration) {
        loop.run(for: duration)
    }

    /// The time for the timestamps of captures: the world begins with the year 2020.
    var microsecondsSince1970: Int64 {
        1_577_836_800_000_000 + elapsed.wholeNanoseconds / 1000
    }

    func instant(_ instant: Instant) -> Duration { instant - start }

    // MARK: Devices

    /// Adds a device with a controller to the world.
    ///
    /// - Parameters:
    ///   - name: the device's name in captures and errors.
    ///   - position: the initial position, in meters.
    ///   - configure: changes the configuration of the controller.
    public func device(
        _ name: String,
        at position: Position = .origin,
        configure: (inout ControllerConfiguration) -> Void = { _ in }
    ) -> Device {
        var configuration = ControllerConfiguration(
            address: DeviceAddress(0x5357_0000_0001 + UInt64(devices.count), isRandom: false),
            position: position
        )
        configure(&configuration)
        let device = Device(
            name: name,
            world: self,
            configuration: configuration,
            random: state.random.split(),
            isRecorded: recordsCaptures
        )
        state.devices.append(device)
        return device
    }

    /// Adds a scripted device to the world, publishes its services and starts advertising.
    ///
    /// - Parameters:
    ///   - name: the advertised name.
    ///   - position: the initial position, in meters.
    ///   - services: the services of the device; their UUIDs are advertised as far as they fit.
    ///   - interval: the advertising interval.
    ///   - configure: changes the configuration of the device's controller.
    public func peripheral(
        _ name: String,
        at position: Position = .origin,
        services: [ScriptedService],
        advertisingInterval interval: Duration = .milliseconds(100),
        configure: (inout ControllerConfiguration) -> Void = { _ in }
    ) async throws(BLEError) -> ScriptedPeripheral {
        let peripheral = try await ScriptedPeripheral(
            device: device(name, at: position, configure: configure),
            world: self,
            services: services,
            interval: interval
        )
        state.peripherals.append(peripheral)
        return peripheral
    }

    /// Creates a generator of random numbers for a part of a test. The seed determines it.
    public func makeGenerator() -> SeededGenerator {
        state.random.split()
    }

    // MARK: The air

    /// The quality of the radio link between any two devices.
    public var conditions: RadioConditions {
        get { air.conditions }
        set { changeAir { air.conditions = newValue } }
    }

    /// Sets the quality of the radio link between two devices; nil for the world's ``conditions``.
    public func setConditions(_ conditions: RadioConditions?, between one: Device, and other: Device) {
        state.pairConditions.removeAll {
            ($0.one === one && $0.other === other) || ($0.one === other && $0.other === one)
        }
        if let conditions { state.pairConditions.append((one, other, conditions)) }
        guard let first = one.controller, let second = other.controller else { return }
        changeAir { air.setConditions(conditions, between: first, and: second) }
    }

    /// Applies the conditions of pairs to a device with a new controller, which the air does not know yet.
    func applyConditions(to device: Device) {
        for pair in state.pairConditions where pair.one === device || pair.other === device {
            if let first = pair.one.controller, let second = pair.other.controller {
                air.setConditions(pair.conditions, between: first, and: second)
            }
        }
    }

    /// Advances the air to the loop's time.
    func catchUp() {
        air.advance(to: loop.now)
    }

    /// Executes the work that is due on the air, and sets the alarm for the next work.
    func runAir() {
        catchUp()
        let due = air.nextDue
        let state = state
        guard due != state.alarmDue else { return }
        state.alarmDue = due
        let alarm =
            state.alarm
            ?? loop.makeAlarm { [weak self] in
                self?.state.alarmDue = nil
                self?.runAir()
            }
        state.alarm = alarm
        alarm.set(due)
    }

    /// Performs a change from outside at the present time, and schedules the air, because work may be due at once.
    func changeAir(_ change: () -> Void) {
        air.moveTime(to: loop.now)
        change()
        loop.execute { [weak self] in self?.runAir() }
    }
}

/// The kind of controller of a device.
public typealias ControllerConfiguration = VirtualController.Configuration
