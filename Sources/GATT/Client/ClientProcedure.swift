import ATT
import BluetoothTypes
import ByteCoding

/// What a procedure does next.
public enum ClientStep<Output: Sendable> {
    /// A request with this opcode has been written; its response comes next.
    case send(Opcode)
    case finished(Result<Output, ClientError>)
}

/// One GATT sub-procedure of a client (Vol 3, Part G, 4): a state machine that writes requests and takes responses.
///
/// A procedure is started once and then given each response to what it wrote, until it finishes. Whatever a server
/// answers, it finishes: each response must bring it forward.
public protocol ClientProcedure: Sendable {
    associatedtype Output: Sendable

    /// Takes what is known for certain of the server's database, before the procedure starts.
    ///
    /// - Returns: the outcome, where the procedure need not ask the server at all.
    mutating func recall(from services: [DiscoveredService]) -> Output?

    /// Writes the first request.
    mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Output>

    /// Takes the response to the last request, whose opcode is the right one.
    mutating func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Output>

    /// Takes an Error Response to the last request.
    mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<Output>

    /// What came of it, where a ``ProcedureRun`` runs it: kept here, the run need not know its type.
    var outcome: Result<Output, ClientError>? { get set }

    // The same three, as a run calls them: each returns the opcode of the request that was written, or sets the outcome. A
    // procedure has them by the extension below.

    mutating func advance(mtu: Int, into buffer: inout PacketBuffer) -> Opcode?
    mutating func advance(by response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> Opcode?
    mutating func advance(by error: ErrorResponse, mtu: Int, into buffer: inout PacketBuffer) -> Opcode?
    mutating func end(_ error: ClientError)
}

extension ClientProcedure {
    public mutating func advance(mtu: Int, into buffer: inout PacketBuffer) -> Opcode? {
        follow(start(mtu: mtu, into: &buffer))
    }

    public mutating func advance(
        by response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> Opcode? {
        follow(receive(response, mtu: mtu, into: &buffer))
    }

    public mutating func advance(
        by error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> Opcode? {
        follow(receive(error, mtu: mtu, into: &buffer))
    }

    private mutating func follow(_ step: ClientStep<Output>) -> Opcode? {
        switch step {
        case .send(let opcode): return opcode
        case .finished(let result):
            // Who has cancelled the procedure has had its outcome.
            if outcome == nil { outcome = result }
            return nil
        }
    }

    public mutating func end(_ error: ClientError) {
        outcome = .failure(error)
    }

    public mutating func recall(from services: [DiscoveredService]) -> Output? { nil }

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
                    request: Opcode(rawValue: error.requestOpcode) ?? .errorResponse
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
