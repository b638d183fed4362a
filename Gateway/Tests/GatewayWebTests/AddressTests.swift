import Testing

@testable import GatewayWeb

struct AddressTests {
    @Test(arguments: [
        ("8053", "127.0.0.1", 8053), ("0", "127.0.0.1", 0), (":8053", "::", 8053), ("0.0.0.0:80", "0.0.0.0", 80),
        ("localhost:8053", "localhost", 8053), ("[::1]:8053", "::1", 8053), ("gw.example.org:1", "gw.example.org", 1),
    ])
    func addressIsParsed(text: String, host: String, port: Int) {
        #expect(WebAddress(parsing: text) == WebAddress(host: host, port: port))
    }

    @Test(arguments: [
        "", ":", "host", "host:", "65536", "-1", "+1", "1:2:3", "[]:1", "[::1]", "a b:1", "::1:8053", "http://a:1",
    ])
    func malformedAddressIsRefused(text: String) {
        #expect(WebAddress(parsing: text) == nil)
    }

    @Test(arguments: [
        "127.0.0.1", "127.0.0.1:8053", "[::1]:8053", "[fe80::1]", "192.168.1.7:80", "localhost", "LOCALHOST:8053",
        "hall", "hall:8053", "hall.local", "hall.local.", "hall.lan:1", "hall.home.arpa", "gw.example.org:443",
    ])
    func hostOfThisMachineIsAccepted(host: String) {
        #expect(HostPolicy(names: ["gw.Example.org"]).accepts(host))
    }

    @Test(arguments: [
        "", ":80", "attacker.example", "attacker.example:8053", "127.0.0.1.attacker.example", "local.attacker.example",
        "[attacker.example]", "[::1", "[::1]x", "a.gw.example.org", ".",
    ])
    func hostOfAnotherMachineIsRefused(host: String) {
        #expect(!HostPolicy(names: ["gw.example.org"]).accepts(host))
    }
}
