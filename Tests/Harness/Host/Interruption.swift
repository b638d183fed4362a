import Dispatch
import Glibc
import Synchronization

/// SIGINT and SIGTERM end the harness, and with it the host that it runs.
final class Interruption: Sendable {
    static let shared = Interruption()

    private let process = Mutex<pid_t?>(nil)

    /// The host that runs now.
    var host: pid_t? {
        get { process.withLock { $0 } }
        set { process.withLock { $0 = newValue } }
    }

    /// Begins to handle the signals, for as long as the result is kept.
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
