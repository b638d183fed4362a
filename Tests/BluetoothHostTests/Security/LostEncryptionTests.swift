import BLEATT
import BLEGATT
import BLEHCI
import BLEL2CAP
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// Events that never arrive, and encryption that ends.
@Suite("Lost encryption")
struct LostEncryptionTests {
    @Test("A call for security ends if the controller never reports the result of encryption")
    func lostEncryptionChangeEndsTheCall() throws {
        let fixture = try SecurityFixture()
        try fixture.connect(.central)
        #expect(fixture.count(LEEnableEncryption.self) == 1)
        let call = fixture.start { try await $0.secure($0.linkIdentifiers()[0]) }
        fixture.advance(.seconds(39))
        #expect(call.all.isEmpty)
        fixture.advance(.seconds(2))
        #expect(throws: HostError.security(.timedOut)) { try call.all.first?.get() }
        // A late event verifies nothing.
        fixture.encryptionChanged()
        #expect(try fixture.run { $0.strength(of: $0.linkIdentifiers()[0]) } == nil)
    }

    @Test func lostEncryptionChangeEndsTheCallOfAPeripheral() throws {
        let fixture = try SecurityFixture()
        let link = try fixture.connect(.peripheral)
        let call = fixture.start { try await $0.secure(link) }
        fixture.requestKey()
        fixture.advance(.seconds(41))
        #expect(throws: HostError.security(.timedOut)) { try call.all.first?.get() }
        #expect(try fixture.run { $0.links[link]?.security.state.isBusy } != true)
    }

    @Test("The question whether to replace a bond ends if the app does not answer")
    func unansweredReplacementEnds() throws {
        let victim = DeviceAddress(0x0000_0000_4711, isRandom: false)
        let fixture = try SecurityFixture(bond: SecurityFixture.bond(victim))
        let peer = DeviceAddress(0x4123_4567_89AB, isRandom: true)
        let link = try fixture.connect(.peripheral, peer: peer)
        try fixture.run { host in
            var bond = SecurityFixture.bond(victim)
            bond.identityResolvingKey = 5
            host.setPairingHandler { _, _ in {} }
            guard let link = host.links[link] else { return }
            let outcome = PairingOutcome(
                model: .justWorks,
                strength: SecurityFixture.strength,
                bond: bond,
                isBonded: true
            )
            link.security.state = .awaitingBondDecision(
                CompletedPairing(
                    outcome: outcome,
                    initiative: .peer,
                    peer: link.identity,
                    current: CurrentEncryption(
                        key: ActiveKey(strength: SecurityFixture.strength, origin: .incompletePairing)
                    ),
                    waiting: []
                )
            )
            host.inform(link) { security, context in
                security.bondDecided(.replacesOther(SecurityFixture.strength), &context)
            }
            #expect(link.security.state.question != nil)
        }
        let call = fixture.start { try await $0.secure(link, RequiredSecurity(), pairsAgain: true) }
        fixture.advance(.seconds(29))
        #expect(call.all.isEmpty && fixture.count(Disconnect.self) == 0)
        fixture.advance(.seconds(2))
        let reason = "it would replace a bond, and the question was not answered within 30 s"
        #expect(throws: HostError.security(.refused(reason))) { try call.all.first?.get() }
        #expect(fixture.count(Disconnect.self) == 1)
    }

    @Test("After a Security Request that ends in failed encryption, the devices can pair on the link")
    func devicesCanPairAfterAFailedEncryptionOnRequest() throws {
        let fixture = try SecurityFixture { $0.pairingHandler = { _, _ in {} } }
        let link = try fixture.connect(.peripheral)
        let call = fixture.start { try await $0.secure(link) }
        #expect(fixture.sent(on: 6) == [[0x0B, 0x09]])
        fixture.requestKey()
        fixture.encryptionChanged(.pinOrKeyMissing)
        #expect(throws: HostError.security(.keyMissing)) { try call.all.first?.get() }
        #expect(try fixture.run { $0.links[link]?.security.state.isBusy } == false)
        fixture.advance(.seconds(20))
        #expect(fixture.exchangeSecurity([0x01, 0x03, 0x00, 0x0D, 0x10, 0x00, 0x00]).isEmpty)
        #expect(try fixture.run { $0.links[link]?.security.securityManager.isPairing } == true, "the app is asked")
        #expect(try fixture.run { $0.links[link]?.security.securityManager.isClosed } == false)
    }

    // MARK: A link that ends while encryption starts

    /// Ends a link to a bonded server while it is being encrypted.
    ///
    /// - Returns: the outcomes of two calls that wait for encryption, and the events.
    private func endOfLink(
        _ reason: HCIErrorCode
    ) throws -> (secured: Result<Void, any Error>, read: Result<Void, any Error>, events: [SecurityEvent]) {
        let fixture = try SecurityFixture()
        let events = Recorder<SecurityEvent>()
        _ = try fixture.run { $0.observeSecurity { events.append($0) } }
        let link = try fixture.connect(.central)
        let secured = fixture.start { _ = try await $0.secure(link) }
        let read = fixture.start { _ = try await $0.perform(ReadValue(handle: 9), on: link) }
        fixture.disconnected(reason)
        return (try #require(secured.all.first), try #require(read.all.first), events.all)
    }

    @Test("A link that ends with a MIC failure while encryption starts does not count as a lost bond")
    func micFailureIsNoMissingKey() throws {
        let (secured, read, events) = try endOfLink(.connectionTerminatedDueToMICFailure)
        let error = SecurityError.encryptionFailed(.connectionTerminatedDueToMICFailure)
        #expect(throws: HostError.security(error)) { try secured.get() }
        #expect(throws: HostError.security(error)) { try read.get() }
        #expect(events.isEmpty, "\(events)")
        #expect("\(error)".contains("different keys") && "\(error)".contains("reordered packets"))
    }

    @Test("A link that the peer ends because it has no key counts as a lost bond")
    func linkThatEndsForWantOfAKeyCountsAsALostBond() throws {
        let (secured, read, events) = try endOfLink(.pinOrKeyMissing)
        #expect(throws: HostError.security(.keyMissing)) { try secured.get() }
        #expect(throws: HostError.security(.keyMissing)) { try read.get() }
        guard case .keyMissing(_, identity: SecurityFixture.peer)? = events.first, events.count == 1 else {
            Issue.record("\(events)")
            return
        }
    }

    // MARK: Encryption that ends on a bonded link

    /// A central's encrypted link to its bonded server, with two reads. The first is in flight.
    private func reading() throws -> (SecurityFixture, [Recorder<Result<[UInt8], any Error>>]) {
        let fixture = try SecurityFixture()
        let link = try fixture.connect(.central)
        fixture.encryptionChanged()
        let reads = [9, 10].map { handle in
            fixture.start { try await $0.perform(ReadValue(handle: AttributeHandle(handle)), on: link) }
        }
        // There is no Database Hash. The host's other own requests come after the app's.
        #expect(fixture.exchange([0x01, 0x08, 0x01, 0x00, 0x0A]) == [[0x0A, 0x09, 0x00]])
        fixture.controller.forgetCommands()
        fixture.controller.forgetData()
        return (fixture, reads)
    }

    @Test("After encryption has ended, all calls wait for it, and earlier answers are not trusted")
    func endedEncryptionIsBegunAgain() throws {
        let (fixture, reads) = try reading()
        fixture.encryptionChanged(isOn: false)
        #expect(fixture.count(LEEnableEncryption.self) == 1)
        #expect(fixture.exchange([0x0B, 0x66]).isEmpty, "no request is sent on the link as it is")
        #expect(reads.allSatisfy { $0.all.isEmpty }, "and no response is believed")
        fixture.encryptionChanged()
        #expect(fixture.sent(on: 4) == [[0x0A, 0x09, 0x00]], "the request again")
        #expect(fixture.exchange([0x0B, 0x2A]) == [[0x0A, 0x0A, 0x00]])
        _ = fixture.exchange([0x0B, 0x2B])
        #expect(try reads.map { try $0.all.first?.get() } == [[0x2A], [0x2B]])
    }

    @Test("After encryption has ended, the host's own requests wait for it as well")
    func ownRequestWaitsForEncryption() throws {
        let fixture = try SecurityFixture()
        try fixture.connect(.central)
        fixture.encryptionChanged()
        let hashRequest: [UInt8] = [0x08, 0x01, 0x00, 0xFF, 0xFF, 0x2A, 0x2B]
        #expect(fixture.sent(on: 4) == [hashRequest])
        fixture.encryptionChanged(isOn: false)
        #expect(fixture.exchange([0x01, 0x08, 0x01, 0x00, 0x0A]).isEmpty, "the database is not discovered")
        #expect(try fixture.run { $0.contradiction() } == nil)
        fixture.controller.forgetData()
        fixture.encryptionChanged()
        #expect(fixture.sent(on: 4) == [hashRequest], "the request again")
        #expect(fixture.exchange([0x01, 0x08, 0x01, 0x00, 0x0A]).first?.first == 0x10)
    }

    @Test("After encryption has ended, the host's own requests end if the peer has lost its key")
    func ownRequestEndsIfTheKeyIsLost() throws {
        let fixture = try SecurityFixture()
        let link = try fixture.connect(.central)
        fixture.encryptionChanged()
        fixture.encryptionChanged(isOn: false)
        #expect(fixture.exchange([0x01, 0x08, 0x01, 0x00, 0x0A]).isEmpty)
        fixture.encryptionChanged(.pinOrKeyMissing)
        #expect(fixture.sent(on: 4).isEmpty)
        #expect(try fixture.run { $0.links[link]?.client.isIdle } == true)
        #expect(try fixture.run { $0.contradiction() } == nil)
    }

    @Test(
        "After encryption has ended, open channels end, and their further data is not trusted",
        arguments: [BLEHCI.Role.central, .peripheral]
    )
    func endedEncryptionEndsChannels(role: BLEHCI.Role) throws {
        let fixture = try SecurityFixture()
        let link = try fixture.connect(role)
        if role == .peripheral { fixture.requestKey() }
        fixture.encryptionChanged()
        let ends = Recorder<(ChannelEnd, [[UInt8]])>()
        _ = try fixture.run { host in
            try host.publishChannels(.init(configuration: .init(mtu: 23, mps: 23)), at: SPSM(rawValue: 0x80)) { _ in
                { if case .ended(let end, let unread) = $0 { ends.append((end, unread)) } }
            }
        }
        func exchange(_ pdu: [UInt8], on channel: UInt16) -> [[UInt8]] {
            fixture.controller.forgetData()
            fixture.controller.emit(HostFixture.acl(pdu, channel: channel, on: fixture.handle))
            fixture.advance(.milliseconds(1))
            return fixture.sent(on: 5)
        }
        let response = exchange([0x14, 0x01, 10, 0, 0x80, 0, 0x41, 0, 200, 0, 50, 0, 3, 0], on: 5)
        let channel = try #require(response.first?[4])
        #expect(try fixture.run { $0.links[link]?.channels.count } == 1)
        fixture.controller.forgetData()
        fixture.encryptionChanged(isOn: false)
        #expect(ends.all.map(\.0) == [.unverifiedPeer])
        #expect(fixture.sent(on: 5).contains { $0.first == 0x06 }, "Disconnection Request")
        #expect(exchange([1, 0, 0x66], on: UInt16(channel)).isEmpty)
        fixture.encryptionChanged()
        #expect(ends.all.count == 1 && ends.all[0].1.isEmpty)
        #expect(ChannelError.ended(.unverifiedPeer).description.contains("encrypt it and open another channel"))
    }

    @Test func responseOfAnUnverifiedPeerOpensNoChannel() throws {
        let fixture = try SecurityFixture()
        let link = try fixture.connect(.central)
        fixture.encryptionChanged()
        fixture.controller.forgetData()
        let outcomes = Recorder<HostError?>()
        _ = try fixture.run { host in
            try host.beginOpeningChannel(to: SPSM(rawValue: 0x80), on: link) { result in
                if case .failure(let error) = result { outcomes.append(error) } else { outcomes.append(nil) }
                return { _ in }
            }
        }
        let request = try #require(fixture.sent(on: 5).first)
        #expect(request.first == 0x14)
        fixture.encryptionChanged(isOn: false)
        fixture.controller.emit(
            HostFixture.acl([0x15, request[1], 10, 0, 0x41, 0, 200, 0, 50, 0, 3, 0, 0, 0], channel: 5)
        )
        fixture.advance(.milliseconds(1))
        #expect(outcomes.all == [.channel(.ended(.unverifiedPeer))])
        #expect(fixture.sent(on: 5).contains { $0.first == 0x06 }, "Disconnection Request")
        fixture.encryptionChanged()
        #expect(outcomes.all.count == 1)
    }

    @Test("After encryption has ended, all calls fail if the peer has lost its key")
    func allCallsFailIfEncryptionEndsAndTheKeyIsLost() throws {
        let (fixture, reads) = try reading()
        fixture.encryptionChanged(isOn: false)
        _ = fixture.exchange([0x0B, 0x66])
        fixture.encryptionChanged(.pinOrKeyMissing)
        #expect(fixture.sent(on: 4).isEmpty)
        for read in reads {
            #expect(throws: HostError.security(.keyMissing)) { try read.all.first?.get() }
            #expect(read.all.count == 1)
        }
    }

    /// A central's link whose exchange of ATT_MTU is in flight. It has failed, because the peer has lost its key.
    private func exchangingMTU() throws -> (SecurityFixture, LinkIdentifier) {
        let fixture = try SecurityFixture { $0.requestsMTU = true }
        let link = try fixture.connect(.central)
        fixture.encryptionChanged()
        #expect(fixture.exchange([0x01, 0x08, 0x01, 0x00, 0x0A]) == [[0x02, 0x05, 0x02]])
        fixture.encryptionChanged(isOn: false)
        fixture.encryptionChanged(.pinOrKeyMissing)
        fixture.controller.forgetData()
        return (fixture, link)
    }

    private func openGate(of fixture: SecurityFixture) throws {
        try fixture.run { host in
            var policy = SecurityPolicy()
            policy.encryptsBondedLinks = false
            host.setSecurityPolicy(policy)
        }
        fixture.advance(.milliseconds(1))
    }

    @Test("A late response to an exchange of ATT_MTU that has failed is used, and the exchange is not repeated")
    func lateResponseToAnExchangeOfMTUIsUsed() throws {
        let (fixture, link) = try exchangingMTU()
        try openGate(of: fixture)
        let read = fixture.start { try await $0.perform(ReadValue(handle: 9), on: link) }
        #expect(fixture.sent(on: 4).isEmpty, "the response is still to come")
        #expect(fixture.exchange([0x03, 0x64, 0x00]) == [[0x0A, 0x09, 0x00]])
        #expect(try fixture.run { try $0.information(on: link).mtu } == 100)
        _ = fixture.exchange([0x0B, 0x2A])
        #expect(try read.all.first?.get() == [0x2A])
        #expect(try fixture.run { $0.contradiction() } == nil)
    }

    @Test("An exchange of ATT_MTU that has failed is repeated if its response was not trusted")
    func exchangeOfMTUIsRepeatedAfterADroppedResponse() throws {
        let (fixture, link) = try exchangingMTU()
        #expect(fixture.exchange([0x03, 0x64, 0x00]).isEmpty)
        #expect(try fixture.run { try $0.information(on: link).mtu } == 23)
        try openGate(of: fixture)
        #expect(fixture.sent(on: 4) == [[0x02, 0x05, 0x02]])
        _ = fixture.exchange([0x03, 0x64, 0x00])
        #expect(try fixture.run { try $0.information(on: link).mtu } == 100)
    }

    @Test("Waiting calls continue after a change to a policy without verification")
    func policyOpensTheGate() throws {
        let (fixture, reads) = try reading()
        fixture.encryptionChanged(isOn: false)
        _ = fixture.exchange([0x0B, 0x66])
        fixture.encryptionChanged(.unsupportedRemoteFeature)
        #expect(reads.allSatisfy { $0.all.count == 1 })

        let waiting = try SecurityFixture()
        let link = try waiting.connect(.central)
        waiting.controller.forgetData()
        try waiting.run { host in
            // A procedure in the client's queue, as after a change of the policy.
            host.links[link]?.client.perform(ReadValue(handle: 9))
            var policy = SecurityPolicy()
            policy.encryptsBondedLinks = false
            host.setSecurityPolicy(policy)
        }
        waiting.advance(.milliseconds(1))
        #expect(waiting.sent(on: 4) == [[0x0A, 0x09, 0x00]])
    }

    @Test("After a change to a policy with verification, a bonded link is encrypted")
    func policyClosesTheGate() throws {
        let fixture = try SecurityFixture { $0.security.encryptsBondedLinks = false }
        try fixture.connect(.central)
        #expect(fixture.count(LEEnableEncryption.self) == 0)
        try fixture.run { $0.setSecurityPolicy(SecurityPolicy()) }
        #expect(fixture.count(LEEnableEncryption.self) == 1)
    }
}
