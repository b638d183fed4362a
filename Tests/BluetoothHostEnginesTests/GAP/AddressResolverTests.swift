import BLECryptography
import BLESMP
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

@Suite("Resolving private addresses in the host")
struct AddressResolverTests {
    let toolbox = Toolbox(SwiftCryptography())

    private static func key(_ index: Int) -> AddressResolver.Key {
        AddressResolver.Key(
            identity: DeviceAddress(0xC000_0000_0000 + UInt64(index), isRandom: true),
            value: UInt128(index) << 64 | 0x1234_5678_9ABC_DEF0
        )
    }

    @Test("Each of a thousand keys resolves its own addresses, again from the cache")
    func eachOfAThousandKeysResolvesItsOwnAddresses() {
        var random = SeededGenerator(seed: 1)
        var resolver = AddressResolver()
        let keys = (0..<1000).map(Self.key)
        resolver.setKeys(keys)
        for key in stride(from: 0, to: keys.count, by: 37).map({ keys[$0] }) {
            let address = toolbox.resolvablePrivateAddress(irk: key.value, random: &random)
            #expect(resolver.identity(of: address) == key.identity)
            #expect(resolver.identity(of: address) == key.identity)
            #expect(resolver.address(of: key.identity, random: &random) == address)
        }
    }

    @Test("Addresses of strangers and addresses of other kinds are not resolved")
    func strangersAreNotResolved() {
        var random = SeededGenerator(seed: 1)
        var resolver = AddressResolver()
        let key = Self.key(1)
        resolver.setKeys([key])
        let address = toolbox.resolvablePrivateAddress(irk: key.value + 1, random: &random)
        #expect(resolver.identity(of: address) == nil)
        #expect(resolver.identity(of: address) == nil)
        #expect(resolver.identity(of: key.identity) == nil)
        let own = toolbox.resolvablePrivateAddress(irk: key.value, random: &random)
        #expect(resolver.identity(of: DeviceAddress(own.value, isRandom: false)) == nil)
    }

    @Test("Cached results, including failures, are discarded when the keys change")
    func cachedResultsAreDiscardedWhenTheKeysChange() {
        var random = SeededGenerator(seed: 1)
        var resolver = AddressResolver()
        let (old, new) = (Self.key(1), Self.key(2))
        let oldAddress = toolbox.resolvablePrivateAddress(irk: old.value, random: &random)
        let newAddress = toolbox.resolvablePrivateAddress(irk: new.value, random: &random)
        resolver.setKeys([old])
        #expect(resolver.identity(of: oldAddress) == old.identity)
        #expect(resolver.identity(of: newAddress) == nil)
        resolver.setKeys([new])
        #expect(resolver.identity(of: oldAddress) == nil)
        #expect(resolver.identity(of: newAddress) == new.identity)
        #expect(resolver.address(of: old.identity, random: &random) == nil)
    }

    @Test("An address that was resolved with an earlier key of the peer is not used any more")
    func addressOfAnEarlierKeyIsForgotten() throws {
        var random = SeededGenerator(seed: 1)
        var resolver = AddressResolver()
        let (old, other) = (Self.key(1), Self.key(2))
        resolver.setKeys([old, other])
        let oldAddress = toolbox.resolvablePrivateAddress(irk: old.value, random: &random)
        let otherAddress = toolbox.resolvablePrivateAddress(irk: other.value, random: &random)
        #expect(resolver.identity(of: oldAddress) == old.identity)
        #expect(resolver.identity(of: otherAddress) == other.identity)
        // The peer was reset and has paired again.
        let new = AddressResolver.Key(identity: old.identity, value: old.value + 1)
        resolver.setKeys([new, other])
        let address = try #require(resolver.address(of: old.identity, random: &random))
        #expect(toolbox.resolves(address, irk: new.value))
        #expect(resolver.identity(of: oldAddress) == nil)
        #expect(resolver.address(of: other.identity, random: &random) == otherAddress)
    }

    @Test("A key of zero resolves nothing")
    func keyOfZeroResolvesNothing() {
        var random = SeededGenerator(seed: 1)
        var resolver = AddressResolver()
        let key = AddressResolver.Key(identity: Self.key(1).identity, value: 0)
        resolver.setKeys([key])
        #expect(resolver.identity(of: toolbox.resolvablePrivateAddress(irk: 0, random: &random)) == nil)
        #expect(resolver.keys.isEmpty)
    }

    @Test("A peer whose address was never received gets an address generated with its key")
    func peerThatWasNeverReceivedGetsAnAddressByItsKey() throws {
        var random = SeededGenerator(seed: 1)
        var resolver = AddressResolver()
        let key = Self.key(7)
        resolver.setKeys([key])
        let address = try #require(resolver.address(of: key.identity, random: &random))
        #expect(toolbox.resolves(address, irk: key.value))
    }
}
