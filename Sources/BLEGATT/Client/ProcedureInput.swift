import BLEATT
import BLEByteCoding

/// An input of a procedure: its start, a response or an error. Procedures that consist of others pass it to them.
enum ProcedureInput: ~Escapable {
    case start
    case response(RawSpan)
    case error(ErrorResponse)
}

extension ClientProcedure {
    mutating func take(
        _ input: borrowing ProcedureInput,
        _ mtu: Int,
        _ buffer: inout PacketBuffer
    ) -> ClientStep<Output> {
        switch input {
        case .start: start(mtu: mtu, into: &buffer)
        case .response(let response): receive(response, mtu: mtu, into: &buffer)
        case .error(let error): receive(error, mtu: mtu, into: &buffer)
        }
    }
}
