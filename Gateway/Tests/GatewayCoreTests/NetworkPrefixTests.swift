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

    @Test(
        arguments: [
            ([], nil),
            (["192.0.2.1", "192.0.2.2"], 0),
            (["192.0.2.1", "192.0.2.2", "192.0.2.2"], 1),
            (["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2"], 0),
            // In a network, the address with the most.
            (["fe80::1", "fe80::2", "fe80::2"], 1),
            (["fe80::1", "fe80::2", "fe80::3"], 0),
            // A machine with many addresses does not displace another network.
            (["2001:db8:1::1", "2001:db8:1::1", "2001:db8:2::1", "2001:db8:2::2", "2001:db8:2::3"], 2),
        ] as [([String], Int?)]
    )
    func oldestConnectionOfTheBusiestOriginIsDisplaced(addresses: [String], expected: Int?) {
        #expect(ConnectionOrigin.displacedIndex(among: addresses.map { ConnectionOrigin($0) }) == expected)
    }
}
