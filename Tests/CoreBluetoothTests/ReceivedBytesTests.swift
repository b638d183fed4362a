import Testing

@testable import CoreBluetooth

@Suite("Received bytes that the app has not read")
struct ReceivedBytesTests {
    /// Bytes that depend on their position.
    private static func octets(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
    }

    @Test("Single bytes wait together, so that they take little memory")
    func singleBytesWaitTogether() {
        let channel = ScriptedChannel()
        let pipe = ChannelPipe(channel)
        pipe.start()
        let sent = Self.octets(16384)
        for octet in sent { channel.deliver(.received([octet])) }
        #expect(pipe.state.received.pieceCount <= 16)
        var received: [UInt8] = []
        while !pipe.state.received.isEmpty { received += pipe.state.received.takeFirst() }
        #expect(received == sent)
    }

    @Test("Bytes that arrive between reads follow the earlier ones", arguments: [1, 700, 1024, 3000])
    func bytesThatArriveBetweenReadsFollowTheEarlierOnes(length: Int) {
        var waiting = ReceivedBytes()
        let sent = Self.octets(20 * length)
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 500)
        for start in stride(from: 0, to: sent.count, by: length) {
            waiting.append(Array(sent[start..<start + length]))
            let count = buffer.withUnsafeMutableBufferPointer { waiting.read(into: $0) }
            received += buffer.prefix(count)
        }
        while !waiting.isEmpty { received += waiting.takeFirst() }
        #expect(received == sent)
    }
}
