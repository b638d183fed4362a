import ATT
import BluetoothTypes
import ByteCoding
import GATT
import Testing

@Suite("Outputs of a client")
struct ClientOutputTests {
    @Test("A database that is learnt is put out, and is put out no more when Service Changed comes")
    func caches() throws {
        let conversation = try Conversation([.genericAttribute])
        conversation.trust()
        #expect(conversation.caches.count == 1 && conversation.cache?.services.count == 1)
        let handle = try #require(conversation.server.serviceChanged)
        for _ in 0..<100 { conversation.client.indicationReceived(from: handle) }
        #expect(conversation.client.takeCaches() == [nil], "said once, though the server says it a hundred times")
    }

    /// Has a read refused for want of security, with `handle` in the Error Response.
    private func makeRefused(_ client: Client) -> () -> Result<[UInt8], ClientError>? {
        let result = Recorded<Result<[UInt8], ClientError>>()
        client.perform(ReadValue(handle: 3)) { result.value = $0 }
        var buffer = PacketBuffer()
        #expect(client.nextRequest(mtu: 23, into: &buffer) == .readRequest)
        buffer.reset()
        #expect(client.receive([0x01, 0x0A, 3, 0, 0x0F].rawSpan, mtu: 23, into: &buffer) == nil)
        return { result.value }
    }

    private final class Recorded<Value> {
        var value: Value?
    }

    @Test("A refusal for want of security is put out once, and the request is sent again")
    func elevation() {
        let client = Client()
        client.elevatesSecurity = true
        let result = makeRefused(client)
        #expect(client.isElevating && client.isBusyForCommands && result() == nil)
        guard case .securityRequired(.insufficientEncryption)? = client.takeOutput() else {
            Issue.record("the owner is not asked")
            return
        }
        #expect(client.takeCaches().isEmpty)
        var buffer = PacketBuffer()
        #expect(client.securityElevated(.success(()), handle: .invalid, mtu: 23, into: &buffer) == .readRequest)
        #expect([UInt8](copying: buffer.bytes) == [0x0A, 3, 0])
        buffer.reset()
        #expect(client.receive([0x01, 0x0A, 3, 0, 0x0F].rawSpan, mtu: 23, into: &buffer) == nil)
        #expect(result() == .failure(.attribute(.insufficientEncryption, handle: 3, request: .readRequest)))
        #expect(client.takeCaches().isEmpty, "the owner is asked once")
    }

    @Test("A procedure whose elevation is declined ends in the server's refusal")
    func declinedElevation() {
        let client = Client()
        client.elevatesSecurity = true
        let result = makeRefused(client)
        var buffer = PacketBuffer()
        #expect(client.elevationDeclined(mtu: 23, into: &buffer) == nil && buffer.isEmpty)
        #expect(!client.isElevating && client.isIdle)
        #expect(result() == .failure(.attribute(.insufficientEncryption, handle: 3, request: .readRequest)))
        #expect(client.elevationDeclined(mtu: 23, into: &buffer) == nil, "nothing waits any more")
    }

    @Test("A client that is not to elevate puts nothing out and ends the procedure")
    func noElevation() {
        let client = Client()
        let result = makeRefused(client)
        #expect(client.takeCaches().isEmpty && client.isIdle)
        #expect(result() == .failure(.attribute(.insufficientEncryption, handle: 3, request: .readRequest)))
    }
}
