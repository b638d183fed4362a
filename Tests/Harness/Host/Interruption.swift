import Dispatch
import Glibc
import Synchronization

/// Ends the harness and its host on SIGINT and SIGTERM.
final class Interruption: Sendable {
    static let shared = Interruption()

    private let process = Mutex<pid_t?>(nil)

    /// The current host.
    var host: pid_t? {
        get { process.withLock { $0 } }
        set { process.withLock { $0 = newValue } }
    }

    /// Begins to handle the signals, while the result is retained.
    func handle() -> [any DispatchSourceSignal] {
        signal(SIGPIPE, SIG_IGN)
        return [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                if let host = self.host { kill(host, SIGKILL) }
                _exit(128 + number)
            }
            source.activate()
            return source
        }
    }
}
