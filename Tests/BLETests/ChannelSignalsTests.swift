import Testing

@testable import BLE

@Suite("The signals of a channel", .timeLimit(.minutes(10)))
struct ChannelSignalsTests {
    @Test("Room reported before a writer waits wakes it, although another writer has started since")
    func roomWakesEachWriter() async {
        let signals = ChannelSignals()
        let first = signals.roomCount
        signals.take(.hasRoom)
        let second = signals.roomCount
        #expect(await signals.waitForRoom(after: first) == .done)
        let waiting = Task { await signals.waitForRoom(after: second) }
        signals.take(.hasRoom)
        #expect(await waiting.value == .done)
    }
}
