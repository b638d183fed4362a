import ATT
import BluetoothTypes
import ByteCoding
import Cryptography
import GATT
import HCI
import SMP
import Synchronization
import Testing

@testable import BluetoothHost

private let peer = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)
private let connection: ConnectionHandle = 0x0040

/// Keeps what it is told to, and says so at once or when it is let.
private final class WatchedStore: BondStore {
    private struct State {
        var kept = KeptSecurity()
        var isWithheld = false
        var waiting: [@Sendable (Bool) -> Void] = []
    }

    private let state: Mutex<State>

    init(_ bond: Bond) {
        state = Mutex(State(kept: KeptSecurity(bonds: [BondRecord(bond: bond)])))
    }

    var record: BondRecord? { state.withLock { $0.kept.bonds.first } }

    nonisolated(nonsending) func load(for publicAddress: DeviceAddress?) async -> KeptSecurity {
        state.withLock { $0.kept }
    }

    func keep(_ security: KeptSecurity, whenKept: (@Sendable (Bool) -> Void)?) {
        let isKept = state.withLock { state in
            state.kept = security
            if state.isWithheld, let whenKept { state.waiting.append(whenKept) }
            return !state.isWithheld
        }
        if isKept { whenKept?(true) }
    }

    func withhold() {
        state.withLock { $0.isWithheld = true }
    }

    /// Says of all that waits whether it is kept.
    func settle(_ isKept: Bool) {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for whenKept in waiting { whenKept(isKept) }
    }
}

extension BluetoothHost {
    /// Makes the link what it is with the bond's key.
    fileprivate func makeTrusted(_ security: LinkSecurity = LinkSecurity(isEncrypted: true, keySize: 16)) {
        guard let link = links[connection], let record = record(for: link) else { return }
        link.session.security = security
        linkBecameTrusted(link, record)
        endInput()
    }

    fileprivate func setEncrypted(_ isEncrypted: Bool) {
        links[connection]?.session.security.isEncrypted = isEncrypted
        links[connection]?.session.security.keySize = 16
    }
}

/// A host that is bonded to one peer.
private struct BondedHost {
    let fixture: HostFixture
    let store: WatchedStore
    var host: BluetoothHost { fixture.host }

    init(_ change: (inout Bond) -> Void = { _ in }) throws {
        var bond = Bond(identity: peer)
        change(&bond)
        let store = WatchedStore(bond)
        self.store = store
        // Nobody gives buffers back here.
        fixture = HostFixture(profile: .init(leBuffers: (251, 255))) { $0.bondStore = store }
        try fixture.bringUp()
    }

    /// Runs `body` on the host.
    @discardableResult
    func run<Value: Sendable>(
        _ body: @escaping @Sendable (isolated BluetoothHost) async throws -> Value
    ) throws -> Value {
        let host = host
        return try fixture.run { try await body(host) }
    }

    func makeTrusted() throws -> [[UInt8]] {
        fixture.controller.forgetData()
        try run { $0.makeTrusted() }
        return sent
    }

    /// The ATT PDUs that were sent since data were last forgotten.
    var sent: [[UInt8]] { fixture.controller.data.map { Array($0.dropFirst(9)) } }

    func disconnect() {
        fixture.controller.emit {
            DisconnectionComplete(connectionHandle: connection, reason: .remoteUserTerminatedConnection)
                .encodePacket(into: &$0)
        }
        fixture.loop.run(for: .milliseconds(1))
    }

    func link() throws -> LinkIdentifier {
        try #require(try run { $0.linkIdentifiers() }.first)
    }

    func publish(_ permissions: AttributePermissions) throws -> PublishedCharacteristic {
        let services = try run { host in
            try host.publish([
                ServiceDefinition(
                    uuid: "180D",
                    characteristics: [
                        CharacteristicDefinition(
                            uuid: "2A37",
                            properties: [.read, .write, .notify, .authenticatedSignedWrites],
                            permissions: permissions,
                            value: .stored([60])
                        )
                    ]
                )
            ])
        }
        return try #require(services.first?.characteristics.first)
    }

    func notify(_ value: [UInt8], of handle: AttributeHandle) throws -> [[UInt8]] {
        fixture.controller.forgetData()
        let link = try link()
        try run { try await $0.notify(value, of: handle, to: [link]) }
        fixture.loop.run(for: .milliseconds(1))
        return sent
    }
}

private func octets(_ handle: AttributeHandle) -> [UInt8] {
    [UInt8(truncatingIfNeeded: handle.rawValue), UInt8(truncatingIfNeeded: handle.rawValue >> 8)]
}

@Suite("Attributes of bonded peers")
struct BondedAttributesTests {
    @Test("A subscription comes back with the bond's key, and nothing is sent on a link that is not encrypted")
    func subscription() throws {
        let bonded = try BondedHost()
        let characteristic = try bonded.publish(.readEncrypted)
        let value = characteristic.valueHandle
        let descriptor = octets(try #require(characteristic.clientConfigurationHandle))
        bonded.fixture.connect(peer: peer)
        #expect(bonded.fixture.exchange([0x12] + descriptor + [1, 0]).first?.last == 0x05)
        _ = try bonded.makeTrusted()
        #expect(bonded.fixture.exchange([0x12] + descriptor + [1, 0]) == [[0x13]])
        #expect(try bonded.notify([61], of: value) == [[0x1B] + octets(value) + [61]])

        bonded.disconnect()
        bonded.fixture.connect(peer: peer)
        let subscribers = { try bonded.run { $0.subscribers(of: value, .notification).count } }
        #expect(try subscribers() == 0)
        #expect(try bonded.notify([62], of: value) == [])
        _ = try bonded.makeTrusted()
        #expect(try subscribers() == 1)
        #expect(try bonded.notify([63], of: value) == [[0x1B] + octets(value) + [63]])
        try bonded.run { $0.setEncrypted(false) }
        #expect(try bonded.notify([64], of: value) == [])
        #expect(
            bonded.store.record?.serverState?.configurations
                == [.init(handle: try #require(characteristic.clientConfigurationHandle), configuration: .notification)]
        )
    }

    @Test("What a client without a bond has configured ends with its link")
    func withoutBond() throws {
        let bonded = try BondedHost()
        let characteristic = try bonded.publish(.read)
        let other = DeviceAddress(0xC0FF_EE00_0002, isRandom: true)
        let descriptor = octets(try #require(characteristic.clientConfigurationHandle))
        bonded.fixture.connect(peer: other)
        #expect(bonded.fixture.exchange([0x12] + descriptor + [1, 0]) == [[0x13]])
        bonded.disconnect()
        bonded.fixture.connect(peer: other)
        #expect(bonded.fixture.exchange([0x0A] + descriptor) == [[0x0B, 0, 0]])
        #expect(bonded.store.record?.serverState == nil)
    }

    @Test("A client that was away while services changed is told, again until it has confirmed")
    func serviceChanged() throws {
        let bonded = try BondedHost()
        bonded.fixture.connect(peer: peer)
        _ = try bonded.makeTrusted()
        let handle = try #require(try bonded.run { $0.server.serviceChanged })
        let descriptor = octets(AttributeHandle(handle.rawValue + 1))
        #expect(bonded.fixture.exchange([0x12] + descriptor + [2, 0]) == [[0x13]])
        bonded.disconnect()
        _ = try bonded.publish(.read)
        let indication = [0x1D] + octets(handle) + [0x01, 0x00, 0xFF, 0xFF]
        for _ in 0..<2 {
            bonded.fixture.connect(peer: peer)
            #expect(bonded.sent == [], "not before it has proven who it is")
            #expect(try bonded.makeTrusted() == [indication])
            bonded.disconnect()
        }
        bonded.fixture.connect(peer: peer)
        #expect(try bonded.makeTrusted() == [indication])
        #expect(bonded.fixture.exchange([0x1E]) == [])
        bonded.disconnect()
        bonded.fixture.connect(peer: peer)
        #expect(try bonded.makeTrusted() == [])
    }

    @Test("The database of a bonded server is discovered once, over connections")
    func cache() throws {
        let bonded = try BondedHost()
        let server = GATT.Server(cmac: { _, message in
            let digest = message.reduce(into: UInt64(7)) { $0 = ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
            return Array(repeating: UInt8(truncatingIfNeeded: digest >> 24), count: 16)
        })
        _ = try server.publish([.genericAttribute, ServiceDefinition(uuid: "180F")])
        let hashRequest: [UInt8] = [0x08, 0x01, 0x00, 0xFF, 0xFF, 0x2A, 0x2B]

        bonded.fixture.connect(role: .central, peer: peer)
        let session = ServerSession(server: server)
        #expect(bonded.fixture.exchange([0x03, 0x17, 0x00]) == [], "ATT_MTU stays 23")
        let first = try serve(session, try bonded.makeTrusted(), bonded)
        #expect(first.first == hashRequest && first.count > 5)
        #expect(bonded.store.record?.clientCache?.services.map(\.uuid) == ["1801", "180F"])
        #expect(try discover(bonded) == ["1801", "180F"])

        bonded.disconnect()
        bonded.fixture.connect(role: .central, peer: peer)
        _ = bonded.fixture.exchange([0x03, 0x17, 0x00])
        let again = ServerSession(server: server)
        again.restore(session.persistentState)
        #expect(try serve(again, try bonded.makeTrusted(), bonded) == [hashRequest])
        bonded.fixture.controller.forgetData()
        #expect(try discover(bonded) == ["1801", "180F"])
        #expect(bonded.sent == [], "nothing is asked")

        // The server changes and says so.
        _ = try server.publish([ServiceDefinition(uuid: "180A")])
        let changed = try #require(server.serviceChanged)
        let confirmation = bonded.fixture.exchange([0x1D] + octets(changed) + [0x01, 0x00, 0xFF, 0xFF])
        #expect(confirmation == [[0x1E], hashRequest])
        again.serviceChangedConfirmed()
        _ = try serve(again, [hashRequest], bonded)
        #expect(try discover(bonded) == ["1801", "180F", "180A"])
    }

    /// Answers requests until there are no more; gives them all.
    private func serve(
        _ session: ServerSession,
        _ requests: [[UInt8]],
        _ bonded: BondedHost
    ) throws -> [[UInt8]] {
        var all: [[UInt8]] = []
        var waiting = requests
        while let request = waiting.first, all.count < 200 {
            all.append(request)
            var response = PacketBuffer()
            _ = session.receive(request.rawSpan, into: &response)
            waiting = bonded.fixture.exchange([UInt8](copying: response.bytes))
        }
        return all
    }

    private func discover(_ bonded: BondedHost) throws -> [BluetoothUUID] {
        let link = try bonded.link()
        return try bonded.run { try await $0.perform(DiscoverServices(), on: link) }.map(\.uuid)
    }

    @Test("A removal of a bond returns when it is on the disk")
    func removalOfABondIsDurableWhenItReturns() throws {
        let bonded = try BondedHost()
        bonded.store.withhold()
        let removal = bonded.fixture.start { [host = bonded.host] in
            guard await host.removeBond(peer) else { throw HostError.closed }
        }
        bonded.fixture.loop.run(for: .seconds(60))
        #expect(removal.all.isEmpty)
        #expect(bonded.store.record == nil)
        bonded.store.settle(true)
        bonded.fixture.loop.run(for: .milliseconds(1))
        #expect(removal.all.count == 1)
        #expect(throws: Never.self) { try removal.all.first?.get() }
    }

    @Test("The app decides whether a client may; nobody else does")
    func authorization() throws {
        let bonded = try BondedHost()
        let handle = octets(try bonded.publish([.read, .readAuthorized]).valueHandle)
        bonded.fixture.connect(peer: peer)
        #expect(bonded.fixture.exchange([0x0A] + handle) == [[0x01, 0x0A] + handle + [0x08]])
        let asked = Recorder<(LinkIdentifier, AuthorizationRequest)>()
        try bonded.run { $0.setAuthorizer { asked.append(($0, $1)) } }
        #expect(bonded.fixture.exchange([0x0A] + handle) == [])
        let (link, request) = try #require(asked.all.first)
        bonded.fixture.controller.forgetData()
        try bonded.run { $0.authorize(request.identifier, on: link, isAuthorized: true) }
        #expect(bonded.sent == [[0x0B, 60]])
        #expect(bonded.fixture.exchange([0x0A] + handle) == [[0x0B, 60]])
        #expect(asked.all.count == 1)
    }
}

@Suite("Signed writes")
struct SignedWriteTests {
    private static let key: UInt128 = 0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10

    private func signed(_ message: [UInt8], _ counter: UInt32, key: UInt128 = key) -> [UInt8] {
        message + Toolbox(SwiftCryptography()).signature(of: message, counter: counter, key: key)
    }

    @Test("A signed write is carried out once, and only with the peer's key")
    func verification() throws {
        let bonded = try BondedHost {
            $0.peerSigningKey = SigningKey(value: Self.key, isAuthenticated: false, nextCounter: 5)
        }
        let value = try bonded.publish([.read, .writeSigned]).valueHandle
        bonded.fixture.connect(peer: peer)
        func stored() throws -> [UInt8]? { try bonded.run { $0.value(of: value) } }
        let message = [0xD2] + octets(value)
        #expect(bonded.fixture.exchange([0x52] + octets(value) + [1]) == [])
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
        "Nothing is written before it is kept that the counter is used, nor where it cannot be",
        arguments: [true, false]
    )
    func keptBeforeUse(isKept: Bool) throws {
        let bonded = try BondedHost { $0.peerSigningKey = SigningKey(value: Self.key, isAuthenticated: false) }
        let value = try bonded.publish([.read, .writeSigned]).valueHandle
        bonded.fixture.connect(peer: peer)
        bonded.store.withhold()
        _ = bonded.fixture.exchange(signed([0xD2] + octets(value) + [1], 0))
        #expect(try bonded.run { $0.value(of: value) } == [60])
        bonded.store.settle(isKept)
        bonded.fixture.loop.run(for: .milliseconds(1))
        #expect(try bonded.run { $0.value(of: value) } == (isKept ? [1] : [60]))
    }

    @Test("A client signs with counters that are kept before they are used, and never twice with the same one")
    func signing() throws {
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

    @Test("Counters that cannot be kept are not signed with")
    func counterNotKept() throws {
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

    @Test("On an encrypted link nothing is signed, and without a key nothing can be")
    func otherLinks() throws {
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
