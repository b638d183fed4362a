import BLEByteCoding
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// A host with a bonded peer, on a controller with Channel Sounding.
private final class SoundingFixture {
    /// The commands that the controller supports.
    private static let commands: SupportedCommands = {
        var commands = SupportedCommands()
        for opcode in [
            ReadBDADDR.opcode, LEReadSupportedStates.opcode, LEReadFilterAcceptListSize.opcode, LEReadBufferSize.opcode,
            LESetHostFeature.opcode, LECSCreateConfig.opcode,
        ] {
            commands.insert(opcode)
        }
        return commands
    }()

    let fixture = HostFixture(profile: .init(leBuffers: (251, 255))) { $0.requestsMTU = false }
    var controller: ScriptedController { fixture.controller }
    let handle: ConnectionHandle = 0x0040
    /// The errors with which sessions have ended.
    let ends = Recorder<HostError>()

    init() throws {
        fixture.controller.override = { command in
            switch command.opcode {
            case ReadLocalSupportedCommands.opcode:
                ScriptedController.complete(
                    ReadLocalSupportedCommands.self,
                    .success(.init(supportedCommands: SoundingFixture.commands))
                )
            case LEReadLocalSupportedFeatures.opcode:
                ScriptedController.complete(
                    LEReadLocalSupportedFeatures.self,
                    .success(.init(leFeatures: [.encryption, .channelSounding]))
                )
            case LEEnableEncryption.opcode, LECSReadRemoteSupportedCapabilities.opcode:
                ScriptedController.status(command.opcode)
            default: nil
            }
        }
        try fixture.bringUp()
        try run { try $0.importBond(BondRecord(bond: SecurityFixture.bond())) }
    }

    @discardableResult
    func run<Value: Sendable>(
        _ body: @escaping @Sendable (isolated BluetoothHost) async throws -> Value
    ) throws -> Value {
        let host = fixture.host
        return try fixture.run { try await body(host) }
    }

    /// Connects to the bonded peer. The host then has the controller encrypt the link.
    func connect() throws -> LinkIdentifier {
        let host = fixture.host
        _ = fixture.start {
            try await host.connect(toAnyOf: [SecurityFixture.peer], parameters: ConnectionParameters(), timeout: nil)
        }
        controller.forgetCommands()
        fixture.connect(handle, role: .central, peer: SecurityFixture.peer)
        return try #require(try run { $0.linkIdentifiers().last })
    }

    /// Starts a session as the initiator.
    func startSession(on link: LinkIdentifier) throws {
        try run { [ends] host in
            _ = host.startChannelSounding(ChannelSoundingParameters(), on: link) { event in
                if case .ended(let error?) = event { ends.append(error) }
            }
        }
        fixture.loop.run(for: .milliseconds(1))
    }

    /// The commands of Channel Sounding that the host has sent since the test last discarded them.
    var sent: [HCIOpcode] { controller.opcodes.filter { (0x208A...0x2095).contains($0.rawValue) } }

    func encryptionChanged(_ status: HCIErrorCode = .success, isOn: Bool = true) {
        controller.emit {
            EncryptionChange(
                status: status,
                connectionHandle: handle,
                encryptionEnabled: isOn && status == .success ? .on : .off
            ).encodePacket(into: &$0)
        }
        fixture.loop.run(for: .milliseconds(1))
    }
}

@Suite("Channel Sounding with a bonded peer that is not verified")
struct UnverifiedSoundingTests {
    @Test(
        "A session begins once encryption has verified the peer, and never with a peer without the key",
        arguments: [true, false]
    )
    func sessionWaitsForTheVerification(hasKey: Bool) throws {
        let fixture = try SoundingFixture()
        let link = try fixture.connect()
        try fixture.startSession(on: link)
        #expect(fixture.sent.isEmpty && fixture.ends.all.isEmpty)
        fixture.encryptionChanged(hasKey ? .success : .pinOrKeyMissing)
        guard !hasKey else {
            #expect(fixture.sent == [LECSReadRemoteSupportedCapabilities.opcode] && fixture.ends.all.isEmpty)
            return
        }
        #expect(fixture.ends.all == [.security(.keyMissing)])
        try fixture.startSession(on: link)
        #expect(fixture.sent.isEmpty && fixture.ends.all == [.security(.keyMissing), .security(.keyMissing)])
    }

    /// Any device can begin a pairing under the peer's address, and withhold its keys after the encryption.
    @Test("The key of an incomplete pairing starts no session")
    func keyOfAnIncompletePairingStartsNoSession() throws {
        let fixture = try SoundingFixture()
        let link = try fixture.connect()
        try fixture.run { host in
            guard let link = host.links[link] else { return }
            let key = ActiveKey(strength: SecurityFixture.strength, origin: .incompletePairing)
            link.security.state = .settled(CurrentEncryption(key: key))
            host.keysChanged(of: link)
            host.endInput()
        }
        #expect(try fixture.run { $0.strength(of: link) } == SecurityFixture.strength)
        fixture.controller.forgetCommands()
        try fixture.startSession(on: link)
        #expect(fixture.sent.isEmpty && fixture.ends.all.isEmpty)
        #expect(fixture.controller.opcodes.contains(LEEnableEncryption.opcode), "the peer is to be verified")
        fixture.encryptionChanged(.pinOrKeyMissing)
        #expect(fixture.sent.isEmpty && fixture.ends.all == [.security(.keyMissing)])
    }

    @Test("A session ends at once if the encryption of its link ends, and the next one waits for the verification")
    func sessionEndsWithTheEncryption() throws {
        let fixture = try SoundingFixture()
        let link = try fixture.connect()
        fixture.encryptionChanged()
        try fixture.startSession(on: link)
        #expect(fixture.sent == [LECSReadRemoteSupportedCapabilities.opcode])
        fixture.controller.forgetCommands()
        fixture.encryptionChanged(isOn: false)
        #expect(fixture.ends.all == [.disconnected(.controller(.authenticationFailure))])
        try fixture.startSession(on: link)
        #expect(fixture.sent.isEmpty)
        fixture.encryptionChanged()
        #expect(fixture.sent == [LECSReadRemoteSupportedCapabilities.opcode] && fixture.ends.all.count == 1)
    }
}
