import GatewayCore
import GatewayMQTT
import Logging
import ServiceLifecycle

/// How long the services of the program may take to stop. If they take longer, the process is ended by force.
struct StopLimits {
    /// The time after which all services are cancelled that have not stopped in their order.
    let graceful: Duration
    /// The time for cancelled services. It is longer than any of them needs: otherwise the process would crash, and
    /// what a service stores at its end would be lost.
    let cancellation: Duration
    /// The time of both.
    var longest: Duration { graceful + cancellation }

    /// The limits of `run`. Together they are shorter than the time that systemd allows, `TimeoutStopSec` of the unit.
    static let run = StopLimits(
        graceful: .seconds(10),
        cancellation: max(Gateway.longestEnd, MQTTPublisher.longestEnd) + .seconds(2)
    )
    /// The limits of `fleet`. Together they too are shorter than `TimeoutStopSec` of its unit.
    static let fleet = StopLimits(
        graceful: FleetService.longestEnd + .seconds(1),
        cancellation: FleetService.longestEnd + .seconds(1)
    )

    /// A group of services that a signal stops, with these limits.
    func group(of services: [any Service]) -> ServiceGroup {
        var configuration = ServiceGroupConfiguration(
            services: services,
            gracefulShutdownSignals: .stopping,
            logger: Logger(label: "ble-gateway", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        configuration.maximumGracefulShutdownDuration = graceful
        configuration.maximumCancellationDuration = cancellation
        return ServiceGroup(configuration: configuration)
    }
}
