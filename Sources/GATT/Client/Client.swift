import ATT
import BluetoothTypes
import ByteCoding

/// Names one procedure of a client.
public struct ProcedureIdentifier: Hashable, Sendable {
    let value: UInt64
}

/// A GATT client on one bearer: procedures in a queue, one request at a time.
///
/// The owner sends what the client writes and gives it what the bearer says is a response. Completions are called from
/// within these calls.
public final class Client {
    private var queue: [ProcedureBox] = []
    private var running: ProcedureBox?
    private var lastIdentifier: UInt64 = 0
    private var isClosed = false
    /// The request in flight, kept where it may have to be sent again.
    private var request: [UInt8] = []
    private var hasElevated = false

    /// Asked when a request fails for want of security; the owner raises the link's security and calls
    /// ``securityElevated(_:)``. Without it, or where it returns false, the procedure ends in the error.
    public var elevateSecurity: ((ATT.ErrorCode) -> Bool)?

    public init() {}

    /// Whether a procedure runs or waits.
    public var isIdle: Bool { running == nil && queue.isEmpty }

    /// Queues a procedure. The owner then calls ``nextRequest(mtu:into:)`` where the bearer is free.
    @discardableResult
    public func perform<P: ClientProcedure>(
        _ procedure: P,
        completion: @escaping (Result<P.Output, ClientError>) -> Void
    ) -> ProcedureIdentifier {
        lastIdentifier += 1
        let identifier = ProcedureIdentifier(value: lastIdentifier)
        if isClosed {
            completion(.failure(.bearerClosed))
        } else {
            queue.append(TypedProcedureBox(identifier, procedure, completion))
        }
        return identifier
    }

    /// Ends a procedure: at once where it has not started; a running one when its response has come, which nobody hears.
    public func cancel(_ identifier: ProcedureIdentifier) {
        if let index = queue.firstIndex(where: { $0.identifier == identifier }) {
            queue.remove(at: index).fail(.cancelled)
        } else if let running, running.identifier == identifier {
            running.fail(.cancelled)
        }
    }

    /// Starts the next procedure, where none runs, and writes its request.
    ///
    /// - Returns: the request's opcode; nil where there is nothing to send.
    public func nextRequest(mtu: Int, into buffer: inout PacketBuffer) -> Opcode? {
        guard running == nil else { return nil }
        while !queue.isEmpty, running == nil {
            let next = queue.removeFirst()
            running = next
            hasElevated = false
            if let opcode = follow(next.start(mtu: mtu, into: &buffer), of: next, buffer) { return opcode }
        }
        return nil
    }

    /// Takes the response to the request in flight.
    ///
    /// - Returns: the opcode of a further request that was written.
    public func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> Opcode? {
        guard let running else { return nil }
        if running.isAbandoned {
            self.running = nil
            return nextRequest(mtu: mtu, into: &buffer)
        }
        let isFinished: Opcode?
        if response[checked: 0] == Opcode.errorResponse.rawValue {
            guard let error = try? ErrorResponse(decoding: response) else { return nil }
            if isForWantOfSecurity(error.error), !hasElevated, let elevateSecurity, elevateSecurity(error.error) {
                hasElevated = true
                return nil
            }
            isFinished = follow(running.receive(error, mtu: mtu, into: &buffer), of: running, buffer)
        } else {
            isFinished = follow(running.receive(response, mtu: mtu, into: &buffer), of: running, buffer)
        }
        return isFinished ?? nextRequest(mtu: mtu, into: &buffer)
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
        guard hasElevated, let running, let opcode = request.first.flatMap(Opcode.init(rawValue:)) else { return nil }
        switch result {
        case .success:
            buffer.append(request)
            return opcode
        case .failure(let error):
            let response = ErrorResponse(requestOpcode: opcode.rawValue, handle: handle, error: error)
            return follow(running.receive(response, mtu: mtu, into: &buffer), of: running, buffer)
                ?? nextRequest(mtu: mtu, into: &buffer)
        }
    }

    /// Ends all procedures: the bearer is dead or its link gone.
    public func close() {
        isClosed = true
        let all = (running.map { [$0] } ?? []) + queue
        running = nil
        queue = []
        for procedure in all { procedure.fail(.bearerClosed) }
    }

    private func follow(_ opcode: Opcode?, of procedure: ProcedureBox, _ buffer: borrowing PacketBuffer) -> Opcode? {
        guard let opcode else {
            if running === procedure { running = nil }
            return nil
        }
        if elevateSecurity != nil {
            request.removeAll(keepingCapacity: true)
            request += [UInt8](copying: buffer.bytes)
        }
        return opcode
    }

    private func isForWantOfSecurity(_ error: ATT.ErrorCode) -> Bool {
        error == .insufficientAuthentication || error == .insufficientEncryption
    }
}

/// A procedure whose output's type is not known.
private class ProcedureBox {
    let identifier: ProcedureIdentifier
    /// Whether nobody waits for the outcome any more.
    var isAbandoned: Bool { true }

    init(_ identifier: ProcedureIdentifier) { self.identifier = identifier }

    /// Each returns the opcode of the request that was written, or nil when the procedure has finished.
    func start(mtu: Int, into buffer: inout PacketBuffer) -> Opcode? { nil }
    func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> Opcode? { nil }
    func receive(_ error: ErrorResponse, mtu: Int, into buffer: inout PacketBuffer) -> Opcode? { nil }
    func fail(_ error: ClientError) {}
}

private final class TypedProcedureBox<P: ClientProcedure>: ProcedureBox {
    private var procedure: P
    private var completion: ((Result<P.Output, ClientError>) -> Void)?

    init(
        _ identifier: ProcedureIdentifier,
        _ procedure: P,
        _ completion: @escaping (Result<P.Output, ClientError>) -> Void
    ) {
        self.procedure = procedure
        self.completion = completion
        super.init(identifier)
    }

    override var isAbandoned: Bool { completion == nil }

    override func start(mtu: Int, into buffer: inout PacketBuffer) -> Opcode? {
        follow(procedure.start(mtu: mtu, into: &buffer))
    }

    override func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> Opcode? {
        follow(procedure.receive(response, mtu: mtu, into: &buffer))
    }

    override func receive(_ error: ErrorResponse, mtu: Int, into buffer: inout PacketBuffer) -> Opcode? {
        follow(procedure.receive(error, mtu: mtu, into: &buffer))
    }

    override func fail(_ error: ClientError) {
        let completion = completion
        self.completion = nil
        completion?(.failure(error))
    }

    private func follow(_ step: ClientStep<P.Output>) -> Opcode? {
        switch step {
        case .send(let opcode): return opcode
        case .finished(let result):
            let completion = completion
            self.completion = nil
            completion?(result)
            return nil
        }
    }
}
