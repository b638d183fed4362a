import BluetoothTypes
import HCI
import HeapModule

/// What software controllers share instead of radio waves, and the time in which it happens.
///
/// The air is deterministic: it knows no clock and no thread, and its chance comes from a seed. Whoever runs it tells it
/// how far time has come, and it does what is due by then, in order. Controllers hand packets to their hosts from within
/// ``advance(to:)`` only.
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
    /// How far time has come.
    public private(set) var now: Instant
    /// In the order in which they joined, so that runs are alike.
    private(set) var controllers: [VirtualController] = []
    /// Those that listen for advertisements: they scan, initiate or look for a periodic train.
    private(set) var listeners: [VirtualController] = []
    private var pairConditions: [Pair: RadioConditions] = [:]
    var random: SeededGenerator

    /// How well packets get through where ``setConditions(_:between:and:)`` says nothing else.
    public var conditions = RadioConditions.perfect {
        didSet { if conditions != oldValue { conditionsHaveChanged() } }
    }

    /// - Parameters:
    ///   - now: when time begins.
    ///   - seed: of all that happens by chance on the air: lost packets, jitter, advertising delays, faults.
    public init(now: Instant = Instant(nanoseconds: 0), seed: UInt64 = 0) {
        self.now = now
        random = SeededGenerator(seed: seed)
    }

    // MARK: Time

    /// When ``advance(to:)`` next has something to do, if at all.
    public var nextDue: Instant? { agenda.min?.instant }

    /// Does all that is due by `instant`.
    public func advance(to instant: Instant) {
        while let next = agenda.min, next.instant <= instant {
            agenda.removeMin()
            now = max(now, next.instant)
            next.action()
        }
        now = max(now, instant)
    }

    func schedule(after delay: Duration = .zero, _ action: @escaping () -> Void) {
        schedule(at: now + delay, action)
    }

    func schedule(at instant: Instant, _ action: @escaping () -> Void) {
        sequence += 1
        agenda.insert(Due(instant: max(instant, now), sequence: sequence, action: action))
    }

    // MARK: Who is there

    func join(_ controller: VirtualController) {
        controllers.append(controller)
    }

    func leave(_ controller: VirtualController) {
        controllers.removeAll { $0 === controller }
        listeners.removeAll { $0 === controller }
        pairConditions = pairConditions.filter { !$0.key.contains(controller) }
    }

    /// Takes note of whether a controller is to be told of advertisements.
    func setListening(_ controller: VirtualController, _ isListening: Bool) {
        let index = listeners.firstIndex { $0 === controller }
        switch (index, isListening) {
        case (nil, true): listeners.append(controller)
        case (let index?, false): listeners.remove(at: index)
        default: break
        }
    }

    // MARK: What gets through

    /// Sets how well packets get through between two controllers; nil: as everywhere.
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

    /// Links of which nothing is heard any more must notice it.
    func conditionsHaveChanged() {
        for controller in controllers {
            for place in controller.links { place?.link.conditionsHaveChanged() }
        }
    }

    /// Whether the signal of the one is strong enough for the other.
    func reaches(_ receiver: VirtualController, from sender: VirtualController, phy: PHY) -> Bool {
        rssi(at: receiver, from: sender) >= AirTime.sensitivity(phy)
    }

    /// How strong the signal of the one is at the other, in dBm.
    func rssi(at receiver: VirtualController, from sender: VirtualController) -> Int8 {
        Propagation.rssi(
            transmitPower: sender.configuration.transmitPower,
            from: sender.position,
            to: receiver.position
        )
    }

    /// Whether one packet gets from the one to the other now.
    func getsThrough(from sender: VirtualController, to receiver: VirtualController, phy: PHY) -> Bool {
        let conditions = conditions(between: sender, and: receiver)
        return !conditions.isDead && !random.happens(conditions.loss) && reaches(receiver, from: sender, phy: phy)
    }

    /// How much longer than the radio's own time a packet takes now.
    func delay(from sender: VirtualController, to receiver: VirtualController) -> Duration {
        let conditions = conditions(between: sender, and: receiver)
        guard conditions.jitter > .zero else { return conditions.latency }
        return conditions.latency + .nanoseconds(Int64(random.next(upTo: UInt64(conditions.jitter.wholeNanoseconds))))
    }
}
