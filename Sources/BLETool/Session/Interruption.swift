import Dispatch
import Glibc
import Synchronization

/// A handler of SIGINT and SIGTERM: the first signal requests a clean end, a second one ends the process at once.
final class Interruption: Sendable {
    /// Time limit for a clean end.
    private static let patience = DispatchTimeInterval.seconds(10)

    private let received = Mutex<Int32?>(nil)

    /// The first signal received.
    var signal: Int32? { received.withLock { $0 } }

    /// Calls `action` at the first signal, until the result is released.
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

    /// Records a signal. Returns whether it is the first.
    private func note(_ number: Int32) -> Bool {
        received.withLock { received in
            guard received == nil else { return false }
            received = number
            return true
        }
    }
}
