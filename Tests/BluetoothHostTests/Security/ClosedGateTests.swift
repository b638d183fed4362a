import BLEATT
import BLEGATT
import BLEHCI
import BLEL2CAP
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Operations behind the gate of a bonded peer")
struct ClosedGateTests {
    /// A link to a bonded peer, encrypted, with three reads: one in flight, one in the client and one in the lane.
    private func reading(
        _ role: BLEHCI.Role,
        policy: (inout SecurityPolicy) -> Void = { _ in }
    ) throws -> (SecurityFixture, LinkIdentifier, [Recorder<Result<[UInt8], any Error>>]) {
        let fixture = try SecurityFixture { policy(&$0.security) }
        let link = try fixture.connect(role)
        if role == .peripheral { fixture.requestKey() }
        fixture.encryptionChanged()
        let reads = [9, 10, 11].map { handle in
            fixture.start { try await $0.perform(ReadValue(handle: AttributeHandle(handle)), on: link) }
        }
        if role == .central { #expect(fixture.exchange([0x01, 0x08, 0x01, 0x00, 0x0A]) == [[0x0A, 0x09, 0x00]]) }
        #expect(reads.allSatisfy { $0.all.isEmpty })
        fixture.controller.forgetCommands()
        fixture.controller.forgetData()
        return (fixture, link, reads)
    }

    private func refreshKey(of fixture: SecurityFixture, _ status: HCIErrorCode) {
        fixture.emit {
            EncryptionKeyRefreshComplete(status: status, connectionHandle: fixture.handle).encodePacket(into: &$0)
        }
    }

    @Test("Reads end if the central refreshes the key of the link and that fails")
    func failedRefreshEndsTheReads() throws {
        let (fixture, link, reads) = try reading(.peripheral)
        fixture.requestKey()
        refreshKey(of: fixture, .connectionTimeout)
        for read in reads {
            #expect(throws: HostError.security(.encryptionFailed(.connectionTimeout))) { try read.all.first?.get() }
            #expect(read.all.count == 1)
        }
        #expect(fixture.exchange([0x0B, 0x66]).isEmpty, "the response to a read that has ended")
        #expect(try fixture.run { $0.contradiction() } == nil)
        #expect(try fixture.run { $0.links[link]?.client.isIdle } == true)
    }

    @Test("Reads end if the central does not encrypt again after a Security Request")
    func centralThatDoesNotEncryptAgainEndsTheReads() throws {
        let (fixture, link, reads) = try reading(.peripheral) { $0.requestsEncryption = true }
        fixture.encryptionChanged(isOn: false)
        _ = fixture.exchange([0x0B, 0x66])
        #expect(reads.allSatisfy { $0.all.isEmpty })
        fixture.requestKey()
        fixture.encryptionChanged(.pinOrKeyMissing)
        for read in reads { #expect(throws: HostError.security(.keyMissing)) { try read.all.first?.get() } }
        #expect(try fixture.run { $0.links[link]?.client.isIdle } == true)
    }

    @Test("A verification that fails after the policy has opened the gate ends no call")
    func failureAfterThePolicyHasOpenedTheGateEndsNoCall() throws {
        let fixture = try SecurityFixture()
        let link = try fixture.connect(.central)
        fixture.encryptionChanged()
        let first = fixture.start { try await $0.perform(ReadValue(handle: 9), on: link) }
        _ = fixture.exchange([0x01, 0x08, 0x01, 0x00, 0x0A])
        fixture.encryptionChanged(isOn: false)
        let second = fixture.start { try await $0.writeWithoutResponse([1], to: 10, on: link) }
        try fixture.run { host in
            var policy = SecurityPolicy()
            policy.encryptsBondedLinks = false
            host.setSecurityPolicy(policy)
        }
        fixture.encryptionChanged(.pinOrKeyMissing)
        _ = fixture.exchange([0x0B, 0x66])
        fixture.advance(.milliseconds(1))
        #expect(first.all.count == 1 && second.all.count == 1)
        for call in first.all { _ = try call.get() }
        for call in second.all { _ = try call.get() }
    }

    @Test("A removed bond lets nothing go to a peer that was never verified")
    func removedBondLetsNothingGoToAnUnverifiedPeer() throws {
        let fixture = try SecurityFixture { $0.security.requestsEncryption = false }
        let link = try fixture.connect(.peripheral)
        let read = fixture.start { try await $0.perform(ReadValue(handle: 9), on: link) }
        let write = fixture.start { try await $0.writeWithoutResponse([1], to: 10, on: link) }
        let connection = fixture.start {
            try await $0.connect(toAnyOf: [SecurityFixture.peer], parameters: ConnectionParameters(), timeout: nil)
        }
        fixture.controller.forgetData()
        let removal = fixture.start { await $0.removeBond(SecurityFixture.peer) }
        #expect(fixture.sent(on: 4).isEmpty, "neither the read nor the write is sent")
        #expect(fixture.count(Disconnect.self) == 1)
        #expect(connection.all.isEmpty, "the peer's link is not the connection")
        #expect(read.all.count == 1 && write.all.count == 1)
        #expect(throws: HostError.self) { try read.all.first?.get() }
        fixture.disconnected()
        #expect(removal.all.count == 1)
        #expect(try fixture.run { $0.bondRecords().isEmpty })
    }

    /// An encrypted link with a channel that the peer has opened, and the ends of channels.
    private func channel(
        policy: (inout SecurityPolicy) -> Void = { _ in }
    ) throws -> (SecurityFixture, LinkIdentifier, Recorder<ChannelEnd>) {
        let fixture = try SecurityFixture { policy(&$0.security) }
        let link = try fixture.connect(.peripheral)
        fixture.requestKey()
        fixture.encryptionChanged()
        let ends = Recorder<ChannelEnd>()
        _ = try fixture.run { host in
            try host.publishChannels(.init(configuration: .init(mtu: 23, mps: 23)), at: SPSM(rawValue: 0x80)) { _ in
                { if case .ended(let end, _) = $0 { ends.append(end) } }
            }
        }
        fixture.controller.emit(
            HostFixture.acl([0x14, 1, 10, 0, 0x80, 0, 0x41, 0, 200, 0, 50, 0, 3, 0], channel: 5, on: fixture.handle)
        )
        fixture.advance(.milliseconds(1))
        #expect(try fixture.run { $0.links[link]?.channels.count } == 1)
        return (fixture, link, ends)
    }

    @Test("A rejected peer's channels end at once, also if the policy serves unverified clients")
    func channelsOfARejectedPeerEndAtOnce() throws {
        let (fixture, link, ends) = try channel { $0.servesUnverifiedClients = true }
        try fixture.run { host in
            guard let link = host.links[link] else { return }
            host.inform(link) { security, context in
                security.disconnectionBegan(.security(.tooManyBonds(3)), &context)
            }
            host.endInput()
        }
        #expect(ends.all == [.unverifiedPeer])
    }

    @Test("The channels of a removed bond's peer end with the link")
    func channelsOfARemovedBondEndWithTheLink() throws {
        let (fixture, _, ends) = try channel()
        _ = fixture.start { await $0.removeBond(SecurityFixture.peer) }
        #expect(ends.all.isEmpty)
        fixture.disconnected(.connectionTerminatedByLocalHost)
        #expect(ends.all == [.disconnected(.controller(.connectionTerminatedByLocalHost))])
    }

    /// Opens a stream to the peer of a link. The controller gives it the handle 0x0060.
    private func openStream(
        on link: LinkIdentifier,
        of fixture: SecurityFixture
    ) throws -> (Recorder<Result<[IsochronousStreamInformation], HostError>>, Recorder<DisconnectionReason>) {
        fixture.controller.override = { command in
            switch command.opcode {
            case LESetCIGParameters.opcode:
                ScriptedController.complete(
                    LESetCIGParameters.self,
                    .success(.init(cigID: 0, connectionHandles: [0x0060]))
                )
            case LEEnableEncryption.opcode: ScriptedController.status(command.opcode)
            default: nil
            }
        }
        let outcomes = Recorder<Result<[IsochronousStreamInformation], HostError>>()
        let ends = Recorder<DisconnectionReason>()
        try fixture.run { host in
            _ = host.openStreams(
                to: [link],
                ConnectedGroupParameters(),
                observe: { _ in { if case .ended(let reason) = $0 { ends.append(reason) } } },
                completion: { outcomes.append($0) }
            )
        }
        fixture.advance(.milliseconds(1))
        return (outcomes, ends)
    }

    @Test("A stream is opened once encryption has verified the peer, and never to a peer without the key")
    func streamWaitsForTheVerification() throws {
        for hasKey in [true, false] {
            let fixture = try SecurityFixture(hasStreams: true)
            let link = try fixture.connect(.central)
            let (outcomes, _) = try openStream(on: link, of: fixture)
            #expect(fixture.count(LESetCIGParameters.self) == 0 && outcomes.all.isEmpty)
            fixture.encryptionChanged(hasKey ? .success : .pinOrKeyMissing)
            #expect(fixture.count(LESetCIGParameters.self) == (hasKey ? 1 : 0))
            #expect(fixture.count(LECreateCIS.self) == (hasKey ? 1 : 0))
            guard !hasKey else { continue }
            #expect(outcomes.all == [.failure(.security(.keyMissing))])
            let (later, _) = try openStream(on: link, of: fixture)
            #expect(later.all == [.failure(.security(.keyMissing))])
            #expect(fixture.count(LESetCIGParameters.self) == 0)
        }
    }

    @Test("A stream ends at once if the encryption of its link ends")
    func streamEndsWithTheEncryption() throws {
        let fixture = try SecurityFixture(hasStreams: true)
        let link = try fixture.connect(.central)
        fixture.encryptionChanged()
        let (outcomes, ends) = try openStream(on: link, of: fixture)
        fixture.emit {
            LECISEstablishedV2(
                connectionHandle: 0x0060,
                cigSyncDelay: 1000,
                cisSyncDelay: 1000,
                transportLatencyCToP: 1000,
                transportLatencyPToC: 1000,
                phyCToP: .le2M,
                phyPToC: .le2M,
                nse: 1,
                bnCToP: 1,
                bnPToC: 1,
                ftCToP: 1,
                ftPToC: 1,
                maxPDUCToP: 100,
                maxPDUPToC: 100,
                isoInterval: 8,
                maxSDUCToP: 100,
                maxSDUPToC: 100,
                sduIntervalCToP: 10_000,
                sduIntervalPToC: 10_000,
                framing: .unframed
            ).encodePacket(into: &$0)
        }
        let stream = try #require(try outcomes.all.first?.get().first?.identifier)
        fixture.controller.forgetCommands()
        fixture.encryptionChanged(isOn: false)
        let reason = DisconnectionReason.controller(.authenticationFailure)
        #expect(ends.all == [reason])
        let disconnects = fixture.controller.commands.compactMap { $0.decode(Disconnect.self) }
        #expect(disconnects.map(\.connectionHandle) == [0x0060])
        let call = fixture.start { try await $0.sendSDU([1], timeStamp: nil, on: stream) }
        #expect(throws: HostError.disconnected(reason)) { try call.all.first?.get() }
    }

    @Test("A link whose authenticated payload timeout has expired serves nothing until it has ended")
    func linkAfterTheAuthenticatedPayloadTimeoutServesNothing() throws {
        let fixture = try SecurityFixture(watchesAuthenticatedPayload: true) {
            $0.security.authenticatedPayloadTimeout = .seconds(30)
        }
        let link = try fixture.connect(.peripheral)
        fixture.requestKey()
        fixture.encryptionChanged()
        try fixture.run { $0.authenticatedPayloadTimedOut(0x0040) }
        #expect(try fixture.run { $0.links[link]?.security.strength } == nil)
        #expect(fixture.exchange([0x0A, UInt8(fixture.valueHandle.rawValue), 0x00]).first?.first == 0x01)
        #expect(fixture.accesses.all.isEmpty)
    }

    @Test("A verification time of zero ends the link of an unverified central once, and the loop continues")
    func verificationTimeOfZeroEndsTheLinkOnce() throws {
        let fixture = try SecurityFixture { $0.security.identityVerificationTimeout = .zero }
        try fixture.connect(.peripheral)
        fixture.advance(.seconds(3))
        #expect(fixture.count(Disconnect.self) == 1)
        fixture.disconnected(.authenticationFailure)
        #expect(try fixture.run { $0.inspect().links } == 0)
    }

    @Test("A question that is withdrawn while the app is being asked is withdrawn from the app")
    func questionWithdrawnInItsHandlerIsWithdrawnFromTheApp() throws {
        let withdrawn = Recorder<Int>()
        let fixture = try SecurityFixture(bond: nil)
        let link = try fixture.connect(.peripheral)
        try fixture.run { host in
            host.setPairingHandler { [weak host] _, _ in
                host?.assumeIsolated { host in
                    guard let link = host.links[link] else { return }
                    host.inform(link) { security, context in
                        security.disconnectionBegan(.disconnected(.adapterClosed), &context)
                    }
                }
                return { withdrawn.append(1) }
            }
        }
        _ = fixture.exchangeSecurity([0x01, 0x03, 0x00, 0x0D, 0x10, 0x00, 0x00])
        fixture.advance(.milliseconds(1))
        #expect(withdrawn.all.count == 1)
    }
}
