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
}
