import BLEByteCoding
import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// A host and a peer whose pairing a test controls, with the controllers between them.
final class Encounter {
    static let peerAddress = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)
    private static let ownAddress = DeviceAddress(0x0011_2233_4455, isRandom: false)

    let fixture: HostFixture
    let connection: ConnectionHandle = 0x0040
    var host: BluetoothHost { fixture.host }
    /// The peer's security channel. It consents to everything.
    var peer: SecurityChannel<SwiftCryptography>
    /// The PDUs of the Security Manager that the host has sent.
    var heard: [[UInt8]] = []
    /// The PDUs of the Attribute Protocol that the host has sent.
    var heardAttributePDUs: [[UInt8]] = []
    var outcome: PairingOutcome?
    /// The PDUs of the Security Manager that the peer withholds.
    var withheld: Set<CommandCode> = []
    /// The keypress notifications that the host has reported.
    var keysPressed: [KeypressNotification.Kind] = []
    /// The key with which the peer accepts encryption, if the host is the central.
    var expectedKey: LongTermKey?
    /// The address from which the peer connects.
    private var address: DeviceAddress
    private let role: BLEHCI.Role
    private var random = SeededGenerator(seed: 4711)
    private var isEncrypted = false

    /// - Parameter role: the role of the host.
    init(
        _ role: BLEHCI.Role,
        bond: Bond? = nil,
        address: DeviceAddress = Encounter.peerAddress,
        identity: LocalIdentity = LocalIdentity(address: Encounter.peerAddress, resolvingKey: nil),
        meets: Bool = true,
        usesExtendedCommands: Bool = false,
        configure: (inout BluetoothHost.Configuration) -> Void = { _ in }
    ) throws {
        self.role = role
        self.address = address
        // This controller never returns its buffers.
        fixture = HostFixture(
            profile: .init(usesExtendedCommands: usesExtendedCommands, leBuffers: (251, 255)),
            configure: configure
        )
        peer = Self.makePeer(of: role, address, identity)
        fixture.controller.override = { [connection] command in
            switch command.opcode {
            case LEEnableEncryption.opcode: ScriptedController.status(command.opcode)
            case LELongTermKeyRequestReply.opcode:
                ScriptedController.complete(
                    LELongTermKeyRequestReply.self,
                    .success(.init(connectionHandle: connection))
                )
            case LELongTermKeyRequestNegativeReply.opcode:
                ScriptedController.complete(
                    LELongTermKeyRequestNegativeReply.self,
                    .success(.init(connectionHandle: connection))
                )
            default: nil
            }
        }
        try fixture.bringUp()
        if let bond { try run { try $0.importBond(BondRecord(bond: bond)) } }
        if meets { meet() }
    }

    private static func makePeer(
        of role: BLEHCI.Role,
        _ address: DeviceAddress,
        _ identity: LocalIdentity
    ) -> SecurityChannel<SwiftCryptography> {
        SecurityChannel(
            role: role == .central ? .peripheral : .central,
            ownAddress: address,
            peerAddress: ownAddress,
            identity: identity,
            functions: SwiftCryptography()
        )
    }

    /// Makes the peer disconnect, and connect again from another address.
    ///
    /// - Parameter identity: the identity that the peer gives in a pairing; nil for its address.
    func meetAgain(_ address: DeviceAddress, identity: LocalIdentity? = nil) {
        fixture.disconnected(connection, reason: .remoteUserTerminatedConnection)
        self.address = address
        let parameters = peer.parameters
        peer = Self.makePeer(of: role, address, identity ?? LocalIdentity(address: address, resolvingKey: nil))
        peer.parameters = parameters
        isEncrypted = false
        (heard, outcome) = ([], nil)
        meet()
    }

    func meet(forgetsData: Bool = true) {
        fixture.connect(connection, role: role, peer: address, forgetsData: forgetsData)
    }

    @discardableResult
    func run<Value: Sendable>(
        _ body: @escaping @Sendable (isolated BluetoothHost) async throws -> Value
    ) throws -> Value {
        let host = host
        return try fixture.run { try await body(host) }
    }

    /// Requests security on the link without waiting for it.
    func require(
        _ required: RequiredSecurity = .encryption,
        pairsAgain: Bool = false
    ) throws -> Recorder<Result<KeyStrength, any Error>> {
        let host = host
        return fixture.start {
            let link = try #require(await host.linkIdentifiers().first)
            return try await host.secure(link, required, pairsAgain: pairsAgain)
        }
    }

    // MARK: The peer

    func send(_ pdu: [UInt8]) {
        fixture.controller.emit(HostFixture.acl(pdu, channel: 6, on: connection))
        fixture.loop.run(for: .milliseconds(1))
    }

    /// Makes the peer begin a pairing, and runs both sides until nothing more happens.
    func pair() {
        perform(peer.start(at: fixture.loop.now, random: &random))
        settle()
    }

    private func sent(on channel: UInt8) -> [[UInt8]] {
        fixture.controller.data.filter { $0.count > 9 && $0[7] == channel && $0[8] == 0 }.map { Array($0.dropFirst(9)) }
    }

    func settle() {
        while true {
            fixture.loop.run(for: .milliseconds(1))
            let pdus = sent(on: 6)
            heardAttributePDUs += sent(on: 4)
            fixture.controller.forgetData()
            let encryption = fixture.controller.commands.compactMap { $0.decode(LEEnableEncryption.self) }
            if !encryption.isEmpty { fixture.controller.forgetCommands() }
            guard !pdus.isEmpty || !encryption.isEmpty else { return }
            heard += pdus
            for pdu in pdus { perform(peer.receive(pdu.rawSpan, at: fixture.loop.now, random: &random)) }
            for command in encryption { encrypt(asAskedBy: command) }
        }
    }

    private func perform(_ steps: [PairingStep]) {
        for step in steps {
            switch step {
            case .send(let pdu):
                if let code = pdu.first.flatMap(CommandCode.init(rawValue:)), withheld.contains(code) { continue }
                send(pdu)
            case .ask, .checkPolicy: perform(peer.answer(.accept, at: fixture.loop.now, random: &random))
            case .encrypt(let key):
                guard requestKey(key) == key.value else { continue }
                encryptionChanged()
                perform(peer.encryptionChanged(to: key.strength, at: fixture.loop.now, random: &random))
            case .expectEncryption(let key): expectedKey = key
            case .completed(let outcome): self.outcome = outcome
            case .keyPressed(let kind): keysPressed.append(kind)
            case .securityRequested, .failed: break
            }
        }
    }

    // MARK: The controllers

    /// The key that the host gives its controller when the central starts encryption; nil if it answers that it has
    /// none.
    func requestKey(_ key: LongTermKey) -> UInt128? {
        fixture.controller.forgetCommands()
        fixture.controller.emit {
            LELongTermKeyRequest(
                connectionHandle: connection,
                randomNumber: key.randomNumber,
                encryptedDiversifier: key.encryptedDiversifier
            ).encodePacket(into: &$0)
        }
        fixture.loop.run(for: .milliseconds(1))
        return fixture.controller.commands.compactMap { $0.decode(LELongTermKeyRequestReply.self) }.first?.longTermKey
    }

    private func encrypt(asAskedBy command: LEEnableEncryption) {
        guard let key = expectedKey, key.value == command.longTermKey else {
            return encryptionChanged(.pinOrKeyMissing)
        }
        encryptionChanged()
        perform(peer.encryptionChanged(to: key.strength, at: fixture.loop.now, random: &random))
    }

    private func encryptionChanged(_ status: HCIErrorCode = .success) {
        let isRefreshed = isEncrypted
        if status == .success { isEncrypted = true }
        fixture.controller.emit {
            if isRefreshed {
                EncryptionKeyRefreshComplete(status: status, connectionHandle: connection).encodePacket(into: &$0)
            } else {
                EncryptionChange(
                    status: status,
                    connectionHandle: connection,
                    encryptionEnabled: EncryptionState(rawValue: status == .success ? 1 : 0)
                ).encodePacket(into: &$0)
            }
        }
        fixture.loop.run(for: .milliseconds(1))
    }
}
