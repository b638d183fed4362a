import BLEHCI
import BluetoothTypes

/// The host's classification of the data channels, for the links of the central (Vol 4, Part E, 7.8.19).
///
/// Commands follow each other after a second at the earliest. A newer classification replaces one that waits, and the
/// calls of both end with its command. The controller forgets the classification at a reset, so it is sent again
/// afterwards.
struct ChannelClassification {
    enum Effect: Equatable {
        case send(ChannelMap)
        /// Call ``ChannelClassification/advance(to:)`` at this time.
        case wake(Instant)
        /// End a call: with success, or with this error.
        case finish(CallToken, HostError?)
    }

    private struct Request: Equatable {
        var map: ChannelMap
        var calls: [CallToken]
    }

    /// The shortest time between two commands.
    static let interval = Duration.seconds(1)
    /// Maximum number of calls that wait at a time.
    static let limit = 1024

    private var waiting: Request?
    private var inFlight: Request?
    /// The classification that the controller accepted last.
    private(set) var accepted: ChannelMap?
    private var earliestCommand: Instant?

    /// The number of calls that wait.
    var count: Int { (waiting?.calls.count ?? 0) + (inFlight?.calls.count ?? 0) }

    /// Requests a classification for a call.
    mutating func classify(_ map: ChannelMap, for call: CallToken, at now: Instant) -> [Effect] {
        guard map.rawValue.nonzeroBitCount >= 2 else {
            return [.finish(call, .invalidArgument("a channel map has 2 channels or more, of 0 to 36"))]
        }
        guard count < ChannelClassification.limit else {
            let text = "\(Self.limit) classifications of channels wait, the maximum; await earlier ones"
            return [.finish(call, .limitReached(text))]
        }
        let isFirst = waiting == nil
        waiting = Request(map: map, calls: (waiting?.calls ?? []) + [call])
        if isFirst, inFlight == nil, let earliestCommand, earliestCommand > now { return [.wake(earliestCommand)] }
        return sendNext(at: now)
    }

    private mutating func sendNext(at now: Instant) -> [Effect] {
        guard inFlight == nil, let next = waiting, earliestCommand.map({ $0 <= now }) ?? true else { return [] }
        waiting = nil
        inFlight = next
        earliestCommand = now + ChannelClassification.interval
        return [.send(next.map)]
    }

    /// Takes the answer to the command: a failure, or nil for success.
    mutating func answered(_ failure: CommandFailure?, at now: Instant) -> [Effect] {
        guard let request = inFlight.take() else { return [] }
        if failure == nil { accepted = request.map }
        let error = failure.map { HostError.command($0) }
        let effects = request.calls.map { Effect.finish($0, error) }
        guard waiting != nil, let earliestCommand, earliestCommand > now else { return effects + sendNext(at: now) }
        return effects + [.wake(earliestCommand)]
    }

    mutating func advance(to now: Instant) -> [Effect] { sendNext(at: now) }

    /// Sends the last classification to a controller that was reset.
    mutating func controllerIsReady(at now: Instant) -> [Effect] {
        if waiting == nil, let accepted { waiting = Request(map: accepted, calls: []) }
        earliestCommand = nil
        return sendNext(at: now)
    }

    /// Ends all calls.
    mutating func endAll(_ error: HostError) -> [Effect] {
        let calls = (inFlight?.calls ?? []) + (waiting?.calls ?? [])
        (inFlight, waiting) = (nil, nil)
        return calls.map { .finish($0, error) }
    }
}
