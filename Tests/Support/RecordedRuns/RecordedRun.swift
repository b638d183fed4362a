import BLE

/// What an app does with a host, for a capture of it and again for each replay of that capture.
public struct RecordedRun: Sendable {
    /// Of the fixture, without its extension.
    public let name: String
    /// Of the host's random numbers.
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

    /// The run with an adapter that is opened otherwise.
    func configured(_ configure: @escaping @Sendable (inout Adapter.Configuration) -> Void) -> RecordedRun {
        var run = self
        run.configuring = configure
        return run
    }

    /// Sets what the adapter is opened with.
    public func configure(_ configuration: inout Adapter.Configuration) {
        configuration.deviceName = "swift-ble"
        configuration.seed = seed
        configuration.stateLocation = .nowhere
        configuring(&configuration)
    }

    /// Does it; the adapter is closed afterwards by who has opened it.
    public func perform(on adapter: Adapter, _ stage: any Stage) async throws {
        try await body(adapter, stage)
    }

    /// All runs of which there are fixtures.
    public static let all: [RecordedRun] =
        values + signals + channels + served + pairings + servedPairings

    /// The run of a fixture.
    public static func named(_ name: String) -> RecordedRun? {
        all.first { $0.name == name }
    }
}

/// Where a run takes place: before a controller, or in a replay.
public protocol Stage: Sendable {
    /// Waits in the stage's time.
    func sleep(for duration: Duration) async throws

    /// Tells whoever plays the peer that something has come to pass. In a replay nobody listens: the peer did what it did.
    func tell(_ cue: String)

    /// The controller is pulled out and comes back; returns when it is up again.
    func loseController(of adapter: Adapter) async throws
}

extension Stage {
    /// Waits until both hosts have done what they do by themselves, so that it is not chance what comes first.
    func settle() async throws {
        try await sleep(for: .milliseconds(200))
    }
}

/// A peer did not do what the run is about.
struct UnexpectedPeer: Error {
    let what: String
}
