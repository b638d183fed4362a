import Logging
import ServiceLifecycle

/// Tells the service manager that the gateway serves, that it is alive, and that it stops.
struct ServiceReporter: Service {
    let manager: ServiceManager
    let logger: Logger
    /// Waits until the gateway serves.
    let serves: @Sendable () async -> Void
    /// Returns once each thread that is watched has answered. A thread that waits for a broker or for the reader of
    /// standard output cannot be watched, because it may wait for minutes. A thread that waits for the disk has
    /// answered.
    let answers: @Sendable () async -> Void

    func run() async throws {
        await withTaskGroup { group in
            group.addTask { await report() }
            try? await gracefulShutdown()
            manager.notify(.stopping)
            group.cancelAll()
        }
    }

    private func report() async {
        await serves()
        guard !Task.isCancelled else { return }
        if !manager.notify(.ready) { logger.warning("the service manager cannot be reached") }
        guard let timeout = manager.watchdogTimeout else { return }
        while !Task.isCancelled {
            // A gateway of which a watched thread hangs gives no sign of life, so the manager starts it again.
            await answers()
            guard !Task.isCancelled else { return }
            manager.notify(.alive)
            try? await Task.sleep(for: timeout / 3)
        }
    }
}
