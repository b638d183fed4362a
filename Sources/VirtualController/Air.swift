import BluetoothTypes
import HeapModule

/// What software controllers share instead of radio waves, and the time in which it happens.
///
/// The air is deterministic: it knows no clock and no thread. Whoever runs it tells it how far time has come, and it does
/// what is due by then, in order. Controllers hand packets to their hosts from within ``advance(to:)`` only.
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

    private var agenda = Heap<Due>()
    private var sequence: UInt64 = 0
    /// How far time has come.
    public private(set) var now: Instant
    private var controllers: [ObjectIdentifier: VirtualController] = [:]
    /// Controllers in the order in which they joined, so that runs are alike.
    private var order: [ObjectIdentifier] = []

    public init(now: Instant = Instant(nanoseconds: 0)) {
        self.now = now
    }

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
        sequence += 1
        agenda.insert(Due(instant: now + delay, sequence: sequence, action: action))
    }

    func join(_ controller: VirtualController) {
        controllers[ObjectIdentifier(controller)] = controller
        order.append(ObjectIdentifier(controller))
    }

    func leave(_ controller: VirtualController) {
        controllers[ObjectIdentifier(controller)] = nil
        order.removeAll { $0 == ObjectIdentifier(controller) }
    }

    /// Calls `body` for each controller but one, in the order in which they joined.
    func forEachController(but one: VirtualController, _ body: (VirtualController) -> Void) {
        for identifier in order {
            if let controller = controllers[identifier], controller !== one { body(controller) }
        }
    }
}
