import ATT
import ByteCoding

/// A procedure that waits, runs or has ended, whatever the type of its output.
public class ProcedureRun {
    /// Whether it gives way to those that wait, after each response.
    let isBackground: Bool
    private enum Phase {
        case open(onEnd: (() -> Void)?)
        case ended
    }

    private var phase = Phase.open(onEnd: nil)

    @usableFromInline
    init(isBackground: Bool) {
        self.isBackground = isBackground
    }

    /// Whether there is an outcome; a run that was cancelled has one before its response has come.
    public final var hasEnded: Bool {
        if case .ended = phase { true } else { false }
    }

    /// Has `action` called once, when the run has ended.
    ///
    /// - Precondition: it has not.
    public final func whenEnded(_ action: @escaping () -> Void) {
        assert(!hasEnded)
        phase = .open(onEnd: action)
    }

    /// Ends the run if it has not ended: its caller does not want the result.
    public final func cancel() { fail(.cancelled) }

    /// Each returns the opcode of the request that was written, or nil when the procedure has finished.
    @usableFromInline
    func start(recalling services: [DiscoveredService]?, mtu: Int, into buffer: inout PacketBuffer) -> Opcode? { nil }
    @usableFromInline
    func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> Opcode? { nil }
    @usableFromInline
    func receive(_ error: ErrorResponse, mtu: Int, into buffer: inout PacketBuffer) -> Opcode? { nil }
    @usableFromInline
    func fail(_ error: ClientError) {}

    /// Tells who waits that there is an outcome, where the procedure has written no other request.
    @usableFromInline
    final func follow(_ opcode: Opcode?) -> Opcode? {
        if opcode == nil { end() }
        return opcode
    }

    @usableFromInline
    final func end() {
        var before = Phase.ended
        swap(&before, &phase)
        guard case .open(let onEnd) = before else { return }
        onEnd?()
        tell()
    }

    @usableFromInline
    func tell() {}
}

/// A procedure with what came of it.
public final class TypedProcedureRun<P: ClientProcedure>: ProcedureRun {
    @usableFromInline
    var procedure: P
    @usableFromInline
    var completion: ((Result<P.Output, ClientError>) -> Void)?

    @inlinable
    public convenience init(_ procedure: P) {
        self.init(procedure, isBackground: false, completion: nil)
    }

    @inlinable
    init(_ procedure: P, isBackground: Bool = false, completion: ((Result<P.Output, ClientError>) -> Void)?) {
        self.procedure = procedure
        self.completion = completion
        super.init(isBackground: isBackground)
    }

    /// What came of it, once it has ended.
    @inlinable
    public func output() throws(ClientError) -> P.Output {
        guard let outcome = procedure.outcome else { throw .cancelled }
        return try outcome.get()
    }

    // What is done for each packet names no type that depends on the procedure's: the runtime would have to look that up.

    @usableFromInline
    override func start(
        recalling services: [DiscoveredService]?,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> Opcode? {
        if let services, recall(from: services) { return follow(nil) }
        return follow(procedure.advance(mtu: mtu, into: &buffer))
    }

    @inline(never)
    private func recall(from services: [DiscoveredService]) -> Bool {
        guard let output = procedure.recall(from: services) else { return false }
        procedure.outcome = .success(output)
        return true
    }

    @usableFromInline
    override func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> Opcode? {
        follow(procedure.advance(by: response, mtu: mtu, into: &buffer))
    }

    @usableFromInline
    override func receive(_ error: ErrorResponse, mtu: Int, into buffer: inout PacketBuffer) -> Opcode? {
        follow(procedure.advance(by: error, mtu: mtu, into: &buffer))
    }

    @usableFromInline
    override func fail(_ error: ClientError) {
        guard !hasEnded else { return }
        procedure.end(error)
        end()
    }

    @usableFromInline
    override func tell() {
        if completion != nil { complete() }
    }

    @inline(never)
    private func complete() {
        guard let completion, let outcome = procedure.outcome else { return }
        self.completion = nil
        completion(outcome)
    }
}
