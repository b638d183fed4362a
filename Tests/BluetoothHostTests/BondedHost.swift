import BLEATT
import BLEByteCoding
import BLECryptography
import BLEGATT
import BLEHCI
import BLESMP
import BluetoothTypes
import Synchronization
import Testing

@testable import BluetoothHost

let bondedPeer = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)
private let connection: ConnectionHandle = 0x0040

/// A store in memory. A test can withhold its answers.
final class WatchedStore: BondStore {
    private struct State {
        var saved = HostSecurityState()
        var isWithheld = false
        var waiting: [@Sendable (Bool) -> Void] = []
    }

    private let state: Mutex<State>

    init(_ bond: Bond) {
        state = Mutex(State(saved: HostSecurityState(bonds: [BondRecord(bond: bond)])))
    }

    var record: BondRecord? { state.withLock { $0.saved.bonds.first } }

    nonisolated(nonsending) func load(for publicAddress: DeviceAddress?) async -> HostSecurityState {
        state.withLock { $0.saved }
    }

    func save(_ security: HostSecurityState, completion: (@Sendable (Bool) -> Void)?) {
        let isSaved = state.withLock { state in
            state.saved = security
            if state.isWithheld, let completion { state.waiting.append(completion) }
            return !state.isWithheld
        }
        if isSaved { completion?(true) }
    }

    func withhold() {
        state.withLock { $0.isWithheld = true }
    }

    /// Ends all pending saves with success or failure.
    func settle(_ isSaved: Bool) {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for completion in waiting { completion(isSaved) }
    }
}

extension BluetoothHost {
    /// Gives the link the state that it has after encryption with the bond's key.
    func verifyPeer(_ security: LinkSecurity = LinkSecurity(isEncrypted: true, keySize: 16)) {
        guard let link = links[connection], let record = record(for: link) else { return }
        link.session.security = security
        useBondedState(of: link, record)
        endInput()
    }

    func setEncrypted(_ isEncrypted: Bool) {
        links[connection]?.session.security.isEncrypted = isEncrypted
        links[connection]?.session.security.keySize = 16
    }
}

/// A host that is bonded to one peer.
struct BondedHost {
    let fixture: HostFixture
    let store: WatchedStore
    var host: BluetoothHost { fixture.host }

    init(
        servesUnverifiedClients: Bool = false,
        _ change: (inout Bond) -> Void = { _ in }
    ) throws {
        var bond = Bond(identity: bondedPeer)
        change(&bond)
        let store = WatchedStore(bond)
        self.store = store
        // This controller never returns its buffers.
        fixture = HostFixture(profile: .init(leBuffers: (251, 255))) {
            $0.bondStore = store
            $0.security.servesUnverifiedClients = servesUnverifiedClients
        }
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

    func verifyPeer() throws -> [[UInt8]] {
        fixture.controller.forgetData()
        try run { $0.verifyPeer() }
        return sent
    }

    /// The ATT PDUs that were sent since the test last discarded the data.
    var sent: [[UInt8]] { fixture.controller.data.map { Array($0.dropFirst(9)) } }

    func disconnect() {
        fixture.disconnected(connection, reason: .remoteUserTerminatedConnection)
    }

    func link() throws -> LinkIdentifier {
        try fixture.link()
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
