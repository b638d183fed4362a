import BLEHCI
import BluetoothTypes
import HeapModule

/// A simulated radio channel between software controllers, with its own time.
///
/// The air is deterministic: it uses no clock and no thread, and its randomness comes from a seed. The caller advances
/// the time, and the air then runs all due actions in order. Controllers pass packets to their hosts only within
/// ``advance(to:)``.
public final class Air {
    private struct Due: Comparable {
        let instant: Instant
        let sequence: UInt64
        let action: () -> Void

        static func < (left: Due, right: Due) -> Bool {
            (left.instant.nanoseconds, left.sequence) < (right.instant.nanoseconds, right.sequence)
        }

        static func == (left: Due, right: Due) -> Bool { left.sequence == right.sequence }
    }

    /// A timer for one purpose. At most one of its actions is on the agenda: a new setting replaces it.
    ///
    /// A host can repeat a command that starts a long period. Without a timer, each repetition would leave an action on
    /// the agenda until its period ends.
    final class Timer {
        /// The sequence number of the pending action, if any.
        fileprivate var pending: UInt64?
    }

    /// Two controllers, in either order.
    private struct Pair: Hashable {
        let first: ObjectIdentifier
        let second: ObjectIdentifier

        init(_ one: VirtualController, _ other: VirtualController) {
            let identifiers = [ObjectIdentifier(one), ObjectIdentifier(other)].sorted()
            (first, second) = (identifiers[0], identifiers[1])
        }

        func contains(_ controller: VirtualController) -> Bool {
            first == ObjectIdentifier(controller) || second == ObjectIdentifier(controller)
        }
    }

    private var agenda = Heap<Due>()
    private var sequence: UInt64 = 0
    /// The cancelled actions that are still on the agenda. The next action of the agenda is never one of them.
    private var cancelled: Set<UInt64> = []
    /// The current time.
    public private(set) var now: Instant
    /// The controllers in the order in which they joined, so that runs are reproducible.
    private(set) var controllers: [VirtualController] = []
    /// The controllers that listen for advertisements: they scan or initiate.
    private(set) var listeners: [VirtualController] = []
    private var pairConditions: [Pair: RadioConditions] = [:]
    var random: SeededGenerator

    /// The conditions between controllers for which ``setConditions(_:between:and:)`` sets no others.
    public var conditions = RadioConditions.perfect {
        didSet { if conditions != oldValue { conditionsHaveChanged() } }
    }

    /// Creates an air.
    ///
    /// - Parameters:
    ///   - now: the start of time.
    ///   - seed: the seed of all random events on the air: lost packets, jitter, advertising delays, faults.
    public init(now: Instant = Instant(nanoseconds: 0), seed: UInt64 = 0) {
        self.now = now
        random = SeededGenerator(seed: seed)
    }

    // MARK: Time

    /// The time of the next action of ``advance(to:)``, if any.
    public var nextDue: Instant? { agenda.min?.instant }

    /// Runs all actions due by `instant`.
    public func advance(to instant: Instant) {
        while let next = agenda.min, next.instant <= instant {
            agenda.removeMin()
            removeCancelled()
            now = max(now, next.instant)
            next.action()
        }
        now = max(now, instant)
    }

    /// Advances the time to `instant`, but not beyond the next action, and runs no action.
    ///
    /// A change from outside then takes effect at the present time, and no packet is passed to a host.
    package func moveTime(to instant: Instant) {
        now = max(now, min(instant, nextDue ?? instant))
    }

    func schedule(after delay: Duration = .zero, _ action: @escaping () -> Void) {
        schedule(at: now + delay, action)
    }

    func schedule(at instant: Instant, _ action: @escaping () -> Void) {
        sequence += 1
        agenda.insert(Due(instant: max(instant, now), sequence: sequence, action: action))
    }

    // MARK: Timers

    /// Sets a timer, which replaces the pending action of the timer.
    func set(_ timer: Timer, at instant: Instant, _ action: @escaping () -> Void) {
        cancel(timer)
        schedule(at: instant) {
            timer.pending = nil
            action()
        }
        timer.pending = sequence
    }

    /// Cancels the pending action of a timer, if any.
    func cancel(_ timer: Timer) {
        guard let pending = timer.pending.take() else { return }
        cancelled.insert(pending)
        removeCancelled()
        // Cancelled actions are at most half of a long agenda.
        guard cancelled.count > 64, cancelled.count > agenda.count / 2 else { return }
        agenda = Heap(agenda.unordered.filter { !cancelled.contains($0.sequence) })
        cancelled = []
    }

    /// Removes cancelled actions from the start of the agenda.
    private func removeCancelled() {
        guard !cancelled.isEmpty else { return }
        while let next = agenda.min, cancelled.remove(next.sequence) != nil { agenda.removeMin() }
    }

    // MARK: Controllers

    func join(_ controller: VirtualController) {
        controllers.append(controller)
    }

    func leave(_ controller: VirtualController) {
        controllers.removeAll { $0 === controller }
        listeners.removeAll { $0 === controller }
        pairConditions = pairConditions.filter { !$0.key.contains(controller) }
    }

    /// The number of controllers that are present, and of actions that are due later, for tests that look for leaks.
    package var counts: (controllers: Int, actions: Int) { (controllers.count, agenda.count - cancelled.count) }

    /// Sets whether a controller receives advertisements.
    func setListening(_ controller: VirtualController, _ isListening: Bool) {
        let index = listeners.firstIndex { $0 === controller }
        switch (index, isListening) {
        case (nil, true): listeners.append(controller)
        case (let index?, false): listeners.remove(at: index)
        default: break
        }
    }

    // MARK: Conditions

    /// Sets the conditions between two controllers. Nil restores those of the air.
    public func setConditions(
        _ conditions: RadioConditions?,
        between one: VirtualController,
        and other: VirtualController
    ) {
        pairConditions[Pair(one, other)] = conditions
        conditionsHaveChanged()
    }

    func conditions(between one: VirtualController, and other: VirtualController) -> RadioConditions {
        pairConditions.isEmpty ? conditions : pairConditions[Pair(one, other)] ?? conditions
    }

    /// Notifies all links, because a link may have lost its peer.
    func conditionsHaveChanged() {
        for controller in controllers {
            for place in controller.links { place?.link.conditionsHaveChanged() }
        }
    }

    /// Whether the signal of `sender` is strong enough for `receiver`.
    ///
    /// - Parameter power: the power of the sender, in dBm; nil for its greatest.
    func reaches(
        _ receiver: VirtualController,
        from sender: VirtualController,
        phy: PHY,
        power: Int8? = nil
    ) -> Bool {
        rssi(at: receiver, from: sender, power: power) >= AirTime.sensitivity(phy)
    }

    /// Returns the strength of the signal of `sender` at `receiver`, in dBm.
    func rssi(at receiver: VirtualController, from sender: VirtualController, power: Int8? = nil) -> Int8 {
        Propagation.rssi(
            transmitPower: power ?? sender.configuration.transmitPower,
            from: sender.position,
            to: receiver.position
        )
    }

    /// Returns whether one packet from `sender` reaches `receiver` now. Each call draws a random loss.
    func getsThrough(
        from sender: VirtualController,
        to receiver: VirtualController,
        phy: PHY,
        power: Int8? = nil
    ) -> Bool {
        let conditions = conditions(between: sender, and: receiver)
        return !conditions.isDead && !random.happens(conditions.loss)
            && reaches(receiver, from: sender, phy: phy, power: power)
    }

    /// Returns the delay of a packet in addition to its air time.
    func delay(from sender: VirtualController, to receiver: VirtualController) -> Duration {
        let conditions = conditions(between: sender, and: receiver)
        guard conditions.jitter > .zero else { return conditions.latency }
        return conditions.latency + .nanoseconds(Int64(random.next(upTo: UInt64(conditions.jitter.wholeNanoseconds))))
    }
}
