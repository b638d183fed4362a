import BLEATT
import BLEByteCoding
import BluetoothTypes

/// A GATT client on one bearer: procedures in a queue, one request at a time.
///
/// The owner sends what the client writes, and passes it each PDU that the bearer identifies as a response.
///
/// ## Outputs
///
/// The client does not call its owner. Besides requests it queues ``ClientOutput``s: the end of a procedure, a demand
/// for security, a change of the cache. After each call that changes the client, the owner takes the outputs with
/// ``takeOutput()`` until that returns nil. No procedure starts while there are outputs. So the owner then calls
/// ``nextRequest(mtu:into:)`` if the bearer is free:
///
/// ```swift
/// var opcode = client.receive(response, mtu: mtu, into: &buffer)
/// while let output = client.takeOutput() {
///     deliver(output)
///     if opcode == nil { opcode = client.nextRequest(mtu: mtu, into: &buffer) }
/// }
/// ```
///
/// Once the server is a bonded device and encryption has verified its identity, the owner calls ``validate(_:)``. The
/// client then validates its cache, or discovers the whole database, when it has nothing else to do. Afterwards it
/// answers discovery from its cache.
public final class Client {
    /// The procedure that starts next. Usually it is the only one that waits; then no array is changed.
    private var next: ProcedureRun?
    /// The procedures that start after ``next``; empty if there is none.
    private var later: [ProcedureRun] = []
    private var hasLater = false
    private var running: ProcedureRun?
    /// A background procedure that has given way, and its next request.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var suspended: (procedure: ProcedureRun, request: [UInt8])?
    private var hasClosed = false
    /// The request in flight, kept in case it must be sent again.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var request = PacketBuffer(capacity: 0, headroom: 0)
    private var hasElevated = false
    /// The Error Response that asks for more security, while the client waits for that.
    private var refusal: ErrorResponse?
    // Flags that each packet needs are private: the compiler then proves that accesses of them do not overlap.
    private var awaitsElevation = false
    private var preparesWrite = false
    private var holdsProcedures = false
    private var mayElevateSecurity = false
    /// Whether the running procedure has ended, and its prepared writes are cancelled once ``isHeld`` is false.
    private var isCancellationHeld = false
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var databaseState = DatabaseState.none
    /// The indications that were confirmed while nothing was known about the database.
    var earlyIndications = EarlyIndications()
    /// The values that the server has accepted from ``DatabaseCacheValidation`` on this connection, by handle.
    var acceptedWrites: [AttributeHandle: [UInt8]] = [:]
    /// The features that the client reports to a server whose database it discovers. The owner adds
    /// ``ClientSupportedFeatures/enhancedAttributeBearer`` if it opens enhanced bearers.
    public var supportedFeatures = ClientSupportedFeatures.supported
    /// The background procedure.
    private(set) var validation: TypedProcedureRun<DatabaseCacheValidation>?
    private let outputs = OutputQueue<ClientOutput>()

    /// Creates the client of a new bearer. It has no procedures and no cache.
    public init() {}

    /// Whether the client puts out ``ClientOutput/securityRequired(_:)`` when a request fails because of insufficient
    /// security. Otherwise the procedure ends in the error.
    public var elevatesSecurity: Bool {
        get { mayElevateSecurity }
        set { mayElevateSecurity = newValue }
    }

    /// Whether no procedure may start, because the server's identity must be verified first. A running procedure
    /// continues.
    public var isHeld: Bool {
        get { holdsProcedures }
        set { holdsProcedures = newValue }
    }

    /// Whether the running procedure waits until the link's security has been raised.
    public var isElevating: Bool { awaitsElevation }

    /// The server's refusal, while the running procedure waits until the link's security has been raised.
    public var refusalInElevation: ATTErrorCode? { awaitsElevation ? refusal?.error : nil }

    /// Whether the running procedure has prepared writes that are not executed yet.
    public var isPreparingWrite: Bool { preparesWrite }

    /// Whether a command must not be sent now.
    ///
    /// It would overtake a procedure that has not started, prepared writes that are not executed, or a request that the
    /// client repeats once the link is secure enough.
    public var isBusyForCommands: Bool { next != nil || preparesWrite || awaitsElevation }

    /// Whether the client is closed. Each procedure then ends at once.
    public var isClosed: Bool { hasClosed }

    /// Whether the next response is for a procedure that has ended, so that the client ignores it.
    package var ignoresNextResponse: Bool { running?.hasEnded ?? false }

    /// Whether no procedure runs or waits.
    public var isIdle: Bool { (running == nil || isCancellationHeld) && suspended == nil && next == nil }

    /// Removes and returns the oldest output; nil if there is none.
    public func takeOutput() -> ClientOutput? { outputs.take() }

    /// Queues an output with the cache to keep. Repeated outputs with nil are merged into one, however often the server
    /// reports that its database has changed.
    func cacheChanged(_ cache: DatabaseCache?) {
        if cache == nil, case .cacheChanged(nil)? = outputs.last { return }
        outputs.append(.cacheChanged(cache))
    }

    /// Queues a procedure. The owner then calls ``nextRequest(mtu:into:)`` if the bearer is free.
    ///
    /// - Returns: the run, which has the result once ``ClientOutput/ended(_:)`` names it.
    @discardableResult
    public func perform<P: ClientProcedure>(_ procedure: P) -> TypedProcedureRun<P> {
        let run = TypedProcedureRun(procedure)
        perform(run)
        return run
    }

    /// Queues a run. The run ends at once if the client is closed.
    public func perform(_ run: ProcedureRun) {
        if hasClosed {
            fail(run, .bearerClosed)
        } else if next == nil {
            next = run
        } else {
            later.append(run)
            hasLater = true
        }
    }

    /// Queues a procedure before all others. After its first response it yields to them.
    func performInBackground(_ procedure: DatabaseCacheValidation) {
        guard !hasClosed else { return }
        let run = TypedProcedureRun(procedure, isBackground: true)
        validation = run
        if let next {
            later.insert(next, at: 0)
            hasLater = true
        }
        next = run
    }

    /// Ends a procedure at once, in `error`. If its request was sent, the client still waits for the response, and
    /// ignores it.
    public func cancel(_ run: ProcedureRun, with error: ClientError = .cancelled) {
        if run === next {
            next = takeLater()
        } else {
            later.removeAll { $0 === run }
            hasLater = !later.isEmpty
        }
        if run === suspended?.procedure { suspended = nil }
        fail(run, error)
    }

    private func fail(_ run: ProcedureRun, _ error: ClientError) {
        if run.fail(error) { ended(run) }
    }

    private func ended(_ run: ProcedureRun) {
        if !run.isBackground {
            outputs.append(.ended(run))
        } else if let validation = validation.take() {
            databaseValidationEnded(validation)
        }
    }

    /// Starts the next procedure if none runs, and writes its request.
    ///
    /// - Returns: the request's opcode; nil if there is nothing to send, or if the owner must first take outputs.
    public func nextRequest(mtu: Int, into buffer: inout PacketBuffer) -> ATTOpcode? {
        guard running == nil, !holdsProcedures, outputs.isEmpty else {
            return isCancellationHeld && outputs.isEmpty ? continueAfterEndedRun(mtu: mtu, into: &buffer) : nil
        }
        while let run = next {
            next = hasLater ? takeLater() : nil
            running = run
            hasElevated = false
            let opcode = run.hasEnded ? nil : run.start(fromCache: knownServices, mtu: mtu, into: &buffer)
            if let opcode = follow(opcode, of: run, buffer) { return opcode }
            if !outputs.isEmpty { return nil }
        }
        return resumeSuspended(into: &buffer)
    }

    @inline(never)
    private func takeLater() -> ProcedureRun? {
        guard let first = later.first else { return nil }
        later.removeFirst()
        hasLater = !later.isEmpty
        return first
    }

    /// Takes the response to the request in flight.
    ///
    /// - Returns: the opcode of a further request that was written.
    public func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> ATTOpcode? {
        guard let running else { return nil }
        if running.hasEnded { return continueAfterEndedRun(mtu: mtu, into: &buffer) }
        let start = buffer.count
        let opcode: ATTOpcode?
        if response[checked: 0] == ATTOpcode.errorResponse.rawValue {
            guard let error = try? ErrorResponse(decoding: response) else { return nil }
            if error.error.asksForSecurity, mayElevateSecurity, running.elevatesSecurity, !hasElevated {
                elevate(error)
                return nil
            }
            if error.error == .databaseOutOfSync { outOfSync() }
            opcode = follow(running.receive(error, mtu: mtu, into: &buffer), of: running, buffer)
        } else {
            opcode = follow(running.receive(response, mtu: mtu, into: &buffer), of: running, buffer)
        }
        if opcode != nil, running.isBackground, next != nil {
            suspended = (running, [UInt8](copying: buffer.bytes.extracting(droppingFirst: start)))
            buffer.truncate(to: start)
            self.running = nil
            return nextRequest(mtu: mtu, into: &buffer)
        }
        return opcode ?? nextRequest(mtu: mtu, into: &buffer)
    }

    /// Takes the report that the response to the request in flight was dropped, because the server's identity is not
    /// verified. The client writes nothing before ``isHeld`` is false. ``elevatesSecurity`` must be set.
    ///
    /// A procedure waits for security as if the server had refused its request. The background procedure later sends
    /// the request again. Of a procedure that has ended, the prepared writes are cancelled later.
    public func responseWasDropped() {
        guard let running else { return }
        if running.hasEnded {
            dropEndedRun()
        } else if running.isBackground {
            suspended = (running, [UInt8](copying: request.bytes))
            self.running = nil
        } else {
            let opcode = request.bytes[checked: 0] ?? 0
            elevate(ErrorResponse(requestOpcode: opcode, handle: .invalid, error: .insufficientEncryption))
        }
    }

    /// Waits until the link's security has been raised, after this refusal.
    private func elevate(_ error: ErrorResponse) {
        hasElevated = true
        awaitsElevation = true
        refusal = error
        outputs.append(.securityRequired(error.error))
    }

    /// Removes the running procedure, which has ended, unless it has prepared writes.
    private func dropEndedRun() {
        isCancellationHeld = preparesWrite
        if !preparesWrite { running = nil }
    }

    /// Continues after the end of the running procedure. Its prepared writes are cancelled first. Otherwise the next
    /// long write would execute them too.
    private func continueAfterEndedRun(mtu: Int, into buffer: inout PacketBuffer) -> ATTOpcode? {
        dropEndedRun()
        guard isCancellationHeld else { return nextRequest(mtu: mtu, into: &buffer) }
        guard !holdsProcedures else { return nil }
        isCancellationHeld = false
        preparesWrite = false
        ExecuteWriteRequest(flags: .cancelAll).encode(into: &buffer)
        return .executeWriteRequest
    }

    private func resumeSuspended(into buffer: inout PacketBuffer) -> ATTOpcode? {
        guard let (procedure, bytes) = suspended, let opcode = bytes.first.flatMap(ATTOpcode.init(rawValue:)) else {
            return nil
        }
        suspended = nil
        running = procedure
        buffer.append(bytes)
        if mayElevateSecurity { Client.copy(buffer, into: &request) }
        return opcode
    }

    /// Takes the result of raising the link's security: sends the failed request again, or ends its procedure in
    /// `error`.
    ///
    /// - Returns: the opcode of the request that was written.
    public func securityElevated(
        _ result: Result<Void, ATTErrorCode>,
        handle: AttributeHandle,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ATTOpcode? {
        let request = request
        awaitsElevation = false
        refusal = nil
        guard hasElevated, let running, let opcode = request.bytes[checked: 0].flatMap(ATTOpcode.init(rawValue:)) else {
            return nil
        }
        // It may have been cancelled while security was raised.
        if running.hasEnded { return continueAfterEndedRun(mtu: mtu, into: &buffer) }
        switch result {
        case .success:
            buffer.append(request.bytes)
            return opcode
        case .failure(let error) where holdsProcedures: return refuse(running, error)
        case .failure(let error):
            let response = ErrorResponse(requestOpcode: opcode.rawValue, handle: handle, error: error)
            return follow(running.receive(response, mtu: mtu, into: &buffer), of: running, buffer)
                ?? nextRequest(mtu: mtu, into: &buffer)
        }
    }

    /// Takes the report that the link's security cannot be raised. The procedure receives the server's refusal. The
    /// call has no effect if the client does not wait for security.
    ///
    /// - Returns: the opcode of the request that was written.
    public func elevationDeclined(mtu: Int, into buffer: inout PacketBuffer) -> ATTOpcode? {
        guard awaitsElevation, let running, let refusal = refusal.take() else { return nil }
        awaitsElevation = false
        hasElevated = false
        // It may have been cancelled while it waited.
        if running.hasEnded { return continueAfterEndedRun(mtu: mtu, into: &buffer) }
        if holdsProcedures { return refuse(running, refusal.error) }
        return follow(running.receive(refusal, mtu: mtu, into: &buffer), of: running, buffer)
            ?? nextRequest(mtu: mtu, into: &buffer)
    }

    /// Ends the running procedure without a further request, because none may be sent.
    private func refuse(_ running: ProcedureRun, _ error: ATTErrorCode) -> ATTOpcode? {
        if running.refuse(error) { ended(running) }
        dropEndedRun()
        return nil
    }

    /// Ends all procedures, because the bearer has failed or the connection has ended.
    public func close() {
        hasClosed = true
        let all = [running, suspended?.procedure, next].compactMap { $0 } + later
        running = nil
        suspended = nil
        awaitsElevation = false
        refusal = nil
        preparesWrite = false
        isCancellationHeld = false
        removeWaiting()
        for procedure in all { fail(procedure, .bearerClosed) }
    }

    /// Ends the running procedure, because the bearer has failed, and closes the client.
    ///
    /// - Returns: the procedures that have not started, the oldest first. The owner passes them to the client of
    ///   another bearer.
    public func closeReturningWaiting() -> [ProcedureRun] {
        let waiting = ([next].compactMap { $0 } + later).filter { !$0.isBackground && !$0.hasEnded }
        removeWaiting()
        close()
        return waiting
    }

    /// Ends the procedures that run or wait, because the link is not secure enough. The client accepts further
    /// procedures.
    ///
    /// The client still waits for the response to a request in flight, and ignores it.
    public func refuseProcedures(_ error: ATTErrorCode) {
        let all = [running, suspended?.procedure, next].compactMap { $0 } + later
        suspended = nil
        removeWaiting()
        for procedure in all where procedure.refuse(error) { ended(procedure) }
    }

    private func removeWaiting() {
        next = nil
        later.removeAll()
        hasLater = false
    }

    private func follow(_ opcode: ATTOpcode?, of procedure: ProcedureRun, _ buffer: borrowing PacketBuffer)
        -> ATTOpcode?
    {
        preparesWrite = opcode == .prepareWriteRequest
        guard let opcode else {
            running = nil
            ended(procedure)
            return nil
        }
        if mayElevateSecurity { Client.copy(buffer, into: &request) }
        return opcode
    }

    private static func copy(_ buffer: borrowing PacketBuffer, into request: inout PacketBuffer) {
        request.reset()
        request.append(buffer.bytes)
    }
}
