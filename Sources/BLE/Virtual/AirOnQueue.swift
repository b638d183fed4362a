import BLEHCITransport
import BLEVirtualController
import BluetoothTypes
import Dispatch

/// A virtual air with its own queue, in real time, and its controllers, each with one end of a transport to a host.
///
/// The time of the air does not advance while no action is due. So the air advances to the present before anything
/// outside changes it or a controller.
///
/// A controller has the address that was chosen for it, or else the lowest of this project's own that no other
/// controller on the air has.
package final class AirOnQueue: Sendable {
    /// The common part of the addresses of virtual controllers, before their number: locally administered (Vol 6, Part
    /// B, 1.3.1).
    private static let addressBase: UInt64 = 0x5642_4C45_0000

    /// The queue on which everything in the air runs. Attached transports must use it.
    package var queue: DispatchQueue { loop.queue }
    package let loop: LoopQueue

    private final class State {
        let air: Air
        /// Fires when the next action on the air is due. Nil only before the initializer ends.
        var alarm: LoopAlarm?
        /// The time that the alarm is set for.
        var armedFor: Instant?
        /// Seeds the generators of controllers, so that random events are the same each time.
        var seeds: SeededGenerator?
        var controllers: [Int: AttachedController] = [:]
        var reservedAddresses: Set<DeviceAddress> = []

        init(now: Instant, seed: UInt64?) {
            air = Air(now: now, seed: seed ?? UInt64.random(in: 0...UInt64.max))
            seeds = seed.map(SeededGenerator.init(seed:))
        }
    }

    private let clock: @Sendable () -> Instant
    private let confined: LoopConfined<State>
    private var state: State { confined.value }

    /// - Parameters:
    ///   - linger: how long the queue waits for the next packet of a transport before it sleeps; nil for transports
    ///     without descriptors.
    ///   - seed: makes random events the same each time; nil for the system's random numbers.
    ///   - clock: returns the present time; nil for the monotonic clock. The alarm for the next action always uses the
    ///     monotonic clock.
    package init(
        label: String,
        linger: Duration? = nil,
        seed: UInt64? = nil,
        clock: (@Sendable () -> Instant)? = nil
    ) {
        let clock = clock ?? { Instant(nanoseconds: DispatchTime.now().uptimeNanoseconds) }
        self.clock = clock
        loop = LoopQueue(DispatchQueue(label: "swift-ble.air.\(label)", qos: .userInitiated), linger: linger)
        let state = State(now: clock(), seed: seed)
        confined = LoopConfined(state, to: loop.queue)
        // A handler that has begun may run while the last reference is released on another thread.
        state.alarm = LoopAlarm(on: loop, leeway: .microseconds(100)) { [weak self] in
            guard let self else { return }
            self.state.armedFor = nil
            run(until: self.clock())
        }
    }

    /// The quality of radio reception. Used on the queue only.
    package var conditions: RadioConditions {
        get { state.air.conditions }
        set {
            let now = catchUp()
            state.air.conditions = newValue
            run(until: now)
        }
    }

    /// Makes a controller in this process and returns its host's end of HCI, on the host's queue.
    package func makeController(for hostQueue: DispatchQueue) -> any Transport {
        let (hostEnd, controllerEnd) = PipeTransport.makePair(hostQueue, queue)
        queue.async { [self] in attach(controllerEnd) }
        return hostEnd
    }

    /// Adds a controller that serves the host at the other end of a transport until the transport ends. Called on the
    /// queue.
    ///
    /// - Parameters:
    ///   - address: the controller's public address, which no other on the air has; nil for the lowest free one.
    ///   - configure: changes the controller's configuration; its argument is the controller's number.
    ///   - onEnd: is called once, with the reason for which the transport has ended.
    @discardableResult
    package func attach(
        _ transport: any Transport,
        address chosenAddress: DeviceAddress? = nil,
        configure: (_ number: Int, inout VirtualController.Configuration) -> Void = { _, _ in },
        onEnd: @escaping @Sendable (TransportError) -> Void = { _ in }
    ) -> AttachedController {
        var number = 1
        while state.controllers[number] != nil || chosenAddress == nil && isTaken(AirOnQueue.address(number)) {
            number += 1
        }
        let address = chosenAddress ?? AirOnQueue.address(number)
        var configuration = VirtualController.Configuration(address: address)
        configure(number, &configuration)
        let controller = VirtualController(
            configuration: configuration,
            air: state.air,
            random: nextGenerator(),
            emit: { packet in transport.send(packet) }
        )
        let attached = AttachedController(
            number: number,
            address: address,
            controller: LoopConfined(controller, to: queue),
            transport: transport
        )
        state.controllers[number] = attached
        transport.start(
            onPacket: { [weak self] packet in
                guard let self else { return }
                let now = catchUp()
                attached.controller.value.receive(packet)
                run(until: now)
            },
            onEnd: { [weak self] error in
                self?.remove(attached)
                onEnd(error)
            }
        )
        run(until: clock())
        return attached
    }

    private static func address(_ number: Int) -> DeviceAddress {
        DeviceAddress(addressBase + UInt64(number), isRandom: false)
    }

    /// Whether a controller on the air has the address, or one may be given it later. Called on the queue.
    private func isTaken(_ address: DeviceAddress) -> Bool {
        state.reservedAddresses.contains(address) || state.controllers.values.contains { $0.address == address }
    }

    /// Whether a controller on the air has the address. Called on the queue.
    package func hasController(_ address: DeviceAddress) -> Bool {
        state.controllers.values.contains { $0.address == address }
    }

    /// Reserves an address for controllers for which it is chosen. Called on the queue.
    package func reserve(_ address: DeviceAddress) {
        state.reservedAddresses.insert(address)
    }

    /// Removes a controller as if its power were cut: its peers' links time out, and its host loses the transport.
    /// Called on the queue.
    package func detach(_ attached: AttachedController) {
        attached.transport.close()
        remove(attached)
    }

    /// Performs an action on a controller that its host has not requested. Called on the queue.
    package func disturb(_ attached: AttachedController, _ action: (VirtualController) -> Void) {
        let now = catchUp()
        action(attached.controller.value)
        run(until: now)
    }

    private func remove(_ attached: AttachedController) {
        guard state.controllers[attached.number] === attached else { return }
        state.controllers[attached.number] = nil
        let now = catchUp()
        attached.controller.value.vanish()
        run(until: now)
    }

    private func nextGenerator() -> any RandomNumberGenerator {
        guard let seed = state.seeds?.next() else { return SystemRandomNumberGenerator() }
        return SeededGenerator(seed: seed)
    }

    /// Performs the actions that are due, so that a change happens at the present time. ``run(until:)`` follows it.
    ///
    /// - Returns: the present time.
    private func catchUp() -> Instant {
        let now = clock()
        state.air.advance(to: now)
        return now
    }

    /// Performs the actions that are due at an instant, and sets the alarm for the next one.
    private func run(until now: Instant) {
        let state = state
        state.air.advance(to: now)
        guard state.air.nextDue != state.armedFor else { return }
        state.armedFor = state.air.nextDue
        state.alarm?.set(state.armedFor?.nanoseconds)
    }
}

/// A controller on an ``AirOnQueue``, and its end of the transport to its host.
package final class AttachedController: Sendable {
    /// The number of the controller on its air, from 1; free again after the controller has ended.
    package let number: Int
    package let address: DeviceAddress
    fileprivate let controller: LoopConfined<VirtualController>
    fileprivate let transport: any Transport

    fileprivate init(
        number: Int,
        address: DeviceAddress,
        controller: LoopConfined<VirtualController>,
        transport: any Transport
    ) {
        self.number = number
        self.address = address
        self.controller = controller
        self.transport = transport
    }
}
