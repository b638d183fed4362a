import Dispatch
import Glibc
import Synchronization

/// SIGINT and SIGTERM: the first asks for a clean end, a second one ends at once.
final class Interruption: Sendable {
    /// How long a clean end may take.
    private static let patience = DispatchTimeInterval.seconds(10)

    private let received = Mutex<Int32?>(nil)

    /// The signal that came first.
    var signal: Int32? { received.withLock { $0 } }

    /// Calls `action` at the first signal, as long as the result is kept.
    func handle(_ action: @escaping @Sendable () -> Void) -> [any DispatchSourceSignal] {
        let queue = DispatchQueue(label: "ble.signals")
        return [SIGINT, SIGTERM].map { number in
            Glibc.signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { [self] in
                guard note(number) else { _exit(128 + number) }
                queue.asyncAfter(deadline: .now() + Interruption.patience) { _exit(128 + number) }
                action()
            }
            source.activate()
            return source
        }
    }

    /// Whether it is the first.
    private func note(_ number: Int32) -> Bool {
        received.withLock { received in
            guard received == nil else { return false }
            received = number
            return true
        }
    }
}
