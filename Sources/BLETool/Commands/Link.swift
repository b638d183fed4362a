import ArgumentParser
import BLE
import BLEHCI
import BLEProfiles
import BluetoothTypes
import Synchronization

struct Link: AsyncParsableCommand {
    /// A PHY that the user names.
    enum PHYName: String, ExpressibleByArgument, CaseIterable {
        case le1M = "1m"
        case le2M = "2m"
        case coded

        var set: PHYSet {
            switch self {
            case .le1M: .le1M
            case .le2M: .le2M
            case .coded: .leCoded
            }
        }
    }

    /// A coding of the LE Coded PHY that the user names.
    enum Coding: String, ExpressibleByArgument, CaseIterable {
        case s2
        case s8

        var options: PHYOptions { self == .s2 ? .preferS2Coding : .preferS8Coding }
    }

    static let configuration = CommandConfiguration(
        commandName: "link",
        abstract: "Connect to a peer, and watch the parameters, PHYs and transmit powers of the connection.",
        discussion: """
            Requests what the options say, one after the other, and shows the connection. Then shows each change of its \
            parameters, subrate, PHYs and transmit powers and, with --path-loss, of its path loss, until the count is \
            reached or the duration is over, or until it is stopped. What a device does not report is not known.
            """
    )

    @OptionGroup var peer: PeerOptions

    @Option(
        help: ArgumentHelp("Request this connection interval, 7.5ms to 4s.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var interval: Seconds?

    @Option(
        help: ArgumentHelp("Request a subrate factor, as in 10 or 2-10: 1 to 500.", valueName: "range"),
        transform: { try NumberRange(argument: $0) }
    )
    var subrate: NumberRange?

    @Option(
        help: ArgumentHelp("With --subrate: how many events are used after one with data (default: 0).", valueName: "n")
    )
    var continuation: Int?

    @Option(
        help: ArgumentHelp("The peripheral may skip this number of events, 0 to 499 (default: 0).", valueName: "n")
    )
    var latency: UInt16?

    @Option(
        help: ArgumentHelp(
            "The time without packets after which the link ends, 100ms to 32s (default: 4).",
            valueName: "s"
        ),
        transform: { try Seconds(argument: $0) }
    )
    var supervisionTimeout: Seconds?

    @Option(help: "Request this PHY in both directions.")
    var phy: PHYName?

    @Option(help: "With --phy coded: the coding with which this device prefers to send.")
    var coding: Coding?

    @Option(
        help: ArgumentHelp(
            "Watch the path loss: the limits of its low and its high zone in dB, as in 50-70.",
            valueName: "range"
        ),
        transform: { try NumberRange(argument: $0) }
    )
    var pathLoss: NumberRange?

    @Option(help: ArgumentHelp("How many changes to wait for.", valueName: "n"))
    var count: Int?

    @Option(
        help: ArgumentHelp("How long to watch.", valueName: "s"),
        transform: { try Seconds(argument: $0) }
    )
    var duration: Seconds?

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count is 1 or more") }
        if continuation != nil, subrate == nil { throw ValidationError("--continuation goes with --subrate") }
        if coding != nil, phy != .coded { throw ValidationError("--coding goes with --phy coded") }
        if latency != nil || supervisionTimeout != nil, subrate == nil, interval == nil {
            throw ValidationError("--latency and --supervision-timeout go with --interval or --subrate")
        }
        if let interval, !Link.intervals.contains(interval.duration) {
            throw ValidationError("--interval: \(interval) is out of range; use 7.5ms to 4s")
        }
        if let latency, latency > 499 {
            throw ValidationError("--latency: \(latency) is out of range; use 0 to 499")
        }
        if let supervisionTimeout, !Link.supervisionTimeouts.contains(supervisionTimeout.duration) {
            throw ValidationError("--supervision-timeout: \(supervisionTimeout) is out of range; use 100ms to 32s")
        }
        if let subrateParameters, !subrateParameters.isValid {
            throw ValidationError(
                "--subrate is 1 to 500, at most 500 with --latency, and more than --continuation; "
                    + "--supervision-timeout is 100ms to 32s"
            )
        }
        try validateSupervisionTimeout()
        if let thresholds, !thresholds.isValid {
            throw ValidationError("--path-loss is 2 to 252 dB, and its limits are 4 dB apart or more")
        }
    }

    /// The link must outlast two of the longest times between events that the peripheral uses (Vol 4, Part E, 7.8.18).
    private func validateSupervisionTimeout() throws {
        guard let interval, let connectionParameters else { return }
        let eventCount = (subrate?.value.upperBound ?? 1) * (Int(latency ?? 0) + 1)
        let shortest = interval.duration * (2 * eventCount)
        let timeout = connectionParameters.supervisionTimeout
        guard timeout <= shortest || !connectionParameters.isValid else { return }
        throw ValidationError(
            "--supervision-timeout: \(Seconds(timeout)) is too short; with this interval, latency and subrate, use "
                + "more than \(Seconds(shortest))"
        )
    }

    func run() async throws {
        let command = self
        try await peer.withPeer(.none, usesSubrating: true) { adapter, peer in
            try await command.change(peer.connection, adapter)
            try await command.watch(peer, adapter)
        }
    }

    private static let intervals: ClosedRange<Duration> = .microseconds(7500)...(.seconds(4))
    private static let supervisionTimeouts: ClosedRange<Duration> = .milliseconds(100)...(.seconds(32))

    private var connectionParameters: ConnectionParameters? {
        interval.map {
            ConnectionParameters(
                interval: $0.duration...$0.duration,
                latencyInEvents: subrate == nil ? latency ?? 0 : 0,
                supervisionTimeout: supervisionTimeout?.duration ?? .seconds(4)
            )
        }
    }

    private var subrateParameters: SubrateParameters? {
        subrate.map {
            SubrateParameters(
                factor: $0.value,
                maximumLatency: Int(latency ?? 0),
                continuationNumber: continuation ?? 0,
                supervisionTimeout: supervisionTimeout?.duration ?? .seconds(4)
            )
        }
    }

    private var thresholds: PathLossThresholds? {
        pathLoss.map { range in
            let (low, high) = (range.value.lowerBound, range.value.upperBound)
            return PathLossThresholds(low: low, high: high == low ? nil : high)
        }
    }

    /// Requests what the options say.
    private func change(_ connection: Connection, _ adapter: Adapter) async throws {
        if let connectionParameters { try await connection.updateParameters(connectionParameters) }
        if let phy {
            try await connection.setPHY(
                transmit: phy.set,
                receive: phy.set,
                coding: coding?.options ?? .noPreference
            )
        }
        guard let subrateParameters else { return }
        do throws(BLEError) {
            try await connection.requestSubrate(subrateParameters)
        } catch {
            // The controller of this device may be the obstacle, too.
            guard case .notSupported = error, try await adapter.information.commands.contains(LESubrateRequest.self)
            else { throw error }
            throw ToolError.noSubrating("\(error)")
        }
    }

    private func watch(_ peer: RemotePeripheral, _ adapter: Adapter) async throws {
        let watch = LinkWatch(
            peer: peer,
            reportsPower: try await adapter.information.commands.contains(LESetTransmitPowerReportingEnable.self),
            pathLoss: thresholds,
            asJSON: self.peer.options.output.json
        )
        let limit = count
        let counter = Counter()
        do {
            let isDone: Void? = try await limited(to: duration?.duration) { start in
                try await watch.run(whenShown: start) { counter.increment() != limit }
            }
            if isDone == nil, let count, let duration { throw ToolError.tooFew(counter.value, of: count, duration) }
        } catch  where Task.isCancelled && count == nil && duration == nil && !(error is OutputError) {
            // Cancellation is the normal end without a limit.
        }
    }
}

/// A count that several tasks may read.
private final class Counter: Sendable {
    private let count = Atomic(0)
    var value: Int { count.load(ordering: .relaxed) }
    func increment() -> Int { count.wrappingAdd(1, ordering: .relaxed).newValue }
}
