import Testing

@testable import GatewayMQTT

struct BrokerAddressTests {
    @Test(arguments: [
        ("mqtt://broker", "mqtt://broker:1883"), ("mqtts://broker", "mqtts://broker:8883"),
        ("mqtt://me@broker:99", "mqtt://me@broker:99"), ("mqtt://127.0.0.1/", "mqtt://127.0.0.1:1883"),
        ("mqtt://[::1]", "mqtt://[::1]:1883"), ("mqtts://me@[fe80::1]:88", "mqtts://me@[fe80::1]:88"),
    ])
    func addressIsParsed(text: String, expected: String) throws {
        let address = try #require(BrokerAddress(parsing: text))
        #expect("\(address)" == expected)
        #expect(BrokerAddress(parsing: expected) == address)
    }

    @Test(arguments: [
        "", "broker", "http://broker", "mqtt://", "mqtt://me:secret@broker", "mqtt://@broker", "mqtt://broker:0",
        "mqtt://broker:65536", "mqtt://broker:x", "mqtt://a b", "mqtt://::1", "mqtt://[::1", "mqtt://[::1]x",
        "mqtt://broker/path", "mqtt://[]",
    ])
    func otherTextIsRefused(text: String) {
        #expect(BrokerAddress(parsing: text) == nil)
    }
}
