import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes
import DequeModule

/// The Attribute Protocol on one link.
///
/// ## Overview
///
/// The router decides which part a received PDU is for: this host's client, its server, or the app that subscribed to a
/// value. It holds the calls of apps in their order (``OutboundLanes``) and decides which call may leave. It writes
/// PDUs into the caller's buffer. It sends nothing, calls no closure, and knows neither keys nor time: the caller
/// passes what a method needs to know.
///
/// ## Turns
///
/// Each method changes the router, and returns what the caller does next. The client and the server session queue
/// further effects. The caller takes them before it sends the PDU:
///
/// 1. Call a method, which may write a PDU. 2. Take the effects with ``takeClientEffect(continuing:)`` or
/// ``takeServerEffect()`` until there is none, and perform each. 3. Send the PDU.
///
/// While it performs an effect, the caller may call any method. So apps can make calls from their closures.
///
/// The router is never copied.
struct ATTRouter: ~Copyable {
    /// A call that waits until the packets of the calls before it are sent.
    struct Drain {
        /// The position of the call among all calls on the link.
        let sequence: UInt64
        let call: CallToken
        /// Whether it also waits for indications that cannot be sent before earlier ones are confirmed.
        let includesIndications: Bool
        /// The number of packets that are to be sent before the call ends; nil while calls before it are not sent.
        var packetCount: Int?
    }

    let client = BLEGATT.Client()
    let session: ServerSession
    /// Why the link could not be made as secure as the server requires, while the ends of procedures are taken.
    private(set) var elevationFailure: HostError?
    /// Whether the state that is stored with the peer's bond is used: from the time at which the peer was first
    /// verified on this link.
    private(set) var usesBondedState = false
    /// Whether changes of that state are stored: the peer was verified, and nothing has ended that since. Any device
    /// may have caused other changes.
    private(set) var storesBondedState = false
    /// Whether the client's knowledge of the database has changed while that was not stored, or another device may have
    /// contributed to it.
    private var isStoredCacheOutdated = false
    /// Whether the published gate is closed: the peer has the address of a bonded device and its identity is not
    /// verified (BLESA), or this host ends the link. Stored, because each call of a client asks for it.
    private(set) var isGateClosed = false
    var subscribers = Subscribers()
    /// Whether calls that send a value to several clients do not wait for this one; see ``UpdatesInFlight``.
    var isBehind = false
    /// The peer's signed writes that are not carried out yet, and what came after them.
    var signedWrites = SignedWriteQueue()
    /// Whether the exchange of ATT_MTU has failed because the peer's identity was not verified.
    var owesMTUExchange = false
    /// Whether the client may request an exchange of ATT_MTU: none has succeeded, and none is in flight.
    var canExchangeMTU: Bool { !bearer.hasExchangedMTU }
    /// The enhanced bearers of the link; nil if this host uses none.
    let enhanced: EnhancedBearers?

    // Only the methods in the extensions change these. The host reads some, and changes the bearer only to answer with
    // unchecked bytes.
    var bearer: Bearer
    var lanes = OutboundLanes()
    /// The calls of the procedures that the client has, the oldest first.
    var procedureCalls = Deque<ProcedureCall>()
    /// The indication whose confirmation is awaited.
    var indicationInFlight: ValueCall?
    var drains: [Drain] = []
    var lastSequence: UInt64 = 0
    var isPumping = false
    /// Whether the peer's identity is being verified for calls in the client lane.
    var isVerifying = false
    /// The number of deliveries of the client's effects that have begun and not ended: more than one if they are
    /// nested.
    private var deliveries = 0

    /// - Parameters:
    ///   - offeredMTU: the longest PDU that this host takes, in bytes.
    ///   - session: the server's side of the link.
    ///   - enhancedBearerLimit: maximum number of enhanced bearers; 0 to use none.
    init(offeredMTU: Int, session: ServerSession, enhancedBearerLimit: Int = 0) {
        bearer = Bearer(offeredMTU: offeredMTU)
        self.session = session
        enhanced = enhancedBearerLimit > 0 ? EnhancedBearers(limit: enhancedBearerLimit) : nil
        client.elevatesSecurity = true
        if enhanced != nil { client.supportedFeatures.insert(.enhancedAttributeBearer) }
    }

    /// ATT_MTU in bytes.
    var mtu: Int { bearer.mtu }

    /// The deadline of the transaction that ends first, if there is one.
    var deadline: Instant? { bearer.deadline }

    // MARK: Security

    /// Takes the security that the link's security engine has published.
    mutating func securityPublished(_ snapshot: SecuritySnapshot) {
        isGateClosed = snapshot.gate != .open
        client.isHeld = isGateClosed
        session.security.isIdentityUnverified = snapshot.isIdentityUnverified
        session.security.isEncrypted = snapshot.strength != nil
        session.security.isAuthenticated = snapshot.strength?.isAuthenticated ?? false
        session.security.isSecureConnections = snapshot.strength?.isSecureConnections ?? false
        session.security.keySize = snapshot.strength?.keySize ?? 0
        session.security.hasKey = snapshot.hasKey
        session.security.isKeyTooShort = snapshot.isKeyTooShort
    }

    /// Whether the client and the session have this security.
    func hasSecurity(_ snapshot: SecuritySnapshot) -> Bool {
        let current = session.security
        return isGateClosed == (snapshot.gate != .open) && client.isHeld == isGateClosed
            && current.isIdentityUnverified == snapshot.isIdentityUnverified && current.hasKey == snapshot.hasKey
            && current.isEncrypted == (snapshot.strength != nil)
            && current.isAuthenticated == (snapshot.strength?.isAuthenticated ?? false)
            && current.isSecureConnections == (snapshot.strength?.isSecureConnections ?? false)
            && current.keySize == snapshot.strength?.keySize ?? 0 && current.isKeyTooShort == snapshot.isKeyTooShort
    }

    // MARK: Effects

    /// Takes the oldest effect of the client.
    ///
    /// No procedure starts from the first effect of a delivery until the delivery has ended. So a procedure that an
    /// app's closure submits does not overtake those that wait already.
    ///
    /// - Parameter continuing: false for the first effect of a delivery.
    /// - Returns: nil if there is none: the delivery has ended, or there is nothing to deliver.
    mutating func takeClientEffect(continuing: Bool) -> ATTEffect? {
        while let output = client.takeOutput() {
            guard let effect = effect(of: output) else { continue }
            if !continuing { deliveries += 1 }
            return effect
        }
        if continuing { deliveries -= 1 }
        return nil
    }

    private mutating func effect(of output: ClientOutput) -> ATTEffect? {
        switch output {
        case .ended(let run): takeCall(of: run).map { .ended($0) }
        // Always an effect, because a client with an output starts no procedure before the output is taken.
        case .cacheChanged(let cache): .cacheChanged(cache)
        case .securityRequired(let error): .requireSecurity(error)
        }
    }

    /// Records that the client's cache of the peer's database has changed.
    ///
    /// - Returns: whether the change is stored now. Otherwise the stored cache is outdated
    ///   (``takeIsStoredCacheOutdated()``).
    mutating func noteCacheChange() -> Bool {
        if !storesBondedState { isStoredCacheOutdated = true }
        return storesBondedState
    }

    /// Removes the call of a procedure that has ended.
    private mutating func takeCall(of run: ProcedureRun) -> ProcedureCall? {
        let call = removeCall(of: run)
        if let enhanced, let call {
            enhanced.endedOnFixedChannel(call, isAnswerAwaited: bearer.awaitedRequest != nil || client.isElevating)
        }
        return call
    }

    private mutating func removeCall(of run: ProcedureRun) -> ProcedureCall? {
        // Procedures end in the order of their calls, unless one is cancelled.
        if procedureCalls.first?.run === run { return procedureCalls.popFirst() }
        return procedureCalls.firstIndex { $0.run === run }.map { procedureCalls.remove(at: $0) }
    }

    /// Whether effects of the client are being delivered: no procedure starts.
    var isDelivering: Bool { deliveries > 0 }

    /// Takes the oldest effect of the server session.
    mutating func takeServerEffect() -> ATTEffect? {
        while let output = session.takeOutput() {
            switch output {
            case .event(let event): return .report(event)
            case .persistentStateChanged: if storesBondedState { return .keepServerState }
            }
        }
        return nil
    }

    // MARK: Security

    /// Sends the refused request again, or ends its procedure. The caller then takes the effects, calls
    /// ``elevationFailureWasTaken()`` and sends the request.
    ///
    /// - Parameters:
    ///   - failure: why the link could not be made as secure as the server requires; nil if it could.
    ///   - error: the server's refusal.
    /// - Returns: the opcode of the request that was written.
    mutating func securityElevated(
        _ failure: HostError?,
        after error: ATTErrorCode,
        into buffer: inout PacketBuffer
    ) -> ATTOpcode? {
        elevationFailure = failure
        return client.securityElevated(
            failure == nil ? .success(()) : .failure(error),
            handle: .invalid,
            mtu: bearer.mtu,
            into: &buffer
        )
    }

    /// Ends the procedure that waits for security in the server's refusal.
    ///
    /// - Returns: the opcode of the next request, which was written.
    mutating func elevationDeclined(into buffer: inout PacketBuffer) -> ATTOpcode? {
        client.elevationDeclined(mtu: bearer.mtu, into: &buffer)
    }

    /// Ends the procedures of the client, because the peer's identity could not be verified. The caller then takes the
    /// effects and calls ``elevationFailureWasTaken()``.
    mutating func refuseProcedures(_ failure: HostError) {
        elevationFailure = failure
        client.refuseProcedures(.insufficientEncryption)
    }

    /// Called after the ends of the procedures that failed for lack of security were taken.
    mutating func elevationFailureWasTaken() {
        elevationFailure = nil
    }

    /// Records that the peer is verified, and restores the server's state of the peer. The caller then stores the
    /// present state, which may have changed before.
    ///
    /// - Returns: false if that has happened on this link already, and the peer was not forgotten since.
    mutating func useBondedState(_ state: ServerSession.PersistentState?) -> Bool {
        storesBondedState = true
        guard !usesBondedState else { return false }
        usesBondedState = true
        if let state { session.restore(state) }
        return true
    }

    /// Records that the peer is not verified any more, for example because encryption has ended. Until
    /// ``useBondedState(_:)``, no change of the state is stored.
    ///
    /// Called after each input of the link's security engine, as long as the peer is not verified.
    mutating func peerIsUnverified() {
        storesBondedState = false
        // An open gate lets another device contribute to what the client is discovering.
        if !isGateClosed, client.isValidatingDatabase { isStoredCacheOutdated = true }
    }

    /// Whether the stored cache of the peer's database is to be dropped: while the peer was not verified, the client's
    /// knowledge has changed, or another device may have changed it. True once.
    mutating func takeIsStoredCacheOutdated() -> Bool {
        defer { isStoredCacheOutdated = false }
        return isStoredCacheOutdated
    }

    /// Forgets the peer that was verified on this link, because another device may have paired since.
    /// ``useBondedState(_:)`` may follow. The caller then takes the effects of the server session.
    mutating func forgetPeer() {
        usesBondedState = false
        storesBondedState = false
        isStoredCacheOutdated = false
        session.forgetClient()
        signedWrites.forgetClient()
        client.forgetDatabase()
        enhanced?.ignoreAuthorizationsOfOrphans()
    }

    // MARK: Ending

    /// Closes the client if a transaction has taken too long. The caller then takes the effects and ends the link.
    ///
    /// - Returns: whether the bearer has just died.
    mutating func advance(to now: Instant) -> Bool {
        guard bearer.advance(to: now) else { return false }
        closeClient()
        return true
    }

    /// Ends the procedures of the client: the bearer is dead or the link has ended. The caller then takes the effects.
    mutating func closeClient() {
        client.close()
    }

    /// Removes all calls, after the client was closed and its effects were taken.
    ///
    /// - Returns: the calls that were not sent, the oldest first; the indication that was not confirmed; the calls that
    ///   wait for packets to be sent.
    mutating func removeCalls() -> (unsent: [OutboundLanes.Item], unconfirmed: ValueCall?, drains: [CallToken]) {
        let waiting = drains.map(\.call)
        drains = []
        return (lanes.removeAll(), indicationInFlight.take(), waiting)
    }
}

/// What the client or the server session of a link has queued for the host.
enum ATTEffect {
    /// A procedure has ended; its run has the result.
    case ended(ProcedureCall)
    /// The server has refused a request, because the link is not secure enough.
    case requireSecurity(ATTErrorCode)
    /// The client's cache of the peer's database has changed; nil if there is none any more. See
    /// ``ATTRouter/noteCacheChange()``.
    case cacheChanged(DatabaseCache?)
    /// The peer's client did something.
    case report(BLEGATT.ServerEvent)
    /// What the server remembers of a verified peer has changed.
    case keepServerState
}
