import BLEByteCoding
import BLEGATT
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// A host with a bonded peer, on a controller that the test simulates.
final class SecurityFixture {
    static let peer = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)
    static let strength = KeyStrength(isAuthenticated: false, isSecureConnections: true, keySize: 16)
    static let key = LongTermKey(value: 0x1234_5678, strength: strength)

    let fixture: HostFixture
    var host: BluetoothHost { fixture.host }
    var controller: ScriptedController { fixture.controller }
    let handle: ConnectionHandle = 0x0040
    /// The accesses that the app has received.
    let accesses = Recorder<AccessRequest>()
    /// The events of the server role.
    let events = Recorder<String>()
    private(set) var valueHandle = AttributeHandle.invalid

    /// - Parameters:
    ///   - bond: the peer's bond; nil for none.
    ///   - hasStreams: whether the host and its controller support connected isochronous streams.
    init(
        bond: Bond? = SecurityFixture.bond(),
        usesExtendedCommands: Bool = false,
        watchesAuthenticatedPayload: Bool = false,
        hasStreams: Bool = false,
        receivesTransfers: Bool = false,
        configure: (inout BluetoothHost.Configuration) -> Void = { _ in }
    ) throws {
        fixture = HostFixture(
            profile: .init(
                usesExtendedCommands: usesExtendedCommands,
                leBuffers: (251, 255),
                watchesAuthenticatedPayload: watchesAuthenticatedPayload,
                hasStreams: hasStreams,
                receivesTransfers: receivesTransfers
            )
        ) {
            $0.requestsMTU = false
            if hasStreams { $0.hostFeatures.insert(.connectedIsochronousStreamHostSupport) }
            configure(&$0)
        }
        fixture.controller.override = { command in
            [LEEnableEncryption.opcode].contains(command.opcode) ? ScriptedController.status(command.opcode) : nil
        }
        try fixture.bringUp()
        let (accesses, events) = (accesses, events)
        valueHandle = try run { host in
            if let bond { try host.importBond(BondRecord(bond: bond)) }
            _ = host.observeServer { event in
                if case .access(_, let access) = event { events.append("\(access)") }
            }
            let definition = ServiceDefinition(
                uuid: "10C4",
                characteristics: [
                    CharacteristicDefinition(
                        uuid: "10C5",
                        properties: [.read, .write, .writeWithoutResponse, .notify],
                        permissions: [.read, .write],
                        value: .handled
                    )
                ]
            )
            return try host.publish([definition]) { _, request in accesses.append(request) }[0].characteristics[0]
                .valueHandle
        }
    }

    static func bond(_ identity: DeviceAddress = peer, strength: KeyStrength = strength) -> Bond {
        var bond = Bond(identity: identity)
        bond.centralKey = key
        bond.centralKey?.strength = strength
        bond.peripheralKey = bond.centralKey
        return bond
    }

    @discardableResult
    func run<Value: Sendable>(
        _ body: @escaping @Sendable (isolated BluetoothHost) async throws -> Value
    ) throws -> Value {
        let host = host
        return try fixture.run { try await body(host) }
    }

    /// Starts a call and runs the loop for a moment.
    func start<Value: Sendable>(
        _ body: @escaping @Sendable (BluetoothHost) async throws -> Value
    ) -> Recorder<Result<Value, any Error>> {
        let host = host
        return fixture.start { try await body(host) }
    }

    func advance(_ time: Duration) { fixture.loop.run(for: time) }

    // MARK: The peer

    /// Makes the peer connect, or the controller connect to the peer for a call that requests it.
    @discardableResult
    func connect(_ role: BLEHCI.Role, peer: DeviceAddress = peer) throws -> LinkIdentifier {
        if role == .central {
            _ = start { try await $0.connect(toAnyOf: [peer], parameters: ConnectionParameters(), timeout: nil) }
        }
        controller.forgetCommands()
        fixture.connect(handle, role: role, peer: peer)
        return try #require(try run { $0.linkIdentifiers().last })
    }

    /// Makes the peer send an ATT PDU.
    ///
    /// - Returns: the ATT PDUs that the host sent.
    func exchange(_ pdu: [UInt8]) -> [[UInt8]] { fixture.exchange(pdu, on: handle) }

    /// Makes the peer send a PDU of the Security Manager.
    ///
    /// - Returns: the Security Manager PDUs that the host sent.
    func exchangeSecurity(_ pdu: [UInt8]) -> [[UInt8]] {
        controller.forgetData()
        controller.emit(HostFixture.acl(pdu, channel: 6, on: handle))
        advance(.milliseconds(1))
        return sent(on: 6)
    }

    /// The PDUs that the host has sent on a channel since the test last discarded them.
    func sent(on channel: UInt8) -> [[UInt8]] {
        controller.data.filter { $0[7] == channel && $0[8] == 0 }.map { Array($0.dropFirst(9)) }
    }

    // MARK: The controller

    func emit(_ encode: (inout PacketBuffer) -> Void) {
        controller.emit(encode)
        advance(.milliseconds(1))
    }

    func encryptionChanged(_ status: HCIErrorCode = .success, isOn: Bool = true) {
        emit {
            EncryptionChange(
                status: status,
                connectionHandle: handle,
                encryptionEnabled: isOn && status == .success ? .on : .off
            ).encodePacket(into: &$0)
        }
    }

    /// Makes the central ask for the bond's key.
    func requestKey() {
        emit {
            LELongTermKeyRequest(connectionHandle: handle, randomNumber: 0, encryptedDiversifier: 0)
                .encodePacket(into: &$0)
        }
    }

    func disconnected(_ reason: HCIErrorCode = .remoteUserTerminatedConnection) {
        fixture.disconnected(handle, reason: reason)
    }

    func count<C: Command>(_ command: C.Type) -> Int {
        controller.opcodes.count { $0 == C.opcode }
    }
}

extension SecurityFixture {
    /// Creates a host with a bond whose cache of the peer's database has Service Changed, with the value handle 3.
    ///
    /// - Parameter cacheHash: the Database Hash of the cache; nil for none.
    convenience init(
        cacheHash: UInt128?,
        configure: (inout BluetoothHost.Configuration) -> Void = { _ in }
    ) throws {
        try self.init(configure: configure)
        let serviceChanged = DiscoveredCharacteristic(
            uuid: .serviceChanged,
            handle: 2,
            valueHandle: 3,
            endHandle: 4,
            properties: .indicate
        )
        let service = DiscoveredService(
            uuid: .genericAttributeService,
            isPrimary: true,
            handle: 1,
            endHandle: 4,
            characteristics: [serviceChanged]
        )
        var record = BondRecord(bond: SecurityFixture.bond())
        record.clientCache = DatabaseCache(hash: cacheHash, services: [service])
        try run { [record] in try $0.importBond(record) }
    }

    /// The stored cache of the peer's database.
    var storedCache: DatabaseCache? {
        get throws { try run { $0.bondRecords().first?.clientCache } }
    }
}

extension BluetoothHost {
    /// The policy of new links.
    var securityPolicy: SecurityPolicy { pairing.policy }
}
