import ESPHomeProtocol
import GatewayMQTT

@testable import GatewayWeb

/// Reads each step of a script as a text of the settings: the address of a broker, the address of the web server, and a
/// key. A text that was read is written so that it reads as the same. It is also read as the Host field of a request.
enum SettingFuzzing {
    private static let hosts = HostPolicy(names: ["gw.example.org"])

    static func run(_ script: FuzzScript) {
        for step in script.steps { check(String(decoding: step.octets, as: UTF8.self)) }
    }

    private static func check(_ text: String) {
        if let broker = BrokerAddress(parsing: text) {
            require(BrokerAddress(parsing: broker.description) == broker, "\(broker) is read as another broker")
            require((1...65_535).contains(broker.port), "the port \(broker.port)")
        }
        if let address = WebAddress(parsing: text) {
            require(WebAddress(parsing: address.description) == address, "\(address) is read as another address")
            require((0...65_535).contains(address.port), "the port \(address.port)")
        }
        if let key = NoiseKey(base64: text) {
            require(NoiseKey(base64: key.base64) == key, "a key is read as another one")
            require(!"\(key)".contains(key.base64), "the description of a key reveals it")
        }
        let isAccepted = hosts.accepts(text)
        // The names of hosts have no case. In other alphabets, a text may have other lengths in upper case.
        guard text.utf8.allSatisfy({ $0 < 0x80 }) else { return }
        require(hosts.accepts(text.uppercased()) == isAccepted, "the host \(text) in upper case: \(!isAccepted)")
    }
}
