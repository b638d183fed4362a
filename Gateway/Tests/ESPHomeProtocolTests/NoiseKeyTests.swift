import ESPHomeProtocol
import Testing

struct NoiseKeyTests {
    @Test func base64FormIsReadAgain() {
        let key = NoiseKey.random()
        #expect(NoiseKey(base64: key.base64) == key)
    }

    @Test(arguments: ["", "AAAA", "not base64", String(repeating: "A", count: 44)])
    func textThatIsNotAKeyIsRefused(text: String) {
        #expect(NoiseKey(base64: text) == nil)
    }
}
