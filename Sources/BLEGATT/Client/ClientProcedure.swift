import BLEATT
import BLEByteCoding
import BluetoothTypes

/// The next step of a procedure.
public enum ClientStep<Output: Sendable> {
    /// A request with this opcode has been written; its response comes next.
    case send(ATTOpcode)
    /// The procedure has ended, with its output or the reason of its failure.
    case finished(Result<Output, ClientError>)
}

/// One GATT sub-procedure of a client (Vol 3, Part G, 4): a state machine that writes requests and takes responses.
///
/// The owner starts a procedure once and then passes it each response to its requests, until it finishes. The procedure
/// finishes whatever the server answers, because each response must make progress.
public protocol ClientProcedure: Sendable {
    /// The output of a successful procedure.
    associatedtype Output: Sendable

    /// Takes the validated cache of the server's database, before the procedure starts.
    ///
    /// - Returns: the outcome, if the procedure needs no request.
    mutating func cachedOutput(from services: [DiscoveredService]) -> Output?

    /// Writes the first request.
    mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Output>

    /// Takes the response to the last request; the caller has checked its opcode.
    mutating func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Output>

    /// Takes an Error Response to the last request.
    mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<Output>

    /// The outcome, if a ``ProcedureRun`` runs the procedure. It is kept here so that the run need not know its type.
    var outcome: Result<Output, ClientError>? { get set }

    /// Starts the procedure.
    ///
    /// - Returns: the opcode of the first request; nil if ``outcome`` is set instead.
    mutating func advance(mtu: Int, into buffer: inout PacketBuffer) -> ATTOpcode?

    /// Takes the response to the last request.
    ///
    /// - Returns: the opcode of the next request; nil if ``outcome`` is set instead.
    mutating func advance(by response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> ATTOpcode?

    /// Takes an Error Response to the last request.
    ///
    /// - Returns: the opcode of the next request; nil if ``outcome`` is set instead.
    mutating func advance(by error: ErrorResponse, mtu: Int, into buffer: inout PacketBuffer) -> ATTOpcode?

    /// Ends the procedure: sets ``outcome`` to this error.
    mutating func end(_ error: ClientError)
}

extension ClientProcedure {
    /// Calls ``start(mtu:into:)``, and stores the outcome if the procedure needs no request.
    public mutating func advance(mtu: Int, into buffer: inout PacketBuffer) -> ATTOpcode? {
        follow(start(mtu: mtu, into: &buffer))
    }

    /// Takes the response to the last request, and stores the outcome if the procedure has ended.
    public mutating func advance(
        by response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ATTOpcode? {
        follow(receive(response, mtu: mtu, into: &buffer))
    }

    /// Takes an Error Response to the last request, and stores the outcome if the procedure has ended.
    public mutating func advance(
        by error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ATTOpcode? {
        follow(receive(error, mtu: mtu, into: &buffer))
    }

    private mutating func follow(_ step: ClientStep<Output>) -> ATTOpcode? {
        switch step {
        case .send(let opcode): return opcode
        case .finished(let result):
            // A cancelled procedure has its outcome already.
            if outcome == nil { outcome = result }
            return nil
        }
    }

    /// Sets ``outcome`` to this error.
    public mutating func end(_ error: ClientError) {
        outcome = .failure(error)
    }

    public mutating func cachedOutput(from services: [DiscoveredService]) -> Output? { nil }

    public mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<Output> {
        fail(with: error)
    }

    func fail(with error: ErrorResponse) -> ClientStep<Output> {
        .finished(
            .failure(
                .attribute(
                    error.error,
                    handle: error.handle,
                    request: ATTOpcode(rawValue: error.requestOpcode) ?? .errorResponse
                )
            )
        )
    }

    func send<PDU: ProtocolDataUnit & ~Escapable>(
        _ request: borrowing PDU,
        into buffer: inout PacketBuffer
    ) -> ClientStep<Output> {
        request.encode(into: &buffer)
        return .send(PDU.opcode)
    }
}
