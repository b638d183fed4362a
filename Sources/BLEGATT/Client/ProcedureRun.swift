import BLEATT
import BLEByteCoding
import BluetoothTypes

/// A procedure that waits, runs or has ended, whatever the type of its output.
public class ProcedureRun {
    /// Whether it yields to waiting procedures after each response.
    let isBackground: Bool
    /// Whether the client asks for more security if the server refuses a request because of insufficient security.
    /// Otherwise the procedure receives the refusal. Set it before a client accepts the run.
    package final var elevatesSecurity: Bool
    private final var isOver = false
    /// The opcode of the last request.
    private final var lastRequest: ATTOpcode?

    @usableFromInline
    init(isBackground: Bool) {
        self.isBackground = isBackground
        elevatesSecurity = !isBackground
    }

    /// Whether there is an outcome. A cancelled run has one before its response has arrived.
    public final var hasEnded: Bool { isOver }

    /// Ends the run if it has not ended, because its caller does not need the result. For a run that a client has
    /// accepted, there is ``Client/cancel(_:with:)``.
    public final func cancel() { _ = fail(.cancelled) }

    /// Each returns the opcode of the request that was written, or nil when the procedure has finished.
    @usableFromInline
    func start(fromCache services: [DiscoveredService]?, mtu: Int, into buffer: inout PacketBuffer) -> ATTOpcode? {
        nil
    }
    @usableFromInline
    func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> ATTOpcode? { nil }
    @usableFromInline
    func receive(_ error: ErrorResponse, mtu: Int, into buffer: inout PacketBuffer) -> ATTOpcode? { nil }

    /// Ends the run in an error.
    ///
    /// - Returns: false if it had ended before.
    final func fail(_ error: ClientError) -> Bool {
        guard !isOver else { return false }
        isOver = true
        setOutcome(error)
        return true
    }

    /// Ends the run in the error with which a server would refuse its request. A run that has not started writes its
    /// first request without sending it, so that the error names the right opcode.
    ///
    /// - Returns: false if it had ended before.
    final func refuse(_ error: ATTErrorCode) -> Bool {
        guard !isOver else { return false }
        var unsent = PacketBuffer()
        guard let request = lastRequest ?? start(fromCache: nil, mtu: Bearer.defaultMTU, into: &unsent) else {
            // The procedure's arguments are invalid.
            return true
        }
        return fail(.attribute(error, handle: .invalid, request: request))
    }

    @usableFromInline
    func setOutcome(_ error: ClientError) {}

    /// Records the request that the procedure has written; if there is none, the run has ended.
    final func follow(_ opcode: ATTOpcode?) -> ATTOpcode? {
        if let opcode { lastRequest = opcode } else { isOver = true }
        return opcode
    }
}

/// A procedure and its outcome.
public final class TypedProcedureRun<P: ClientProcedure>: ProcedureRun {
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    @usableFromInline
    var procedure: P

    /// Creates a run of `procedure`, for the queue of a ``Client``.
    @inlinable
    public convenience init(_ procedure: P) {
        self.init(procedure, isBackground: false)
    }

    @inlinable
    init(_ procedure: P, isBackground: Bool) {
        self.procedure = procedure
        super.init(isBackground: isBackground)
    }

    /// The outcome, once the run has ended.
    @inlinable
    public func output() throws(ClientError) -> P.Output {
        guard let outcome = procedure.outcome else { throw .cancelled }
        return try outcome.get()
    }

    // No code that runs for each packet names a type that depends on `P`: the runtime would have to look the type up.

    @usableFromInline
    override func start(
        fromCache services: [DiscoveredService]?,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ATTOpcode? {
        if let services, finish(fromCache: services) { return follow(nil) }
        return follow(procedure.advance(mtu: mtu, into: &buffer))
    }

    @inline(never)
    private func finish(fromCache services: [DiscoveredService]) -> Bool {
        guard let output = procedure.cachedOutput(from: services) else { return false }
        procedure.outcome = .success(output)
        return true
    }

    @usableFromInline
    override func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> ATTOpcode? {
        follow(procedure.advance(by: response, mtu: mtu, into: &buffer))
    }

    @usableFromInline
    override func receive(_ error: ErrorResponse, mtu: Int, into buffer: inout PacketBuffer) -> ATTOpcode? {
        follow(procedure.advance(by: error, mtu: mtu, into: &buffer))
    }

    @usableFromInline
    override func setOutcome(_ error: ClientError) {
        procedure.end(error)
    }
}
