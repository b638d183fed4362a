import BLE
import BLEATT
import BLEGATT
import BLEHCI
import BLESMP
import BluetoothTypes
import Synchronization
import Testing

@testable import BluetoothHost

private let peerAddress = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)
/// Resolvable, with a key that the host does not have.
private let privateAddress = DeviceAddress(0x4123_4567_89AB, isRandom: true)
private let connection: ConnectionHandle = 0x0040

private let secure = KeyStrength(isAuthenticated: false, isSecureConnections: true, keySize: 16)

@Suite("Limits on pairing that a peer tries to bypass")
struct PairingLimitTests {
    private static let identity = DeviceAddress(0x0000_0000_4711, isRandom: false)

    private func encounter(
        _ configure: @escaping (inout BluetoothHost.Configuration) -> Void
    ) throws -> Encounter {
        try Encounter(
            .peripheral,
            address: privateAddress,
            identity: LocalIdentity(address: Self.identity, resolvingKey: 5)
        ) {
            $0.security.justWorks = .always
            configure(&$0)
        }
    }

    private func isServedAsEncrypted(_ encounter: Encounter) throws -> Bool? {
        try encounter.run { $0.links[connection]?.session.security.isEncrypted }
    }

    @Test("The accept list: a peer that withholds its identity is treated as unencrypted, and disconnected")
    func peerThatWithholdsItsIdentityIsDisconnected() throws {
        let encounter = try encounter { $0.security.pairingAcceptList = [DeviceAddress(0x4712, isRandom: false)] }
        encounter.withheld = [.identityInformation, .identityAddressInformation]
        let encryptions = Recorder<KeyStrength?>()
        _ = try encounter.run { host in
            host.observeSecurity { if case .encryptionChanged(_, let strength) = $0 { encryptions.append(strength) } }
        }
        encounter.pair()
        #expect(encryptions.all.count == 1 && encryptions.all[0] != nil, "the link is encrypted")
        #expect(try isServedAsEncrypted(encounter) == false)
        encounter.fixture.loop.run(for: .seconds(31))
        #expect(encounter.fixture.controller.opcodes.contains(Disconnect.opcode))
    }

    @Test("The accept list: a listed peer is treated as encrypted once it has sent its identity")
    func listedPeerIsServedOnceItHasSentItsIdentity() throws {
        let encounter = try encounter { $0.security.pairingAcceptList = [Self.identity] }
        encounter.pair()
        #expect(try isServedAsEncrypted(encounter) == true)
        #expect(try encounter.run { $0.bondRecords().map(\.bond.identity) } == [Self.identity])
    }

    @Test("The pairing window: while it is closed, a bonded peer adds no bond with another identity")
    func bondedPeerAddsNoOtherIdentityOutsideTheWindow() throws {
        let encounter = try encounter {
            $0.security.pairable = .duringWindow
            $0.security.bondReplacement = .whenConsented
            $0.pairingHandler = { _, answer in
                answer(.accept)
                return {}
            }
        }
        try encounter.run { $0.openPairingWindow(for: .seconds(10)) }
        encounter.pair()
        #expect(try encounter.run { $0.bondRecords().map(\.bond.identity) } == [Self.identity])
        try encounter.run { $0.closePairingWindow() }
        encounter.outcome = nil
        encounter.peer.identity = LocalIdentity(address: DeviceAddress(0x4712, isRandom: false), resolvingKey: 6)
        encounter.pair()
        #expect(encounter.outcome != nil, "the peer has done its part")
        #expect(try encounter.run { $0.bondRecords().map(\.bond.identity) } == [Self.identity])
        #expect(encounter.fixture.controller.opcodes.contains(Disconnect.opcode))
    }

    // MARK: A central that refuses a request of this host's client

    /// Makes the app read a value of the peer, which refuses the read.
    ///
    /// - Returns: the outcome of the read.
    private func refuseRead(
        _ error: ATTErrorCode,
        by encounter: Encounter
    ) throws -> Recorder<Result<[UInt8], any Error>> {
        let host = encounter.host
        let read = encounter.fixture.start {
            let link = try #require(await host.linkIdentifiers().first)
            return try await host.perform(ReadValue(handle: 9), on: link)
        }
        encounter.settle()
        #expect(encounter.heardAttributePDUs.last == [0x0A, 9, 0])
        encounter.fixture.controller.emit(HostFixture.acl([0x01, 0x0A, 9, 0, error.rawValue], on: connection))
        encounter.settle()
        return read
    }

    @Test("A central that refuses a read does not pair outside the pairing window", arguments: [true, false])
    func refusedReadOpensNoWindow(isNeverPairable: Bool) throws {
        let encounter = try Encounter(.peripheral) {
            $0.security.pairable = isNeverPairable ? .never : .duringWindow
            $0.security.justWorks = .always
        }
        let read = try refuseRead(.insufficientAuthentication, by: encounter)
        #expect(encounter.heard.isEmpty, "no Security Request is sent")
        #expect(throws: HostError.self) { try read.all.first?.get() }
        #expect(read.all.count == 1)
        encounter.pair()
        #expect(encounter.heard == [[0x05, 0x05]])
        #expect(encounter.outcome == nil)
        #expect(try encounter.run { $0.bondRecords().isEmpty })
    }

    @Test("A central that refuses a read pairs if peers may pair")
    func refusedReadLeadsToAPairingThatIsAllowed() throws {
        let encounter = try Encounter(.peripheral) { $0.security.justWorks = .always }
        let read = try refuseRead(.insufficientAuthentication, by: encounter)
        #expect(encounter.heard == [[0x0B, 0x09]], "a Security Request")
        encounter.pair()
        #expect(encounter.outcome != nil)
        #expect(try encounter.run { $0.bondRecords().map(\.isPrivileged) } == [false])
        #expect(encounter.heardAttributePDUs.count { $0 == [0x0A, 9, 0] } == 2)
        #expect(read.all.isEmpty)
    }

    @Test("A refused read leads to no Security Request if no app could consent to the pairing")
    func refusedReadLeadsToNoPairingThatMustFail() throws {
        let encounter = try Encounter(.peripheral)
        let read = try refuseRead(.insufficientAuthentication, by: encounter)
        #expect(encounter.heard.isEmpty)
        #expect(throws: HostError.self) { try read.all.first?.get() }
        #expect(read.all.count == 1)
        #expect(encounter.heardAttributePDUs.count { $0 == [0x0A, 9, 0] } == 1)
        #expect(try encounter.run { $0.pairing.attempts.wait(for: peerAddress, at: $0.loop.now) } == nil)
    }

    @Test("A bonded central that refuses a read outside the pairing window adds no bond with another identity")
    func refusedReadAddsNoOtherIdentityOutsideTheWindow() throws {
        let encounter = try encounter {
            $0.security.pairable = .duringWindow
            $0.security.minimumKeySizeInBytes = 7
            $0.pairingHandler = { _, answer in
                answer(.accept)
                return {}
            }
        }
        encounter.peer.parameters.minimumKeySize = 7
        encounter.peer.parameters.maximumKeySize = 7
        try encounter.run { $0.openPairingWindow(for: .seconds(10)) }
        encounter.pair()
        #expect(try encounter.run { $0.bondRecords().map(\.bond.identity) } == [Self.identity])
        try encounter.run { $0.closePairingWindow() }
        (encounter.outcome, encounter.heard) = (nil, [])
        encounter.peer.parameters = PairingParameters()
        encounter.peer.identity = LocalIdentity(address: DeviceAddress(0x4712, isRandom: false), resolvingKey: 6)
        _ = try refuseRead(.encryptionKeySizeTooShort, by: encounter)
        #expect(encounter.heard.first?.first == 0x0B, "a Security Request: the peer is verified")
        encounter.pair()
        #expect(encounter.outcome != nil, "the peer has done its part")
        #expect(try encounter.run { $0.bondRecords().map(\.bond.identity) } == [Self.identity])
        #expect(encounter.fixture.controller.opcodes.contains(Disconnect.opcode))
    }

    @Test("No bond is made in the name of a connected device, even from that device's own address")
    func noBondIsMadeInTheNameOfAConnectedDevice() throws {
        let encounter = try Encounter(.peripheral) { $0.security.justWorks = .always }
        encounter.fixture.connect(0x0041, role: .peripheral, peer: peerAddress)
        encounter.pair()
        #expect(encounter.outcome != nil, "the peer has done its part")
        #expect(try encounter.run { $0.bondRecords().count } == 0)
        let isSilenced = try encounter.run { host in
            host.links[ConnectionHandle(0x0041)]?.isGateClosed
        }
        #expect(isSilenced == false)
    }

    @Test("A stricter policy also applies to existing links with weaker keys")
    func policyIsAppliedToLinks() throws {
        let encounter = try encounter { _ in }
        encounter.pair()
        #expect(try isServedAsEncrypted(encounter) == true)
        try encounter.run { host in
            var policy = host.securityPolicy
            policy.requiresAuthentication = true
            host.setSecurityPolicy(policy)
        }
        #expect(try isServedAsEncrypted(encounter) == false)
    }

    @Test("A key that a stricter policy finds too short is refused for its size", arguments: [false, true])
    func keyThatIsTooShortIsRefusedForItsSize(requiresAuthentication: Bool) throws {
        let encounter = try encounter { $0.security.minimumKeySizeInBytes = 7 }
        encounter.peer.parameters.minimumKeySize = 7
        encounter.peer.parameters.maximumKeySize = 7
        encounter.pair()
        #expect(try isServedAsEncrypted(encounter) == true)
        let services = try encounter.run { host in
            try host.publish([
                ServiceDefinition(
                    uuid: "A710",
                    characteristics: [
                        CharacteristicDefinition(
                            uuid: "A711",
                            properties: .read,
                            permissions: [.read, .readEncrypted],
                            value: .stored([1])
                        )
                    ]
                )
            ])
        }
        let handle = try #require(services.first?.characteristics.first).valueHandle.bytes
        try encounter.run { host in
            var policy = host.securityPolicy
            policy.minimumKeySizeInBytes = 16
            policy.requiresAuthentication = requiresAuthentication
            host.setSecurityPolicy(policy)
        }
        encounter.settle()
        encounter.fixture.controller.emit(HostFixture.acl([0x0A] + handle, on: connection))
        encounter.settle()
        // A longer key alone would not do if the policy requires an authenticated one as well.
        let error: UInt8 = requiresAuthentication ? 0x05 : 0x0C
        #expect(encounter.heardAttributePDUs.last == [0x01, 0x0A] + handle + [error])
    }

    @Test("Questions to a delegate that does not return are refused after 64")
    func delegateThatDoesNotReturn() {
        struct Silent: PairingDelegate {
            let silence: AsyncStream<Never>
            func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
                for await _ in silence {}
                return .refuse
            }
        }
        let (silence, end) = AsyncStream<Never>.makeStream()
        defer { end.finish() }
        let handler = Silent(silence: silence).handler(on: nil)
        let inquiry = PairingInquiry(
            link: LinkIdentifier(handle: connection, serial: 1),
            peer: peerAddress,
            question: .consent(.justWorks, secure),
            isStartedHere: false,
            replaces: nil,
            isIdentityVerified: false
        )
        let answers = Mutex<[PairingAnswer]>([])
        for _ in 1...66 {
            let cancel = handler(inquiry) { answer in answers.withLock { $0.append(answer) } }
            cancel()
        }
        #expect(answers.withLock { $0 } == [.refuse, .refuse])
    }
}
