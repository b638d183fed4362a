import Testing

@testable import GatewayCore

struct NetworkPrefixTests {
    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1", true), ("192.0.2.1", "192.0.2.2", false),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true), ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false), ("::ffff:192.0.2.1", "::ffff:192.0.2.1", true),
        ("?", "?", true),
    ])
    func addressesOfOneOwnerAreEqual(first: String, second: String, areEqual: Bool) {
        #expect((NetworkPrefix(first) == NetworkPrefix(second)) == areEqual)
    }
}
