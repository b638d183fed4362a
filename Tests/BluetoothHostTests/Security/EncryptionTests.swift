import BLEByteCoding
import BLEGATT
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// The commands and events between a host and its controller.
@Suite("Encryption of a host's links")
struct EncryptionTests {
    private static let peer = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)
    private static let handle: ConnectionHandle = 0x0040
    private static let legacy = KeyStrength(isAuthenticated: true, isSecureConnections: false, keySize: 16)
    private static let pairingRequest: [UInt8] = [0x01, 0x03, 0x00, 0x09, 0x10, 0x00, 0x00]
    private static let notification: [UInt8] = [0x1B, 0x09, 0x00, 0x05]

    private static let central = LongTermKey(
        value: 0x0011_2233_4455_6677_8899_AABB_CCDD_EEFF,
        encryptedDiversifier: 0x2474,
        randomNumber: 0xABCD_EF12_3456_789A,
        strength: legacy
    )
    private static let peripheral = LongTermKey(
        value: 0xFFEE_DDCC_BBAA_9988_7766_5544_3322_1100,
        encryptedDiversifier: 0x7424,
        randomNumber: 0x9A78_5634_12EF_CDAB,
        strength: legacy
    )

    private func fixture(
        isBonded: Bool = true,
        isAuthenticated: Bool = true,
        configure: (inout BluetoothHost.Configuration) -> Void = { _ in }
    ) throws -> HostFixture {
        let fixture = HostFixture(configure: configure)
        try fixture.bringUp()
        guard isBonded else { return fixture }
        var bond = Bond(identity: Self.peer)
        bond.centralKey = Self.central
        bond.peripheralKey = Self.peripheral
        bond.centralKey?.strength.isAuthenticated = isAuthenticated
        bond.peripheralKey?.strength.isAuthenticated = isAuthenticated
        let (host, record) = (fixture.host, BondRecord(bond: bond))
        try fixture.run { try await host.importBond(record) }
        return fixture
    }

    /// Makes a link and returns it. For a central, the link is a requested connection.
    private func link(_ fixture: HostFixture, role: BLEHCI.Role) throws -> LinkIdentifier {
        let host = fixture.host
        if role == .central {
            _ = fixture.start {
                try await host.connect(toAnyOf: [Self.peer], parameters: ConnectionParameters(), timeout: nil)
            }
        }
        fixture.controller.forgetCommands()
        fixture.connect(Self.handle, role: role, peer: Self.peer)
        return try fixture.link()
    }

    private func emit(_ fixture: HostFixture, _ encode: (inout PacketBuffer) -> Void) {
        fixture.controller.emit(encode)
        fixture.loop.run(for: .milliseconds(1))
    }

    private func changeEncryption(_ fixture: HostFixture, _ status: HCIErrorCode = .success) {
        emit(fixture) {
            EncryptionChange(
                status: status,
                connectionHandle: Self.handle,
                encryptionEnabled: status == .success ? .on : .off
            ).encodePacket(into: &$0)
        }
    }

    private func requestKey(_ fixture: HostFixture, _ random: UInt64, _ diversifier: UInt16) {
        fixture.controller.forgetCommands()
        emit(fixture) {
            LELongTermKeyRequest(
                connectionHandle: Self.handle,
                randomNumber: random,
                encryptedDiversifier: diversifier
            ).encodePacket(into: &$0)
        }
    }

    private func strength(_ fixture: HostFixture, _ link: LinkIdentifier) throws -> KeyStrength? {
        let host = fixture.host
        return try fixture.run { await host.strength(of: link) }
    }

    // MARK: The central

    @Test("A link to a bonded peripheral is encrypted at once, and counts as encrypted only afterwards")
    func linkToABondedPeripheralIsEncryptedAtOnce() throws {
        let fixture = try fixture()
        let link = try link(fixture, role: .central)
        let command = try #require(fixture.controller.commands.compactMap { $0.decode(LEEnableEncryption.self) }.first)
        #expect(
            command
                == LEEnableEncryption(
                    connectionHandle: Self.handle,
                    randomNumber: 0xABCD_EF12_3456_789A,
                    encryptedDiversifier: 0x2474,
                    longTermKey: Self.central.value
                )
        )
        #expect(try strength(fixture, link) == nil)
        changeEncryption(fixture)
        #expect(try strength(fixture, link) == Self.legacy)
        emit(fixture) {
            EncryptionChange(connectionHandle: Self.handle, encryptionEnabled: .off).encodePacket(into: &$0)
        }
        #expect(try strength(fixture, link) == nil)
    }

    @Test("Encryption with a key that the host does not know verifies nothing")
    func encryptionWithAnUnknownKeyVerifiesNothing() throws {
        let fixture = try fixture(isBonded: false)
        let link = try link(fixture, role: .central)
        changeEncryption(fixture)
        #expect(try strength(fixture, link) == nil)
    }

    @Test("Requests wait until a bonded server is verified, and values that it sends before are dropped")
    func requestsWaitForVerification() throws {
        let fixture = try fixture()
        let host = fixture.host
        let link = try link(fixture, role: .central)
        let received = Recorder<[UInt8]>()
        _ = try fixture.run { try await host.addSubscriber(of: 9, on: link) { received.append($0.value) } }
        let read = fixture.start { try await host.perform(ReadValue(handle: 9), on: link) }
        #expect(fixture.exchange(Self.notification).isEmpty)
        #expect(received.all.isEmpty)
        #expect(read.all.isEmpty)

        changeEncryption(fixture)
        // The host's own requests have waited too: the Database Hash and the exchange of the MTU.
        let databaseHash: [UInt8] = [0x08, 0x01, 0x00, 0xFF, 0xFF, 0x2A, 0x2B]
        #expect(fixture.controller.data.map { Array($0.dropFirst(9)) } == [databaseHash])
        #expect(fixture.exchange([0x01, 0x08, 0x01, 0x00, 0x0A]) == [[0x02, 0x05, 0x02]])
        #expect(fixture.exchange([0x03, 0x17, 0x00]) == [[0x0A, 0x09, 0x00]])
        _ = fixture.exchange(Self.notification)
        _ = fixture.exchange([0x0B, 0x2A])
        #expect(received.all == [[0x05]])
        #expect(try read.all.first?.get() == [0x2A])
    }

    @Test("Writes submitted before a bonded server is verified are sent afterwards, before later calls")
    func submittedWritesWaitForVerification() async throws {
        let fixture = try fixture { $0.requestsMTU = false }
        let host = fixture.host
        let link = try link(fixture, role: .central)
        host.submissions.openFastPath(to: link, maximumLength: 20)
        // Called outside the loop: the fast path of the first write closes when the loop handles it.
        for number in 0..<UInt8(3) { try await host.writeWithoutResponse([number], to: 9, on: link) }
        fixture.loop.run(for: .milliseconds(1))
        #expect(host.submissions.inspect().submissions == 3)
        let read = fixture.start { try await host.perform(ReadValue(handle: 9), on: link) }
        #expect(fixture.controller.data.isEmpty)
        #expect(read.all.isEmpty)

        changeEncryption(fixture)
        // The host itself reads the Database Hash before the app's request.
        let sent = fixture.controller.data.map { Array($0.dropFirst(9)) }
        #expect(sent.filter { $0[0] == 0x52 } == (0..<3).map { [0x52, 0x09, 0x00, $0] })
        #expect(sent.count == 4)
        emit(fixture) {
            NumberOfCompletedPackets.encodePacket(
                .init(connectionHandle: Self.handle, numCompletedPackets: 4),
                into: &$0
            )
        }
        #expect(fixture.exchange([0x01, 0x08, 0x01, 0x00, 0x0A]) == [[0x0A, 0x09, 0x00]])
        #expect(host.submissions.inspect().submissions == 0)
    }

    @Test("Submitted writes are lost if the server has no key, and the next write gets the error")
    func submittedWritesAreLostWithoutAKey() async throws {
        let fixture = try fixture()
        let host = fixture.host
        let link = try link(fixture, role: .central)
        host.submissions.openFastPath(to: link, maximumLength: 20)
        for number in 0..<UInt8(3) { try await host.writeWithoutResponse([number], to: 9, on: link) }
        fixture.loop.run(for: .milliseconds(1))
        changeEncryption(fixture, .pinOrKeyMissing)
        #expect(fixture.controller.data.isEmpty)
        #expect(host.submissions.inspect().submissions == 0)
        let write = WriteCall(value: [0], handle: 9, link: link, caller: .submission)
        #expect(!host.submissions.submit(write, {}))
        #expect(throws: HostError.security(.keyMissing)) {
            try fixture.run { try await host.writeWithoutResponse([3], to: 9, on: link) }
        }
    }

    @Test("If the policy requires no verification, an unencrypted link to a bonded peer is used as any other")
    func unverifiedLinkIsUsedIfThePolicyAllows() throws {
        let fixture = try fixture { $0.security.encryptsBondedLinks = false }
        let host = fixture.host
        let link = try link(fixture, role: .central)
        let received = Recorder<[UInt8]>()
        _ = try fixture.run { try await host.addSubscriber(of: 9, on: link) { received.append($0.value) } }
        _ = fixture.exchange(Self.notification)
        #expect(received.all == [[0x05]])
        #expect(!fixture.controller.opcodes.contains(LEEnableEncryption.opcode))
    }

    @Test(
        "A missing key and missing encryption are different errors; neither peer gets any request",
        arguments: [
            (HCIErrorCode.pinOrKeyMissing, SecurityError.keyMissing),
            (.unsupportedRemoteFeature, .encryptionFailed(.unsupportedRemoteFeature)),
        ]
    )
    func missingKeyAndMissingEncryptionAreDifferentErrors(status: HCIErrorCode, error: SecurityError) throws {
        let fixture = try fixture()
        let host = fixture.host
        let link = try link(fixture, role: .central)
        let read = fixture.start { try await host.perform(ReadValue(handle: 9), on: link) }
        changeEncryption(fixture, status)
        #expect(throws: HostError.security(error)) { try read.all.first?.get() }
        #expect(throws: HostError.security(error)) { try fixture.run { try await host.secure(link) } }
        #expect(fixture.controller.data.isEmpty, "neither a request nor a pairing is sent")
        #expect(try fixture.run { await host.bondRecords().count } == 1)
    }

    @Test("If the controller refuses the command, nothing has started")
    func refusedEncryptionCommandStartsNothing() throws {
        let fixture = try fixture()
        let host = fixture.host
        fixture.controller.override = { command in
            command.opcode == LEEnableEncryption.opcode
                ? ScriptedController.status(command.opcode, .commandDisallowed) : nil
        }
        let link = try link(fixture, role: .central)
        #expect(try strength(fixture, link) == nil)
        #expect(throws: HostError.security(.encryptionFailed(.commandDisallowed))) {
            try fixture.run { try await host.secure(link) }
        }
    }

    @Test("A peripheral's Security Requests are answered with the bond's key, however often they come")
    func repeatedSecurityRequestsAreAnsweredWithTheKeyOfTheBond() throws {
        let fixture = try fixture { $0.security.encryptsBondedLinks = false }
        _ = try link(fixture, role: .central)
        fixture.controller.forgetCommands()
        for _ in 0..<20 {
            fixture.controller.emit(HostFixture.acl([0x0B, 0x01], channel: 6))
            fixture.loop.run(for: .milliseconds(1))
        }
        #expect(fixture.controller.opcodes == [LEEnableEncryption.opcode])
        let host = fixture.host
        let inspection = try fixture.run { await host.inspect() }
        #expect(inspection.waiters <= 1)
    }

    @Test("The Security Request of an unbonded peripheral is refused if the policy says so")
    func securityRequestIsRefusedIfThePolicySaysSo() throws {
        let fixture = try fixture(isBonded: false) { $0.security.pairsOnRequest = false }
        _ = try link(fixture, role: .central)
        fixture.controller.forgetData()
        fixture.controller.emit(HostFixture.acl([0x0B, 0x01], channel: 6))
        fixture.loop.run(for: .milliseconds(1))
        #expect(fixture.controller.data.map { Array($0.dropFirst(9)) } == [[0x05, 0x05]])
    }

    // MARK: The peripheral

    @Test("A central gets the bond's key for exactly its EDIV and Rand")
    func keyIsGivenForExactlyItsEDIVAndRand() throws {
        let fixture = try fixture()
        let link = try link(fixture, role: .peripheral)
        for (random, diversifier) in [
            (0, 0), (0x9A78_5634_12EF_CDAB, 0x7425), (0x9A78_5634_12EF_CDAA, 0x7424), (0xABCD_EF12_3456_789A, 0x2474),
        ] as [(UInt64, UInt16)] {
            requestKey(fixture, random, diversifier)
            #expect(fixture.controller.opcodes == [LELongTermKeyRequestNegativeReply.opcode])
        }
        requestKey(fixture, 0x9A78_5634_12EF_CDAB, 0x7424)
        #expect(
            fixture.controller.commands.first?.decode(LELongTermKeyRequestReply.self)
                == LELongTermKeyRequestReply(connectionHandle: Self.handle, longTermKey: Self.peripheral.value)
        )
        #expect(try strength(fixture, link) == nil, "a key that is given does not encrypt the link yet")
        changeEncryption(fixture)
        #expect(try strength(fixture, link) == Self.legacy)
    }

    @Test("If the policy says so, a bonded central is asked to encrypt also if it need not be verified")
    func bondedCentralThatNeedNotBeVerifiedIsAskedToEncrypt() throws {
        let fixture = try SecurityFixture {
            $0.security.encryptsBondedLinks = false
            $0.security.requestsEncryption = true
        }
        fixture.fixture.connect(fixture.handle, role: .peripheral, peer: SecurityFixture.peer, forgetsData: false)
        #expect(fixture.sent(on: 6) == [[0x0B, 0x09]])
    }

    @Test("No key is given without a bond or for an unknown link")
    func noKeyIsGivenWithoutABondOrForAnUnknownLink() throws {
        let fixture = try fixture(isBonded: false)
        requestKey(fixture, 0, 0)
        #expect(fixture.controller.opcodes == [LELongTermKeyRequestNegativeReply.opcode])
        _ = try link(fixture, role: .peripheral)
        requestKey(fixture, 0, 0)
        #expect(fixture.controller.opcodes == [LELongTermKeyRequestNegativeReply.opcode])
    }

    @Test("During a pairing no earlier key is given, because encryption is not allowed then")
    func noEarlierKeyIsGivenDuringAPairing() throws {
        let fixture = try fixture(isAuthenticated: false) {
            $0.security.offersSecureConnections = false
            // A handler that never answers.
            $0.pairingHandler = { _, _ in {} }
        }
        let link = try link(fixture, role: .peripheral)
        fixture.controller.emit(HostFixture.acl([0x01, 0x03, 0x00, 0x01, 0x10, 0x01, 0x01], channel: 6))
        fixture.loop.run(for: .milliseconds(1))
        requestKey(fixture, 0x9A78_5634_12EF_CDAB, 0x7424)
        #expect(fixture.controller.opcodes == [LELongTermKeyRequestNegativeReply.opcode])
        #expect(try strength(fixture, link) == nil)
    }

    @Test("A refreshed key replaces the one before")
    func refreshedKeyReplacesTheOneBefore() throws {
        let fixture = try fixture()
        let link = try link(fixture, role: .peripheral)
        for isFirst in [true, false] {
            requestKey(fixture, 0x9A78_5634_12EF_CDAB, 0x7424)
            #expect(fixture.controller.opcodes == [LELongTermKeyRequestReply.opcode])
            if isFirst {
                changeEncryption(fixture)
            } else {
                #expect(try strength(fixture, link) == Self.legacy, "the old key holds until the new one is used")
                emit(fixture) {
                    EncryptionKeyRefreshComplete(connectionHandle: Self.handle).encodePacket(into: &$0)
                }
            }
            #expect(try strength(fixture, link) == Self.legacy)
        }
    }

    // MARK: Repeated attempts

    @Test("Each failure doubles the wait of a peer, across links as well")
    func eachFailureDoublesTheWaitAcrossLinks() throws {
        let fixture = try fixture(isBonded: false)
        func attempt() -> [[UInt8]] {
            fixture.controller.forgetData()
            fixture.controller.emit(HostFixture.acl(Self.pairingRequest, channel: 6))
            fixture.loop.run(for: .milliseconds(1))
            return fixture.controller.data.map { Array($0.dropFirst(9)) }
        }
        _ = try link(fixture, role: .peripheral)
        // Nobody consents, so each attempt that is not refused beforehand fails.
        for wait in [1, 2, 4, 8] {
            #expect(attempt() == [[0x05, 0x05]])
            #expect(attempt() == [[0x05, 0x09]])
            fixture.disconnected(Self.handle, reason: .remoteUserTerminatedConnection)
            _ = try link(fixture, role: .peripheral)
            fixture.loop.run(for: .seconds(wait) - .milliseconds(100))
            #expect(attempt() == [[0x05, 0x09]], "before \(wait) s are over")
            fixture.loop.run(for: .milliseconds(100))
        }
    }
}
