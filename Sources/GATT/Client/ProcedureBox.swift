import ATT
import ByteCoding

/// A procedure whose output's type is not known.
class ProcedureBox {
    let identifier: ProcedureIdentifier
    /// Whether it gives way to those that wait, after each response.
    let isBackground: Bool
    /// Whether nobody waits for the outcome any more.
    var isAbandoned: Bool { true }

    init(_ identifier: ProcedureIdentifier, isBackground: Bool) {
        self.identifier = identifier
        self.isBackground = isBackground
    }

    /// Each returns the opcode of the request that was written, or nil when the procedure has finished.
    func start(recalling services: [DiscoveredService]?, mtu: Int, into buffer: inout PacketBuffer) -> Opcode? { nil }
    func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> Opcode? { nil }
    func receive(_ error: ErrorResponse, mtu: Int, into buffer: inout PacketBuffer) -> Opcode? { nil }
    func fail(_ error: ClientError) {}
}

final class TypedProcedureBox<P: ClientProcedure>: ProcedureBox {
    private var procedure: P
    private var completion: ((Result<P.Output, ClientError>) -> Void)?

    init(
        _ identifier: ProcedureIdentifier,
        _ procedure: P,
        isBackground: Bool = false,
        _ completion: @escaping (Result<P.Output, ClientError>) -> Void
    ) {
        self.procedure = procedure
        self.completion = completion
        super.init(identifier, isBackground: isBackground)
    }

    override var isAbandoned: Bool { completion == nil }

    override func start(
        recalling services: [DiscoveredService]?,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> Opcode? {
        if let services, let output = procedure.recall(from: services) {
            return follow(.finished(.success(output)))
        }
        return follow(procedure.start(mtu: mtu, into: &buffer))
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
