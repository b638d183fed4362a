import BLEGATT
import BluetoothTypes

/// The enhanced bearers of one link, and the choice of a bearer for each procedure.
///
/// ## Order
///
/// Procedures on different bearers run at the same time and end in any order. Calls on one characteristic keep their
/// order:
///
/// - A procedure goes to the bearer that has unfinished procedures of the same characteristic. One that was cancelled
///   counts until the server has answered.
/// - A write without response is sent on the fixed channel, once no enhanced bearer has a procedure of its
///   characteristic. All procedures after it stay on the fixed channel, until the server has answered a request that
///   was sent after it. Before that, nothing shows that the server has received the command, and the app may rely on
///   that.
/// - A procedure of several characteristics runs on the fixed channel, once no enhanced bearer has a procedure of one
///   of them.
/// - A procedure that belongs to no characteristic, such as a discovery, runs on the fixed channel.
///
/// Any other procedure goes to the bearer with the fewest procedures.
///
/// ## Opening
///
/// The client opens bearers once the link is encrypted: ``Phase``. Bearers that the peer opens are used as well.
final class EnhancedBearers {
    enum Phase: Equatable {
        /// Nothing was requested yet.
        case idle
        /// The client finds out whether the server accepts enhanced bearers.
        case preparing
        /// This number of channels has been requested and not answered.
        case opening(remaining: Int)
        /// The peer had no resources, perhaps because both devices have requested channels at once. The client requests
        /// them again at this time.
        case waiting(until: Instant)
        /// The client requests no more channels.
        case settled
    }

    /// What an app is asked about a request whose bearer has ended.
    private enum Orphan {
        /// A value that is read or written.
        case access
        /// Whether the client is authorized.
        case authorization
        /// The same about an earlier client. The answer has no effect.
        case authorizationOfForgottenClient
    }

    private struct Use {
        /// Nil for the fixed channel.
        var bearer: EnhancedBearer?
        /// The number of procedures that have not ended.
        var count = 1
    }

    /// Maximum number of requests for channels on a link.
    static let attemptLimit = 3
    /// Maximum number of requests of ended bearers that an app has not answered. With more, the link gets no further
    /// bearer, so that a peer that ends its bearers again and again cannot fill the app's queue.
    static let orphanLimit = 16

    /// Maximum number of enhanced bearers of the link.
    let limit: Int
    private(set) var bearers: [EnhancedBearer] = []
    var phase = Phase.idle
    private(set) var attempts = 0
    /// Whether the peer had no resources for a channel of the current request.
    private var lackedResources = false
    /// The requests of ended bearers that an app has not answered.
    private var orphans: [UInt64: Orphan] = [:]
    /// The characteristics with unfinished procedures.
    private var uses: [AttributeHandle: Use] = [:]
    /// The number of responses on the fixed channel after which the server has received the last write without
    /// response. There are two if the write was sent while a request was in flight. Nil if they were received.
    private var responsesToCommand: Int?
    /// The calls that were cancelled while the fixed channel waited for a response.
    private var cancelledOnFixedChannel: [ProcedureCall] = []

    init(limit: Int) {
        self.limit = limit
    }

    /// The earliest deadline of a transaction or of a new request for channels.
    var deadline: Instant? {
        var deadline: Instant? = if case .waiting(let time) = phase { time } else { nil }
        for bearer in bearers { deadline = earliest(deadline, bearer.transactions.deadline) }
        return deadline
    }

    /// Whether a bearer waits until the link's security has been raised.
    var isElevating: Bool { bearers.contains { $0.client.isElevating } }

    /// The bearer with a channel.
    func bearer(on channel: HostChannelIdentifier) -> EnhancedBearer? {
        bearers.first { $0.channel == channel }
    }

    /// The bearer with a request of the peer that waits for this answer of an app.
    func bearer(awaiting request: UInt64) -> EnhancedBearer? {
        bearers.first { $0.serverState.awaitedAnswer == request }
    }

    /// Records that an app has answered a request.
    ///
    /// - Returns: nil if the bearer of the request has not ended. Otherwise, whether the answer may authorize the
    ///   client.
    func takeOrphan(_ request: UInt64) -> Bool? {
        orphans.removeValue(forKey: request).map { $0 == .authorization }
    }

    /// Makes later answers to requests of ended bearers authorize nobody, because another device may be the client now.
    func ignoreAuthorizationsOfOrphans() {
        for (request, orphan) in orphans where orphan == .authorization {
            orphans[request] = .authorizationOfForgottenClient
        }
    }

    /// Removes the requests of ended bearers that wait for a decision about authorization, because nobody decides any
    /// more. A later decision has no effect.
    func removeAuthorizationsOfOrphans() {
        orphans = orphans.filter { $0.value == .access }
    }

    /// The bearer whose client has a procedure.
    func bearer(of run: ProcedureRun) -> EnhancedBearer? {
        bearers.first { $0.calls.contains { $0.run === run } }
    }

    // MARK: Bearers

    /// Adds the bearer of a channel that has been opened.
    ///
    /// - Returns: false if there is no room for another.
    func add(_ bearer: EnhancedBearer) -> Bool {
        guard bearers.count < limit, orphans.count < EnhancedBearers.orphanLimit else { return false }
        bearers.append(bearer)
        return true
    }

    /// Removes a bearer that has ended. The waiting procedures of its characteristics continue on the fixed channel.
    func remove(_ bearer: EnhancedBearer) {
        if let request = bearer.serverState.awaitedAnswer {
            orphans[request] = bearer.serverState.awaitedAuthorization == nil ? .access : .authorization
        }
        bearers.removeAll { $0 === bearer }
        for (characteristic, use) in uses where use.bearer === bearer { uses[characteristic]?.bearer = nil }
    }

    // MARK: Procedures

    /// Chooses the bearer of a procedure.
    ///
    /// - Parameter fixedLoad: the number of procedures on the fixed channel.
    /// - Returns: the bearer; nil for the fixed channel.
    func assign(_ call: borrowing ProcedureCall, fixedLoad: Int) -> EnhancedBearer? {
        guard let characteristic = call.characteristic else {
            for characteristic in call.characteristics { uses[characteristic, default: Use(count: 0)].count += 1 }
            return nil
        }
        if let use = uses[characteristic] {
            uses[characteristic]?.count += 1
            return use.bearer
        }
        var chosen: EnhancedBearer?
        if responsesToCommand == nil {
            var load = fixedLoad
            for bearer in bearers where bearer.isOpen && bearer.load < load {
                chosen = bearer
                load = bearer.load
            }
        }
        uses[characteristic] = Use(bearer: chosen)
        return chosen
    }

    /// Records that a procedure has ended on the fixed channel.
    ///
    /// - Parameter isAnswerAwaited: whether the channel waits for a response, so that the procedure was cancelled.
    func endedOnFixedChannel(_ call: borrowing ProcedureCall, isAnswerAwaited: Bool) {
        if isAnswerAwaited { cancelledOnFixedChannel.append(copy call) } else { ended(call) }
    }

    /// Records that the server has answered on the fixed channel, so that it has performed the cancelled calls.
    func fixedChannelAnswered() {
        if let count = responsesToCommand { responsesToCommand = count > 1 ? count - 1 : nil }
        if cancelledOnFixedChannel.isEmpty { return }
        for call in cancelledOnFixedChannel { ended(call) }
        cancelledOnFixedChannel = []
    }

    /// Records that a procedure has ended.
    func ended(_ call: borrowing ProcedureCall) {
        guard let characteristic = call.characteristic else {
            for characteristic in call.characteristics { endUse(of: characteristic) }
            return
        }
        endUse(of: characteristic)
    }

    private func endUse(of characteristic: AttributeHandle) {
        guard let use = uses[characteristic] else { return }
        uses[characteristic]?.count -= 1
        if use.count == 1 { uses[characteristic] = nil }
    }

    /// Whether an enhanced bearer has a procedure of a characteristic, so that a command must wait.
    func hasProcedure(of characteristic: AttributeHandle) -> Bool {
        uses[characteristic]?.bearer != nil
    }

    /// Whether a procedure of several characteristics must wait.
    func mustWait(_ call: borrowing ProcedureCall) -> Bool {
        call.characteristics.contains { hasProcedure(of: $0) }
    }

    /// Records that a write without response was sent on the fixed channel.
    ///
    /// - Parameter isRequestInFlight: whether the server has not answered an earlier request.
    func commandWasSent(isRequestInFlight: Bool) {
        responsesToCommand = isRequestInFlight ? 2 : 1
    }

    // MARK: Opening

    /// Begins a request for channels.
    ///
    /// - Returns: the number of channels to request; 0 if there are enough, or if the client has tried often enough.
    func beginOpening() -> Int {
        let count = limit - bearers.count
        guard count > 0, attempts < EnhancedBearers.attemptLimit else {
            phase = .settled
            return 0
        }
        attempts += 1
        lackedResources = false
        phase = .opening(remaining: count)
        return count
    }

    /// Records the outcome for one of the requested channels.
    ///
    /// - Parameters:
    ///   - isOpen: whether the channel is open.
    ///   - lacksResources: whether the peer had no resources for it.
    /// - Returns: whether the request is to be repeated: the peer had no resources for any channel.
    func channelAnswered(isOpen: Bool, lacksResources: Bool) -> Bool {
        guard case .opening(let remaining) = phase else { return false }
        if isOpen { attempts = EnhancedBearers.attemptLimit }
        lackedResources = lackedResources || lacksResources
        guard remaining == 1 else {
            phase = .opening(remaining: remaining - 1)
            return false
        }
        phase = .settled
        return lackedResources && attempts < EnhancedBearers.attemptLimit && bearers.count < limit
    }
}
