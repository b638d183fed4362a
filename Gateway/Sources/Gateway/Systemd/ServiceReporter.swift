import Logging
import ServiceLifecycle

/// Tells the service manager that the gateway serves, that it is alive, and that it stops.
struct ServiceReporter: Service {
    let manager: ServiceManager
    let logger: Logger
    /// Waits until the gateway serves.
    let serves: @Sendable () async -> Void
    /// Returns once each thread of the gateway has answered.
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
            // A gateway of which a thread hangs gives no sign of life, so the manager starts it again.
            await answers()
            guard !Task.isCancelled else { return }
            manager.notify(.alive)
            try? await Task.sleep(for: timeout / 3)
        }
    }
}
