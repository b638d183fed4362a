import ATT
import BluetoothTypes
import ByteCoding

/// A GATT client on one bearer: procedures in a queue, one request at a time.
///
/// The owner sends what the client writes and gives it what the bearer says is a response. Completions are called from
/// within these calls.
///
/// The client queues what else its owner has to know as ``ClientOutput``s. After each input the owner takes them with
/// ``takeOutput()`` until that returns nil. The inputs are ``nextRequest(mtu:into:)``, ``receive(_:mtu:into:)``,
/// ``indicationReceived(from:)``, ``securityElevated(_:handle:mtu:into:)`` and ``elevationDeclined(mtu:into:)``.
///
/// Once the server is one that this device is bonded to, and has proven it (``trust(_:)``), the client learns its whole
/// database, when nothing else is to be done, and answers discovery from it.
public final class Client {
    private var queue: [ProcedureRun] = []
    private var running: ProcedureRun?
    /// A background procedure that has given way, and its next request.
    private var suspended: (procedure: ProcedureRun, request: [UInt8])?
    private var isClosed = false
    /// The request in flight, kept where it may have to be sent again.
    private var request = PacketBuffer(capacity: 0, headroom: 0)
    private var hasElevated = false
    /// The Error Response that asks for more security, while the client waits for that.
    private var refusal: ErrorResponse?
    /// Whether the running procedure waits for the link's security to be raised.
    public private(set) var isElevating = false
    /// Whether the running procedure has prepared writes that are not executed yet.
    public private(set) var isPreparingWrite = false
    /// Whether no procedure starts: the server's identity is to be verified first. A running procedure is not stopped.
    public var isHeld = false
    var knowledge = DatabaseKnowledge.none
    private var outputs = OutputQueue<ClientOutput>()

    /// Whether the client puts out ``ClientOutput/securityRequired(_:)`` when a request fails for want of security.
    /// Otherwise the procedure ends in the error.
    public var elevatesSecurity = false

    public init() {}

    /// Whether a command must not be sent now: it would overtake a procedure that has not started or not executed its
    /// prepared writes, or a request that is repeated when the link is secure enough.
    public var isBusyForCommands: Bool { !queue.isEmpty || isPreparingWrite || isElevating }

    /// Whether no procedure runs or waits.
    public var isIdle: Bool { running == nil && suspended == nil && queue.isEmpty }

    /// Removes and returns the oldest output; nil where there is none.
    public func takeOutput() -> ClientOutput? {
        outputs.isEmpty ? nil : outputs.take()
    }

    /// Puts out that another cache is to be kept. That there is none is said once, however often the server says that its
    /// database has changed.
    func cacheChanged(_ cache: DatabaseCache?) {
        if cache == nil, case .cacheChanged(nil)? = outputs.last { return }
        outputs.append(.cacheChanged(cache))
    }

    /// Queues a procedure. The owner then calls ``nextRequest(mtu:into:)`` where the bearer is free.
    ///
    /// - Returns: names the procedure, should it be cancelled.
    @discardableResult
    public func perform<P: ClientProcedure>(
        _ procedure: P,
        completion: @escaping (Result<P.Output, ClientError>) -> Void
    ) -> ProcedureRun {
        let run = TypedProcedureRun(procedure, completion: completion)
        perform(run)
        return run
    }

    /// Queues a procedure, likewise; who waits for its end is told at once where the client is closed.
    public func perform(_ run: ProcedureRun) {
        if isClosed {
            run.fail(.bearerClosed)
        } else {
            queue.append(run)
        }
    }

    /// Queues a procedure before all others, which gives way to them once it has had its first response.
    func performInBackground<P: ClientProcedure>(
        _ procedure: P,
        completion: @escaping (Result<P.Output, ClientError>) -> Void
    ) {
        guard !isClosed else { return }
        queue.insert(TypedProcedureRun(procedure, isBackground: true, completion: completion), at: 0)
    }

    /// Ends a procedure: at once where it has not started; a running one when its response has come, which nobody hears.
    public func cancel(_ run: ProcedureRun) {
        queue.removeAll { $0 === run }
        run.cancel()
    }

    /// Starts the next procedure, where none runs, and writes its request.
    ///
    /// - Returns: the request's opcode; nil where there is nothing to send.
    public func nextRequest(mtu: Int, into buffer: inout PacketBuffer) -> Opcode? {
        guard running == nil, !isHeld else { return nil }
        while let next = Client.takeFirst(of: &queue) {
            running = next
            hasElevated = false
            let opcode = next.start(recalling: knownServices, mtu: mtu, into: &buffer)
            if let opcode = follow(opcode, of: next, buffer) { return opcode }
            // Who was told of an outcome may have begun another.
            if running != nil { return nil }
        }
        return resumeSuspended(into: &buffer)
    }

    private static func takeFirst(of queue: inout [ProcedureRun]) -> ProcedureRun? {
        // The only one, mostly: nothing is to be moved then.
        queue.count > 1 ? queue.removeFirst() : queue.popLast()
    }

    /// Takes the response to the request in flight.
    ///
    /// - Returns: the opcode of a further request that was written.
    public func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> Opcode? {
        guard let running else { return nil }
        if running.hasEnded {
            if isPreparingWrite { return cancelPreparedWrites(into: &buffer) }
            self.running = nil
            return nextRequest(mtu: mtu, into: &buffer)
        }
        let start = buffer.count
        let opcode: Opcode?
        if response[checked: 0] == Opcode.errorResponse.rawValue {
            guard let error = try? ErrorResponse(decoding: response) else { return nil }
            if isForWantOfSecurity(error.error), elevatesSecurity, !running.isBackground, !hasElevated {
                hasElevated = true
                isElevating = true
                refusal = error
                outputs.append(.securityRequired(error.error))
                return nil
            }
            if error.error == .databaseOutOfSync { outOfSync() }
            opcode = follow(running.receive(error, mtu: mtu, into: &buffer), of: running, buffer)
        } else {
            opcode = follow(running.receive(response, mtu: mtu, into: &buffer), of: running, buffer)
        }
        if opcode != nil, running.isBackground, !queue.isEmpty {
            suspended = (running, [UInt8](copying: buffer.bytes.extracting(droppingFirst: start)))
            buffer.truncate(to: start)
            self.running = nil
            return nextRequest(mtu: mtu, into: &buffer)
        }
        return opcode ?? nextRequest(mtu: mtu, into: &buffer)
    }

    /// Makes the server drop the parts that a cancelled procedure prepared. The next long write would execute them as well.
    private func cancelPreparedWrites(into buffer: inout PacketBuffer) -> Opcode {
        isPreparingWrite = false
        ExecuteWriteRequest(flags: .cancelAll).encode(into: &buffer)
        return .executeWriteRequest
    }

    private func resumeSuspended(into buffer: inout PacketBuffer) -> Opcode? {
        guard let (procedure, request) = suspended, let opcode = request.first.flatMap(Opcode.init(rawValue:)) else {
            return nil
        }
        suspended = nil
        running = procedure
        buffer.append(request)
        return opcode
    }

    /// The link's security has been raised, or not: sends the failed request again, or ends its procedure in `error`.
    ///
    /// - Returns: the opcode of the request that was written.
    public func securityElevated(
        _ result: Result<Void, ATT.ErrorCode>,
        handle: AttributeHandle,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> Opcode? {
        let request = request
        isElevating = false
        refusal = nil
        guard hasElevated, let running, let opcode = request.bytes[checked: 0].flatMap(Opcode.init(rawValue:)) else {
            return nil
        }
        if running.hasEnded {
            // It was cancelled meanwhile.
            self.running = nil
            return nextRequest(mtu: mtu, into: &buffer)
        }
        switch result {
        case .success:
            buffer.append(request.bytes)
            return opcode
        case .failure(let error):
            let response = ErrorResponse(requestOpcode: opcode.rawValue, handle: handle, error: error)
            return follow(running.receive(response, mtu: mtu, into: &buffer), of: running, buffer)
                ?? nextRequest(mtu: mtu, into: &buffer)
        }
    }

    /// The link's security cannot be raised: the procedure takes the server's refusal instead. Nothing happens where the
    /// client does not wait for it.
    ///
    /// - Returns: the opcode of the request that was written.
    public func elevationDeclined(mtu: Int, into buffer: inout PacketBuffer) -> Opcode? {
        guard isElevating, let running, let refusal = refusal.take() else { return nil }
        isElevating = false
        hasElevated = false
        if running.hasEnded {
            // It was cancelled meanwhile.
            self.running = nil
            return nextRequest(mtu: mtu, into: &buffer)
        }
        return follow(running.receive(refusal, mtu: mtu, into: &buffer), of: running, buffer)
            ?? nextRequest(mtu: mtu, into: &buffer)
    }

    /// Ends all procedures: the bearer is dead or its link gone.
    public func close() {
        isClosed = true
        let all = [running, suspended?.procedure].compactMap { $0 } + queue
        running = nil
        suspended = nil
        isElevating = false
        refusal = nil
        isPreparingWrite = false
        queue.removeAll()
        for procedure in all { procedure.fail(.bearerClosed) }
    }

    /// Ends the procedures that run or wait, because the link is not as secure as it has to be. Others may follow.
    ///
    /// The response to a request in flight is still awaited and then ignored.
    public func refuseProcedures(_ error: ATT.ErrorCode) {
        let all = [running, suspended?.procedure].compactMap { $0 } + queue
        suspended = nil
        queue.removeAll()
        for procedure in all {
            procedure.fail(.attribute(error, handle: .invalid, request: .readRequest))
        }
    }

    private func follow(_ opcode: Opcode?, of procedure: ProcedureRun, _ buffer: borrowing PacketBuffer) -> Opcode? {
        isPreparingWrite = opcode == .prepareWriteRequest
        guard let opcode else {
            if running === procedure { running = nil }
            return nil
        }
        if elevatesSecurity {
            Client.copy(buffer, into: &request)
        }
        return opcode
    }

    private static func copy(_ buffer: borrowing PacketBuffer, into request: inout PacketBuffer) {
        request.reset()
        request.append(buffer.bytes)
    }

    private func isForWantOfSecurity(_ error: ATT.ErrorCode) -> Bool {
        error == .insufficientAuthentication || error == .insufficientEncryption || error == .encryptionKeySizeTooShort
    }
}
