import BLEATT
import BLEGATT
import BLEHCI
import BLEL2CAP
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// A central with the address of a bonded device but without its key (Vol 3, Part C, 10.3.1; BLESA).
@Suite("A central that claims to be bonded")
struct ClaimedIdentityTests {
    private static let insufficientEncryption: UInt8 = 0x0F

    @Test func valuesOfTheAppAreRefusedUntilTheCentralIsVerified() throws {
        let fixture = try SecurityFixture()
        try fixture.connect(.peripheral)
        let value = fixture.valueHandle.bytes
        let configuration = AttributeHandle(fixture.valueHandle.rawValue + 1).bytes
        let refusal = { (opcode: UInt8, handle: [UInt8]) in [[0x01, opcode] + handle + [Self.insufficientEncryption]] }
        #expect(fixture.exchange([0x0A] + value) == refusal(0x0A, value))
        #expect(fixture.exchange([0x0C] + value + [0, 0]) == refusal(0x0C, value))
        #expect(fixture.exchange([0x12] + value + [0x55]) == refusal(0x12, value))
        #expect(fixture.exchange([0x16] + value + [0, 0, 0x55]) == refusal(0x16, value))
        #expect(fixture.exchange([0x12] + configuration + [0x01, 0x00]) == refusal(0x12, configuration))
        #expect(fixture.exchange([0x0A] + configuration) == refusal(0x0A, configuration))
        // A command is ignored.
        #expect(fixture.exchange([0x52] + value + [0x55]).isEmpty)
        #expect(fixture.accesses.all.isEmpty && fixture.events.all.isEmpty)

        fixture.requestKey()
        fixture.encryptionChanged()
        #expect(fixture.exchange([0x12] + configuration + [0x01, 0x00]) == [[0x13]])
        #expect(fixture.exchange([0x52] + value + [0x55]).isEmpty)
        #expect(fixture.accesses.all.count == 1 && fixture.events.all.count == 1)
    }

    @Test func discoveryIsServedBeforeTheCentralIsVerified() throws {
        let fixture = try SecurityFixture()
        try fixture.connect(.peripheral)
        #expect(fixture.exchange([0x02, 0x05, 0x02]) == [[0x03, 0x05, 0x02]])
        // Primary services, characteristics, descriptors.
        #expect(fixture.exchange([0x10, 1, 0, 0xFF, 0xFF, 0x00, 0x28]).first?.first == 0x11)
        #expect(fixture.exchange([0x08, 1, 0, 0xFF, 0xFF, 0x03, 0x28]).first?.first == 0x09)
        #expect(fixture.exchange([0x04, 1, 0, 0xFF, 0xFF]).first?.first == 0x05)
        #expect(fixture.exchange([0x06, 1, 0, 0xFF, 0xFF, 0x00, 0x28, 0xC4, 0x10]).first?.first == 0x07)
        // Device Name and Database Hash.
        #expect(fixture.exchange([0x08, 1, 0, 0xFF, 0xFF, 0x00, 0x2A]).first?.first == 0x09)
        #expect(fixture.exchange([0x08, 1, 0, 0xFF, 0xFF, 0x2A, 0x2B]).first?.first == 0x09)
        #expect(fixture.events.all.isEmpty, "nothing is reported under the bonded device's address")
    }

    @Test func centralWhoseKeyMayNotBeUsedIsToldToPair() throws {
        let fixture = try SecurityFixture { $0.security.requiresAuthentication = true }
        try fixture.connect(.peripheral)
        let value = fixture.valueHandle.bytes
        #expect(fixture.exchange([0x0A] + value) == [[0x01, 0x0A] + value + [0x05]])
    }

    @Test func centralIsRefusedIfTheBondHasAKeyForTheOtherRoleOnly() throws {
        var bond = SecurityFixture.bond()
        bond.peripheralKey = nil
        let fixture = try SecurityFixture(bond: bond)
        try fixture.connect(.peripheral)
        let value = fixture.valueHandle.bytes
        #expect(fixture.exchange([0x0A] + value) == [[0x01, 0x0A] + value + [0x05]])
    }

    @Test func channelsAreRefusedUntilTheCentralIsVerified() throws {
        let fixture = try SecurityFixture()
        let accepted = Recorder<DeviceAddress>()
        let psm = try fixture.run { host in
            try host.publishChannels(.init()) { channel in
                accepted.append(channel.peer)
                return { _ in }
            }
        }
        try fixture.connect(.peripheral)
        func request(_ identifier: UInt8) -> [[UInt8]] {
            fixture.controller.forgetData()
            let pdu: [UInt8] = [
                0x14, identifier, 0x0A, 0x00, UInt8(psm.rawValue), 0x00, 0x40 + identifier, 0x00, 0x17, 0x00, 0x17,
                0x00,
                0x01, 0x00,
            ]
            fixture.controller.emit(HostFixture.acl(pdu, channel: 5, on: fixture.handle))
            fixture.advance(.milliseconds(1))
            return fixture.sent(on: 5)
        }
        #expect(request(1).first?.suffix(2) == [0x08, 0x00], "LE connection refused: insufficient encryption")
        #expect(accepted.all.isEmpty)
        fixture.requestKey()
        fixture.encryptionChanged()
        #expect(request(2).first?.suffix(2) == [0x00, 0x00])
        #expect(accepted.all == [SecurityFixture.peer])
    }

    @Test func streamsAreRejectedUntilTheCentralIsVerified() throws {
        let fixture = try SecurityFixture(hasStreams: true)
        let requests = Recorder<LinkIdentifier>()
        try fixture.run { host in
            _ = try host.observeStreamRequests { requests.append($0.link) }
        }
        let link = try fixture.connect(.peripheral)
        func request(_ handle: ConnectionHandle) {
            fixture.controller.forgetCommands()
            fixture.emit {
                LECISRequest(aclConnectionHandle: 0x0040, cisConnectionHandle: handle, cigID: 1, cisID: 2)
                    .encodePacket(into: &$0)
            }
        }
        func rejections() -> [LERejectCISRequest] {
            fixture.controller.commands.compactMap { $0.decode(LERejectCISRequest.self) }
        }
        func rejection(_ handle: ConnectionHandle) -> LERejectCISRequest {
            LERejectCISRequest(connectionHandle: handle, reason: .connectionRejectedDueToSecurityReasons)
        }
        request(0x0060)
        #expect(rejections() == [rejection(0x0060)] && requests.all.isEmpty)
        fixture.requestKey()
        fixture.encryptionChanged()
        request(0x0061)
        #expect(rejections().isEmpty && requests.all == [link])
        // The app has not answered when encryption ends.
        fixture.encryptionChanged(isOn: false)
        #expect(rejections() == [rejection(0x0061)])
    }

    @Test func transferredTrainsAreDroppedUntilTheCentralIsVerified() throws {
        let fixture = try SecurityFixture(receivesTransfers: true)
        let events = Recorder<DeviceAddress>()
        try fixture.run { host in
            _ = host.startReception(PeriodicSyncTransferParameters(), on: nil) { event in
                switch event {
                case .received(let transfer): events.append(transfer.peer)
                case .failed(let transfer): events.append(transfer.peer)
                case .ready, .ended: return nil
                }
                return { _ in }
            }
        }
        try fixture.connect(.peripheral)
        func transfer(_ train: UInt16, _ status: HCIErrorCode = .success) {
            fixture.emit {
                LEPeriodicAdvertisingSyncTransferReceived(
                    status: status,
                    connectionHandle: 0x0040,
                    serviceData: 0,
                    syncHandle: train,
                    advertisingSID: 1,
                    advertiserAddress: PeerAddress(SecurityFixture.peer),
                    advertiserPHY: .le1M,
                    periodicAdvertisingInterval: 80,
                    advertiserClockAccuracy: 0
                ).encodePacket(into: &$0)
            }
        }
        transfer(1)
        transfer(2, .connectionFailedToBeEstablished)
        #expect(events.all.isEmpty)
        #expect(fixture.count(LEPeriodicAdvertisingTerminateSync.self) == 1)
        #expect(try fixture.run { $0.inspect().synchronizations } == 0)
        fixture.requestKey()
        fixture.encryptionChanged()
        transfer(3)
        #expect(events.all == [SecurityFixture.peer])
        #expect(try fixture.run { $0.inspect().synchronizations } == 1)
    }

    @Test func claimantIsAskedToEncryptAndDisconnectedInTime() throws {
        let fixture = try SecurityFixture()
        let link = try fixture.connect(.peripheral)
        fixture.advance(.seconds(4))
        #expect(fixture.sent(on: 6).isEmpty)
        fixture.advance(.seconds(2))
        #expect(fixture.sent(on: 6) == [[0x0B, 0x09]], "a Security Request")
        fixture.advance(.seconds(23))
        #expect(fixture.count(Disconnect.self) == 0)
        fixture.advance(.seconds(2))
        let disconnect = fixture.controller.commands.compactMap { $0.decode(Disconnect.self) }
        #expect(disconnect.map(\.reason) == [.authenticationFailure])
        fixture.disconnected(.connectionTerminatedByLocalHost)
        let reason = try fixture.run { try await $0.disconnection(of: link) }
        #expect(reason == .controller(.authenticationFailure))
    }

    @Test func verifiedAndPairingCentralsStayConnected() throws {
        let verified = try SecurityFixture()
        try verified.connect(.peripheral)
        verified.requestKey()
        verified.encryptionChanged()
        verified.advance(.seconds(60))
        #expect(verified.count(Disconnect.self) == 0)

        let pairing = try SecurityFixture { $0.pairingHandler = { _, _ in {} } }
        try pairing.connect(.peripheral)
        pairing.advance(.seconds(20))
        #expect(pairing.exchangeSecurity([0x01, 0x03, 0x00, 0x0D, 0x10, 0x00, 0x00]).isEmpty)
        pairing.advance(.seconds(20))
        #expect(pairing.count(Disconnect.self) == 0, "somebody is asked about the pairing")
        pairing.advance(.seconds(30))
        #expect(pairing.count(Disconnect.self) == 1)
    }

    @Test func unverifiedCentralIsServedIfThePolicyAllowsThat() throws {
        let fixture = try SecurityFixture { $0.security.servesUnverifiedClients = true }
        try fixture.connect(.peripheral)
        _ = fixture.exchange([0x0A] + fixture.valueHandle.bytes)
        #expect(fixture.accesses.all.count == 1)
        fixture.advance(.seconds(60))
        #expect(fixture.count(Disconnect.self) == 0)
    }

    @Test("A stranger is served without restrictions")
    func strangersAreServed() throws {
        let fixture = try SecurityFixture()
        try fixture.connect(.peripheral, peer: DeviceAddress(0xC0FF_EE00_0002, isRandom: true))
        _ = fixture.exchange([0x0A] + fixture.valueHandle.bytes)
        #expect(fixture.accesses.all.count == 1)
        fixture.advance(.seconds(60))
        #expect(fixture.count(Disconnect.self) == 0)
    }

    // MARK: Calls that connect

    @Test func linkOfAClaimantFulfillsNoCallUntilItIsVerified() throws {
        let fixture = try SecurityFixture()
        let peer = SecurityFixture.peer
        let early = fixture.start { try await $0.connect(toAnyOf: [peer], parameters: .init(), timeout: nil) }
        fixture.fixture.connect(fixture.handle, role: .peripheral, peer: peer)
        let late = fixture.start { try await $0.connect(toAnyOf: [peer], parameters: .init(), timeout: nil) }
        #expect(early.all.isEmpty && late.all.isEmpty)
        #expect(try fixture.run { $0.link(to: peer) } == nil)
        fixture.requestKey()
        fixture.encryptionChanged()
        let link = try #require(try fixture.run { $0.linkIdentifiers().first })
        #expect(try early.all.map { try $0.get() } == [link])
        #expect(try late.all.map { try $0.get() } == [link])
    }

    @Test("A link that this host initiates fulfils a call although a claimant is connected")
    func outboundLinkFulfillsConnection() throws {
        let fixture = try SecurityFixture()
        let peer = SecurityFixture.peer
        fixture.fixture.connect(0x0041, role: .peripheral, peer: peer)
        let call = fixture.start { try await $0.connect(toAnyOf: [peer], parameters: .init(), timeout: nil) }
        #expect(call.all.isEmpty)
        fixture.fixture.connect(fixture.handle, role: .central, peer: peer)
        let links = try fixture.run { $0.linkIdentifiers() }
        #expect(links.count == 2)
        #expect(try call.all.map { try $0.get() } == [links[1]])
        #expect(try fixture.run { $0.link(to: peer)?.identifier } == links[1])
    }

    @Test("A claimant that blocks a connection is asked to encrypt and disconnected; then the host connects")
    func blockingClaimantIsEnded() throws {
        let fixture = try SecurityFixture()
        let peer = SecurityFixture.peer
        fixture.controller.override = { command in
            command.opcode == LECreateConnection.opcode
                ? ScriptedController.status(command.opcode, .connectionAlreadyExists) : nil
        }
        fixture.fixture.connect(fixture.handle, role: .peripheral, peer: peer)
        let call = fixture.start { try await $0.connect(toAnyOf: [peer], parameters: .init(), timeout: nil) }
        fixture.advance(.milliseconds(10))
        #expect(fixture.sent(on: 6) == [[0x0B, 0x09]])
        #expect(fixture.count(LECreateConnection.self) == 1)
        fixture.advance(.seconds(31))
        #expect(fixture.count(Disconnect.self) == 1)
        fixture.controller.override = { _ in nil }
        fixture.disconnected(.connectionTerminatedByLocalHost)
        #expect(fixture.count(LECreateConnection.self) == 2)
        fixture.fixture.connect(fixture.handle, role: .central, peer: peer)
        #expect(call.all.count == 1)
    }
}
