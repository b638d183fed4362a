import Dispatch
import Glibc
import Synchronization

/// A handler of SIGINT, SIGTERM and SIGHUP: the first signal requests a clean end, a second one ends the process at
/// once.
final class Interruption: Sendable {
    /// Time limit for a clean end.
    private static let patience = DispatchTimeInterval.seconds(10)

    private let received = Mutex<Int32?>(nil)

    /// The first signal received.
    var signal: Int32? { received.withLock { $0 } }

    /// Calls `action` at the first signal, until the result is released.
    func handle(_ action: @escaping @Sendable () -> Void) -> [any DispatchSourceSignal] {
        let queue = DispatchQueue(label: "ble.signals")
        // `nohup` ignores SIGHUP for the program that it starts.
        return [SIGINT, SIGTERM, SIGHUP].filter { $0 != SIGHUP || !isIgnored($0) }.map { number in
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

    /// Whether the process was started with a signal ignored.
    private func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        guard unsafe sigaction(number, nil, &action) == 0 else { return false }
        // `SIG_IGN` is a number, which Swift imports as a function.
        return unsafe unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
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
