import BLEATT
import BLEByteCoding
import BLECryptography
import BLEGATT
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

private let peer = bondedPeer

@Suite("Signed writes")
struct SignedWriteTests {
    private static let key: UInt128 = 0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10

    private func signed(_ message: [UInt8], _ counter: UInt32, key: UInt128 = key) -> [UInt8] {
        message + Toolbox(SwiftCryptography()).signature(of: message, counter: counter, key: key)
    }

    @Test("A signed write is carried out once, and only with the peer's key")
    func signedWriteIsCarriedOutOnceAndOnlyWithTheKey() throws {
        let bonded = try BondedHost {
            $0.peerSigningKey = SigningKey(value: Self.key, isAuthenticated: false, nextCounter: 5)
        }
        let value = try bonded.publish([.read, .writeSigned]).valueHandle
        bonded.fixture.connect(peer: peer)
        func stored() throws -> [UInt8]? { try bonded.run { $0.value(of: value) } }
        let message = [0xD2] + value.bytes
        #expect(bonded.fixture.exchange([0x52] + value.bytes + [1]) == [])
        #expect(bonded.fixture.exchange(signed(message + [1], 4)) == [])
        #expect(bonded.fixture.exchange(signed(message + [1], 5, key: 7)) == [])
        #expect(bonded.fixture.exchange(signed(message + [1], .max)) == [])
        #expect(try stored() == [60], "unsigned, an old counter, another key, a counter after which there is none")
        #expect(bonded.fixture.exchange(signed(message + [1], 5)) == [])
        #expect(try stored() == [1])
        #expect(bonded.store.record?.bond.peerSigningKey?.nextCounter == 6)
        #expect(bonded.fixture.exchange(signed(message + [2], 9)) == [])
        #expect(try stored() == [2])
        try bonded.run { _ = $0.setValue([60], of: value) }
        #expect(bonded.fixture.exchange(signed(message + [1], 5)) == [])
        #expect(bonded.fixture.exchange(signed(message + [2], 9)) == [])
        #expect(try stored() == [60], "a replay")
    }

    @Test(
        "Signatures with the key of a bond that the policy does not accept are neither taken nor made",
        arguments: [true, false]
    )
    func keysOfWeakBondsAreNotUsed(requiresAuthentication: Bool) throws {
        let bonded = try BondedHost {
            $0.peerSigningKey = SigningKey(value: Self.key, isAuthenticated: false)
            $0.ownSigningKey = SigningKey(value: 8, isAuthenticated: false)
        }
        let value = try bonded.publish([.read, .writeSigned]).valueHandle
        bonded.fixture.connect(peer: peer)
        let link = try bonded.link()
        try bonded.run { host in
            var policy = SecurityPolicy()
            policy.requiresAuthentication = requiresAuthentication
            policy.requiresSecureConnections = !requiresAuthentication
            host.setSecurityPolicy(policy)
        }
        #expect(bonded.fixture.exchange(signed([0xD2] + value.bytes + [1], 0)) == [])
        #expect(try bonded.run { $0.value(of: value) } == [60])
        let host = bonded.fixture.host
        let error = HostError.notSupported("the policy does not accept the bond, which is too weak; pair again")
        #expect(throws: error) {
            try bonded.fixture.run { try await host.writeSigned([1], to: value, on: link) }
        }
    }

    @Test(
        "A signed write is not carried out before its counter is stored, nor if that fails",
        arguments: [true, false]
    )
    func signedWriteIsNotCarriedOutBeforeItsCounterIsStored(isSaved: Bool) throws {
        let bonded = try BondedHost { $0.peerSigningKey = SigningKey(value: Self.key, isAuthenticated: false) }
        let value = try bonded.publish([.read, .writeSigned]).valueHandle
        bonded.fixture.connect(peer: peer)
        bonded.store.withhold()
        _ = bonded.fixture.exchange(signed([0xD2] + value.bytes + [1], 0))
        #expect(try bonded.run { $0.value(of: value) } == [60])
        bonded.store.settle(isSaved)
        bonded.fixture.loop.run(for: .milliseconds(1))
        #expect(try bonded.run { $0.value(of: value) } == (isSaved ? [1] : [60]))
    }

    @Test("PDUs that a client sends after a signed write are handled after it", arguments: [true, false])
    func laterPDUsWaitForASignedWrite(isStored: Bool) throws {
        let bonded = try BondedHost(servesUnverifiedClients: true) {
            $0.peerSigningKey = SigningKey(value: Self.key, isAuthenticated: false)
        }
        let value = try bonded.publish([.read, .writeSigned]).valueHandle
        let unsigned = try bonded.publish([.read, .write]).valueHandle
        bonded.fixture.connect(peer: peer)
        func stored() throws -> [UInt8]? { try bonded.run { $0.value(of: unsigned) } }
        bonded.store.withhold()
        #expect(bonded.fixture.exchange(signed([0xD2] + value.bytes + [1], 0)) == [])
        #expect(bonded.fixture.exchange([0x0A] + value.bytes) == [])
        #expect(bonded.fixture.exchange([0x52] + unsigned.bytes + [2]) == [])
        #expect(try stored() == [60], "the command has not overtaken the signed write")
        #expect(try bonded.run { $0.inspect().heldPDUs } == 3)
        bonded.fixture.controller.forgetData()
        bonded.store.settle(isStored)
        bonded.fixture.loop.run(for: .milliseconds(1))
        #expect(bonded.sent == [[0x0B, isStored ? 1 : 60]])
        #expect(try stored() == [2])
        #expect(try bonded.run { $0.inspect().heldPDUs } == 0)
        #expect(bonded.fixture.exchange([0x12] + unsigned.bytes + [3]) == [[0x13]])
    }

    @Test("The counters of consecutive signed writes are stored together, others in their turn")
    func severalSignedWritesKeepTheirOrder() throws {
        let bonded = try BondedHost(servesUnverifiedClients: true) {
            $0.peerSigningKey = SigningKey(value: Self.key, isAuthenticated: false)
        }
        let value = try bonded.publish([.read, .writeSigned]).valueHandle
        let unsigned = try bonded.publish([.read, .write]).valueHandle
        bonded.fixture.connect(peer: peer)
        func stored() throws -> [[UInt8]?] { try bonded.run { [$0.value(of: value), $0.value(of: unsigned)] } }
        func nextCounter() -> UInt32? { bonded.store.record?.bond.peerSigningKey?.nextCounter }
        bonded.store.withhold()
        let message = [0xD2] + value.bytes
        #expect(bonded.fixture.exchange(signed(message + [1], 0)) == [])
        #expect(bonded.fixture.exchange(signed(message + [2], 1)) == [])
        #expect(bonded.fixture.exchange([0x52] + unsigned.bytes + [3]) == [])
        #expect(bonded.fixture.exchange(signed(message + [4], 2)) == [])
        #expect(bonded.fixture.exchange([0x0A] + value.bytes) == [])
        #expect(nextCounter() == 2)
        bonded.store.settle(true)
        bonded.fixture.loop.run(for: .milliseconds(1))
        #expect(try stored() == [[2], [3]])
        #expect(nextCounter() == 3)
        bonded.fixture.controller.forgetData()
        bonded.store.settle(true)
        bonded.fixture.loop.run(for: .milliseconds(1))
        #expect(try stored() == [[4], [3]])
        #expect(bonded.sent == [[0x0B, 4]])
    }

    @Test("A bounded number of PDUs waits for a signed write; commands beyond it are dropped")
    func heldPDUsAreBounded() throws {
        let bonded = try BondedHost(servesUnverifiedClients: true) {
            $0.peerSigningKey = SigningKey(value: Self.key, isAuthenticated: false)
        }
        let value = try bonded.publish([.read, .writeSigned]).valueHandle
        let unsigned = try bonded.publish([.read, .write]).valueHandle
        bonded.fixture.connect(peer: peer)
        bonded.store.withhold()
        for counter in 0..<UInt32(70) {
            #expect(bonded.fixture.exchange(signed([0xD2] + value.bytes + [200], counter)) == [])
        }
        #expect(try bonded.run { $0.inspect().heldPDUs } == 64)
        for number in 0..<UInt8(100) {
            #expect(bonded.fixture.exchange([0x52] + unsigned.bytes + [number]) == [])
        }
        #expect(bonded.fixture.exchange([0x0A] + unsigned.bytes) == [])
        // Only one request is outstanding at a time.
        #expect(bonded.fixture.exchange([0x0A] + unsigned.bytes) == [])
        #expect(try bonded.run { $0.inspect().heldPDUs } == 129)
        bonded.fixture.controller.forgetData()
        bonded.store.settle(true)
        bonded.fixture.loop.run(for: .milliseconds(1))
        #expect(bonded.sent == [[0x0B, 63]])
        #expect(try bonded.run { $0.inspect().heldPDUs } == 0)
    }

    @Test("PDUs behind a signed write have the security of the link at their arrival")
    func heldPDUsAreNotCoveredByLaterEncryption() throws {
        let bonded = try BondedHost { $0.peerSigningKey = SigningKey(value: Self.key, isAuthenticated: false) }
        let value = try bonded.publish([.read, .writeSigned]).valueHandle
        let encrypted = try bonded.publish([.read, .writeEncrypted]).valueHandle
        bonded.fixture.connect(peer: peer)
        bonded.store.withhold()
        #expect(bonded.fixture.exchange(signed([0xD2] + value.bytes + [1], 0)) == [])
        #expect(bonded.fixture.exchange([0x52] + encrypted.bytes + [2]) == [])
        #expect(bonded.fixture.exchange([0x12] + encrypted.bytes + [3]) == [])
        try bonded.run { $0.setEncrypted(true) }
        // These arrive on the encrypted link.
        #expect(bonded.fixture.exchange([0x52] + encrypted.bytes + [4]) == [])
        bonded.fixture.controller.forgetData()
        bonded.store.settle(true)
        bonded.fixture.loop.run(for: .milliseconds(1))
        #expect(bonded.sent.map { Array($0.prefix(4)) } == [[0x01, 0x12] + encrypted.bytes])
        #expect(try bonded.run { [$0.value(of: value), $0.value(of: encrypted)] } == [[1], [4]])
        #expect(bonded.fixture.exchange([0x12] + encrypted.bytes + [5]) == [[0x13]])
    }

    @Test("Of the PDUs that wait when another device has paired, commands are dropped and the request gets an error")
    func heldPDUsOfAForgottenClient() throws {
        let bonded = try BondedHost(servesUnverifiedClients: true) {
            $0.peerSigningKey = SigningKey(value: Self.key, isAuthenticated: false)
        }
        let value = try bonded.publish([.read, .writeSigned]).valueHandle
        let unsigned = try bonded.publish([.read, .write]).valueHandle
        bonded.fixture.connect(peer: peer)
        bonded.store.withhold()
        #expect(bonded.fixture.exchange(signed([0xD2] + value.bytes + [1], 0)) == [])
        #expect(bonded.fixture.exchange([0x52] + unsigned.bytes + [2]) == [])
        #expect(bonded.fixture.exchange([0x0A] + value.bytes) == [])
        let link = try bonded.link()
        try bonded.run { host in
            guard let link = host.links[link] else { return }
            link.att.forgetPeer()
            host.performServerEffects(of: link)
        }
        #expect(try bonded.run { $0.inspect().heldPDUs } == 2)
        bonded.fixture.controller.forgetData()
        bonded.store.settle(true)
        bonded.fixture.loop.run(for: .milliseconds(1))
        #expect(bonded.sent == [[0x01, 0x0A, 0, 0, 0x0E]])
        #expect(try bonded.run { [$0.value(of: value), $0.value(of: unsigned)] } == [[1], [60]])
        #expect(bonded.fixture.exchange([0x0A] + value.bytes) == [[0x0B, 1]])
    }

    @Test("PDUs that wait for a signed write are dropped when the link ends")
    func heldPDUsEndWithTheLink() throws {
        let bonded = try BondedHost(servesUnverifiedClients: true) {
            $0.peerSigningKey = SigningKey(value: Self.key, isAuthenticated: false)
        }
        let value = try bonded.publish([.read, .writeSigned]).valueHandle
        let unsigned = try bonded.publish([.read, .write]).valueHandle
        bonded.fixture.connect(peer: peer)
        bonded.store.withhold()
        _ = bonded.fixture.exchange(signed([0xD2] + value.bytes + [1], 0))
        _ = bonded.fixture.exchange([0x52] + unsigned.bytes + [2])
        bonded.disconnect()
        bonded.fixture.connect(peer: peer)
        #expect(bonded.fixture.exchange([0x0A] + value.bytes) == [[0x0B, 60]])
        bonded.store.settle(true)
        bonded.fixture.loop.run(for: .milliseconds(1))
        #expect(bonded.fixture.exchange([0x0A] + value.bytes) == [[0x0B, 60]])
    }

    @Test("A client stores counters before it signs with them, and never uses one twice")
    func clientStoresCountersBeforeItSignsWithThem() throws {
        let bonded = try BondedHost {
            $0.ownSigningKey = SigningKey(value: Self.key, isAuthenticated: true, nextCounter: 3)
        }
        bonded.fixture.connect(role: .central, peer: peer)
        _ = bonded.fixture.exchange([0x03, 0x17, 0x00])
        let link = try bonded.link()
        bonded.fixture.controller.forgetData()
        bonded.store.withhold()
        let write = bonded.fixture.start { [host = bonded.host] in
            try await host.writeSigned([7], to: 0x0021, on: link)
        }
        #expect(bonded.sent == [] && write.all.isEmpty)
        #expect(bonded.store.record?.bond.ownSigningKey?.nextCounter == 19)
        bonded.store.settle(true)
        bonded.fixture.loop.run(for: .milliseconds(1))
        let message: [UInt8] = [0xD2, 0x21, 0x00, 7]
        #expect(bonded.sent == [signed(message, 3)])
        bonded.fixture.controller.forgetData()
        try bonded.run { host in
            for _ in 0..<2 { try await host.writeSigned([7], to: 0x0021, on: link) }
        }
        #expect(bonded.sent == [signed(message, 4), signed(message, 5)])
    }

    @Test("Counters that cannot be stored are not used")
    func countersThatCannotBeStoredAreNotUsed() throws {
        let bonded = try BondedHost { $0.ownSigningKey = SigningKey(value: Self.key, isAuthenticated: true) }
        bonded.fixture.connect(role: .central, peer: peer)
        let link = try bonded.link()
        bonded.fixture.controller.forgetData()
        bonded.store.withhold()
        let write = bonded.fixture.start { [host = bonded.host] in
            try await host.writeSigned([7], to: 0x0021, on: link)
        }
        bonded.store.settle(false)
        bonded.fixture.loop.run(for: .milliseconds(1))
        #expect(throws: HostError.self) { try write.all.first?.get() }
        #expect(bonded.sent == [])
    }

    @Test("Nothing is signed on an encrypted link, or without a key")
    func nothingIsSignedOnAnEncryptedLinkOrWithoutAKey() throws {
        let bonded = try BondedHost()
        bonded.fixture.connect(role: .central, peer: peer)
        let link = try bonded.link()
        bonded.fixture.controller.forgetData()
        #expect(throws: HostError.self) {
            try bonded.run { host in
                try await host.writeSigned([7], to: 0x0021, on: link)
            }
        }
        #expect(bonded.sent == [])
        try bonded.run { host in
            host.setEncrypted(true)
            try await host.writeSigned([7], to: 0x0021, on: link)
        }
        #expect(bonded.sent == [[0x52, 0x21, 0x00, 7]])
    }
}
