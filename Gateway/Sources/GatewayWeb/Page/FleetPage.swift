import GatewayFleet
import NIOCore

/// The content of the web server of a fleet's consumer: the metrics, and the state of health.
package final class FleetPage: WebContent {
    private let status: @Sendable () -> FleetStatus
    private let process = ProcessMetrics()

    /// Creates the page.
    ///
    /// - Parameter status: returns what the consumer has done.
    package init(status: @escaping @Sendable () -> FleetStatus) {
        self.status = status
    }

    var name: String { "metrics are" }

    func acceptsAnyHost(path: String) -> Bool { true }

    func response(path: String, on eventLoop: any EventLoop) -> EventLoopFuture<WebResponse>? {
        switch path {
        case "/metrics":
            let families = FleetMetrics.families(status()) + process.families
            let text = Exposition.text(families)
            return eventLoop.makeSucceededFuture(WebResponse(.ok, Exposition.contentType, text))
        case "/health":
            let health = Health(status())
            let code = health.isHealthy ? 200 : 503
            let type = "application/json; charset=utf-8"
            return eventLoop.makeSucceededFuture(WebResponse(.init(statusCode: code), type, health.json + "\n"))
        default: return nil
        }
    }
}
