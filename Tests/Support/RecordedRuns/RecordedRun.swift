import BLE

/// A sequence of an app's calls to a host, performed for a capture and again for each replay of that capture.
public struct RecordedRun: Sendable {
    /// The name of the fixture, without its extension.
    public let name: String
    /// The seed of the host's random numbers.
    public let seed: UInt64
    private var configuring: @Sendable (inout Adapter.Configuration) -> Void = { _ in }
    private let body: @Sendable (Adapter, any Stage) async throws -> Void

    init(
        _ name: String,
        seed: UInt64 = 1,
        _ body: @escaping @Sendable (Adapter, any Stage) async throws -> Void
    ) {
        self.name = name
        self.seed = seed
        self.body = body
    }

    /// Returns the run with another configuration of the adapter.
    func configured(_ configure: @escaping @Sendable (inout Adapter.Configuration) -> Void) -> RecordedRun {
        var run = self
        run.configuring = configure
        return run
    }

    /// Sets the configuration of the adapter.
    public func configure(_ configuration: inout Adapter.Configuration) {
        configuration.deviceName = "swift-ble"
        configuration.seed = seed
        configuration.stateLocation = .nowhere
        configuring(&configuration)
    }

    /// Performs the run. The caller, which has opened the adapter, closes it afterwards.
    public func perform(on adapter: Adapter, _ stage: any Stage) async throws {
        try await body(adapter, stage)
    }

    /// All runs with fixtures.
    public static let all: [RecordedRun] =
        values + signals + channels + served + pairings + servedPairings

    /// Returns the run of a fixture.
    public static func named(_ name: String) -> RecordedRun? {
        all.first { $0.name == name }
    }
}

/// The environment of a run: a controller, or a replay.
public protocol Stage: Sendable {
    /// Waits in the stage's time.
    func sleep(for duration: Duration) async throws

    /// Tells the person at the peer that something has happened. A replay ignores it, because the peer's actions are
    /// recorded.
    func tell(_ cue: String)

    /// Disconnects and reconnects the controller; returns when it is up again.
    func loseController(of adapter: Adapter) async throws
}

extension Stage {
    /// Waits until both hosts have completed their own work, so that the order of the next packets does not vary.
    func settle() async throws {
        try await sleep(for: .milliseconds(200))
    }
}

/// The peer did not do what the run requires.
struct UnexpectedPeer: Error {
    let what: String
}
