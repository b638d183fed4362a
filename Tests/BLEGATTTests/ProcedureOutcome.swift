import BLEByteCoding
import BLEGATT

/// Runs a procedure against a server that `answer` simulates; nil if it has not ended after more requests than there
/// are handles.
func outcome<P: ClientProcedure>(
    of procedure: P,
    mtu: Int = 23,
    answer: ([UInt8]) -> [UInt8]
) -> Result<P.Output, ClientError>? {
    let client = Client()
    let run = client.perform(procedure)
    var buffer = PacketBuffer()
    var opcode = client.nextRequest(mtu: mtu, into: &buffer)
    var rounds = 0
    while let request = opcode, rounds < 70_000 {
        rounds += 1
        var response = answer([UInt8](copying: buffer.bytes))
        // The bearer accepts only the matching response or an Error Response.
        if response.first != 0x01 { response = [request.rawValue + 1] + response.dropFirst() }
        buffer.reset()
        opcode = client.receive(response.rawSpan, mtu: mtu, into: &buffer)
    }
    return run.outcome
}
