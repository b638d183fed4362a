import ESPHomeProtocol
import GatewayCore
import GatewayFleet
import NIOCore

/// The content of the web server: the status page with its data, the metrics, and the state of health.
package final class StatusPage: WebContent {
    /// Where the content comes from.
    package struct Source: Sendable {
        /// The name of the gateway.
        package var name: String
        /// Returns what the gateway does now.
        package var status: @Sendable () async -> GatewayStatus
        /// The devices that the gateway's configuration has.
        package var devices: ReceivedDevices
        /// The events that the gateway's configuration has.
        package var events: EventLog
        /// The backend of swift-metrics.
        package var registry: MetricsRegistry

        /// Creates a source.
        package init(
            name: String,
            status: @escaping @Sendable () async -> GatewayStatus,
            devices: ReceivedDevices,
            events: EventLog,
            registry: MetricsRegistry
        ) {
            self.name = name
            self.status = status
            self.devices = devices
            self.events = events
            self.registry = registry
        }
    }

    /// Content that is made for each request.
    enum Document: String, CaseIterable {
        case metrics = "/metrics"
        case health = "/health"
        /// Everything, with the whole signal over time.
        case status = "/api/status.json"
        /// Everything, with the signal of the last minute.
        case recent = "/api/recent.json"
    }

    /// The number of slots of the signal in ``Document/recent``.
    private static let recentSlotCount = 12

    private let source: Source
    private let process = ProcessMetrics()
    private let cache = ResponseCache()

    /// Creates the page.
    package init(_ source: Source) {
        self.source = source
    }

    var name: String { "the status page is" }

    func acceptsAnyHost(path: String) -> Bool {
        switch Document(rawValue: path) {
        case .metrics, .health: true
        case .status, .recent, nil: false
        }
    }

    func response(path: String, on eventLoop: any EventLoop) -> EventLoopFuture<WebResponse>? {
        if let file = PageFile.all[path] { return eventLoop.makeSucceededFuture(file) }
        guard let document = Document(rawValue: path) else { return nil }
        return eventLoop.makeFutureWithTask { [self] in
            await cache.response(for: document) { await self.make(document) }
        }
    }

    /// Makes a document.
    func make(_ document: Document) async -> WebResponse {
        let status = await source.status()
        switch document {
        case .metrics:
            let families =
                GatewayMetrics.families(
                    status,
                    source.devices.snapshot(slotCount: 0),
                    source.devices.counts,
                    source.events
                ) + process.families + source.registry.families
            return WebResponse(.ok, Exposition.contentType, Exposition.text(families))
        case .health:
            let health = Health(status)
            let code = health.isHealthy ? 200 : 503
            return WebResponse(.init(statusCode: code), Self.jsonType, health.json + "\n")
        case .status, .recent:
            let count = document == .status ? ReceivedDevices.slots.count : Self.recentSlotCount
            let json = StatusJSON(source: source, status: status, devices: source.devices.snapshot(slotCount: count))
            return WebResponse(.ok, Self.jsonType, json.text)
        }
    }

    private static let jsonType = "application/json; charset=utf-8"
}

/// Keeps each document for a short time, so the cost of many requests is bounded.
private actor ResponseCache {
    private static let lifetime = Duration.milliseconds(250)

    private var entries: [StatusPage.Document: (task: Task<WebResponse, Never>, time: ContinuousClock.Instant)] = [:]

    func response(
        for document: StatusPage.Document,
        make: @escaping @Sendable () async -> WebResponse
    ) async -> WebResponse {
        let now = ContinuousClock.now
        if let entry = entries[document], now - entry.time < Self.lifetime { return await entry.task.value }
        let predecessor = entries[document]?.task
        let task = Task {
            _ = await predecessor?.value
            return await make()
        }
        entries[document] = (task, now)
        return await task.value
    }
}

/// Whether a gateway does what it is configured for.
struct Health {
    /// The reasons why the gateway is not healthy.
    let reasons: [String]

    /// A broker that is away is no reason: messages wait for it, and another start of the gateway would not help.
    init(_ status: GatewayStatus) {
        var reasons = status.adapters.filter { !$0.isOpen }.map { adapter in
            "adapter \(adapter.name): \((adapter.failure ?? "not open").printable(limit: 240))"
        }
        if status.adapters.isEmpty { reasons.append("there is no adapter") }
        if status.servesClients, status.port == nil { reasons.append("clients cannot connect yet") }
        self.reasons = reasons
    }

    var isHealthy: Bool { reasons.isEmpty }

    /// The state of a fleet's consumer. A broker that is away is no reason here either.
    init(_ status: FleetStatus) {
        let failures = [
            ("messages cannot be stored", status.storeFailure), ("lines cannot be written", status.outputFailure),
        ]
        reasons = failures.compactMap { text, reason in reason.map { "\(text): \($0.printable(limit: 240))" } }
    }

    /// The state as a JSON object.
    var json: String {
        JSONText.object([
            ("status", JSONText.string(isHealthy ? "ok" : "failing")),
            ("reasons", "[" + reasons.map(JSONText.string).joined(separator: ", ") + "]"),
        ])
    }
}
