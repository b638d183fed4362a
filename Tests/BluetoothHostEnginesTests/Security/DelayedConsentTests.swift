import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// A host that asks for the consent to just works late, and a peer that does not.
private struct DelayedConsent {
    typealias Side = SecuritySide
    typealias Role = SecurityChannel<SwiftCryptography>.Role

    var own: Side
    /// The number of the question that is open.
    private(set) var question: UInt64 = 0
    private var peer: Side

    /// Runs a pairing for the host's app until the consent is asked for.
    ///
    /// - Parameter changesCheck: whether the peer's DHKey Check is wrong.
    init(_ role: Role, changesCheck: Bool = false) throws {
        own = Side(role) { $0.delaysJustWorksConsent = true }
        peer = Side(role == .central ? .peripheral : .central)
        var number: UInt64?
        var effects = own.require().map { (isOwn: true, effect: $0) }
        while !effects.isEmpty {
            let (isOwn, effect) = effects.removeFirst()
            switch effect {
            case .send(var pdu):
                if isOwn {
                    effects += peer.receive(pdu).map { (false, $0) }
                } else {
                    if changesCheck, pdu.first == CommandCode.pairingDHKeyCheck.rawValue { pdu[1] ^= 1 }
                    effects += own.receive(pdu).map { (true, $0) }
                }
            case .ask(_, let asked) where isOwn: number = asked
            case .ask(_, let asked):
                effects += peer.engine.answered(asked, .accept, &peer.context).map { (false, $0) }
            default: break
            }
        }
        question = try #require(number)
    }

    mutating func answer(_ answer: PairingAnswer) -> [SecurityEffect] {
        own.engine.answered(question, answer, &own.context)
    }

    /// Expects that the pairing has ended, that the question was withdrawn if the app has not answered it, and that a
    /// late answer has no effect.
    mutating func expectEnd(_ effects: [SecurityEffect], _ error: SecurityError, isAnswered: Bool = false) {
        #expect(effects.contains(own.pairingFailed(error)))
        #expect(effects.contains(.withdraw(question)) != isAnswered)
        #expect(!own.engine.securityManager.isPairing && own.state.question == nil)
        #expect(answer(.accept).isEmpty)
    }
}

@Suite("A delayed consent to just works")
struct DelayedConsentTests {
    private typealias Side = SecuritySide
    private typealias Role = SecurityChannel<SwiftCryptography>.Role

    private static let roles: [Role] = [.central, .peripheral]
    private static let unspecifiedReason: [UInt8] = [0x05, 0x08]

    // MARK: While the consent is open

    @Test(arguments: roles)
    private func consentContinuesThePairing(role: Role) throws {
        var consent = try DelayedConsent(role)
        // As the peripheral, the central's DHKey Check has arrived while the consent was open.
        #expect(consent.answer(.accept).pdus.map(\.first) == [CommandCode.pairingDHKeyCheck.rawValue])
        #expect(consent.own.engine.securityManager.isPairing)
    }

    @Test func wrongCheckThatArrivesWhileTheConsentIsOpenFailsThePairing() throws {
        var consent = try DelayedConsent(.peripheral, changesCheck: true)
        let effects = consent.answer(.accept)
        #expect(effects.pdus == [[0x05, 0x0B]])
        consent.expectEnd(effects, .pairing(.ended(.dhKeyCheckFailed)), isAnswered: true)
    }

    /// As the central, the first check of the peer is out of turn; as the peripheral, the second one is.
    @Test(arguments: roles)
    private func checkOutOfTurnEndsThePairing(role: Role) throws {
        var consent = try DelayedConsent(role)
        let effects = consent.own.receive([CommandCode.pairingDHKeyCheck.rawValue] + [UInt8](repeating: 0, count: 16))
        #expect(effects.pdus == [Self.unspecifiedReason])
        consent.expectEnd(effects, .pairing(.ended(.unspecifiedReason)))
    }

    @Test(arguments: roles)
    private func refusedConsentEndsThePairingAndCountsAsAnAttempt(role: Role) throws {
        var consent = try DelayedConsent(role)
        let effects = consent.answer(.refuse)
        #expect(effects.pdus == [Self.unspecifiedReason])
        #expect(effects.contains(.attemptFailed(consent.own.peer, countsForAll: false)))
        consent.expectEnd(effects, .refused("it was not consented to"), isAnswered: true)
    }

    @Test(arguments: roles)
    private func consentThatIsNotAnsweredTimesOut(role: Role) throws {
        var consent = try DelayedConsent(role)
        #expect(consent.own.advance(.milliseconds(29_999)).isEmpty)
        let effects = consent.own.advance(.milliseconds(1))
        #expect(effects.pdus.isEmpty)
        consent.expectEnd(effects, .pairing(.timedOut))
        #expect(consent.own.engine.securityManager.isClosed)
    }

    @Test(arguments: roles)
    private func disconnectionWithdrawsTheConsent(role: Role) throws {
        var consent = try DelayedConsent(role)
        let effects = consent.own.linkEnded(.remoteUserTerminatedConnection)
        #expect(effects.contains(.attemptFailed(consent.own.peer, countsForAll: false)))
        consent.expectEnd(effects, .pairing(.linkEnded))
    }

    @Test(arguments: roles)
    private func disconnectionByThisHostWithdrawsTheConsent(role: Role) throws {
        var consent = try DelayedConsent(role)
        let error = HostError.disconnected(.controller(.connectionTerminatedByLocalHost))
        let effects = consent.own.engine.disconnectionBegan(error, &consent.own.context)
        #expect(!effects.contains(.attemptFailed(consent.own.peer, countsForAll: false)))
        consent.expectEnd(effects, .pairing(.linkEnded))
    }

    @Test(arguments: roles)
    private func cancelledCallEndsThePairing(role: Role) throws {
        var consent = try DelayedConsent(role)
        let effects = consent.own.cancel()
        #expect(effects.contains(.finish(Side.call, .failure(.cancelled))))
        #expect(effects.pdus == [Self.unspecifiedReason])
        consent.expectEnd(effects, .pairing(.ended(.unspecifiedReason)))
    }

    @Test(arguments: roles)
    private func peerMayEndThePairing(role: Role) throws {
        var consent = try DelayedConsent(role)
        let effects = consent.own.receive(Self.unspecifiedReason)
        #expect(effects.pdus.isEmpty)
        consent.expectEnd(effects, .pairing(.endedByPeer(.unspecifiedReason)))
    }

    // MARK: Refusals of the policy

    /// A reason for which the policy refuses a pairing without asking the app.
    private enum Obstacle: CaseIterable {
        case justWorksIsRefused
        case tooManyBonds
        case weakerThanTheBond
        case noDelegate
        case noDelegateForABond

        func side(_ role: Role, isDelayed: Bool) -> Side {
            let strong = KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 16)
            let strength =
                switch self {
                case .weakerThanTheBond: strong
                case .noDelegateForABond: Side.strength
                case .justWorksIsRefused, .tooManyBonds, .noDelegate: KeyStrength?.none
                }
            let hasHandler = self != .noDelegate && self != .noDelegateForABond
            var side = Side(
                role,
                bond: strength.map { Side.bond(role, key: LongTermKey(value: 1, strength: $0)) },
                hasPairingHandler: hasHandler
            ) {
                $0.delaysJustWorksConsent = isDelayed
                if self == .justWorksIsRefused { $0.justWorks = .never }
            }
            if self == .tooManyBonds { side.context.reachedBondLimit = 4 }
            return side
        }
    }

    /// Gives the engine a PDU, and answers its question if there is no app.
    ///
    /// - Returns: the effects except the question itself.
    private func receive(_ pdu: [UInt8], _ side: inout Side) -> [SecurityEffect] {
        var effects = side.receive(pdu)
        if let number = effects.question, !side.context.hasPairingHandler {
            effects += side.engine.unanswered(number, &side.context)
        }
        return effects.filter { if case .ask = $0 { false } else { true } }
    }

    @Test(arguments: Obstacle.allCases)
    private func centralIsRefusedAtOnceWithTheSameReason(obstacle: Obstacle) {
        let results = [false, true].map { isDelayed in
            var side = obstacle.side(.peripheral, isDelayed: isDelayed)
            return receive([0x01, 0x03, 0x00, 0x09, 0x10, 0x01, 0x01], &side)
        }
        #expect(results[0] == results[1])
        #expect(results[1].pdus == [[0x05, 0x05]])
    }

    @Test(arguments: [Obstacle.justWorksIsRefused, .weakerThanTheBond])
    private func peripheralIsRefusedAtOnceWithTheSameReason(obstacle: Obstacle) {
        let results = [false, true].map { isDelayed in
            var side = obstacle.side(.central, isDelayed: isDelayed)
            #expect(side.require(pairsAgain: true).pdus.map(\.first) == [0x01])
            return receive([0x02, 0x03, 0x00, 0x09, 0x10, 0x01, 0x01], &side)
        }
        #expect(results[0] == results[1])
        #expect(results[1].pdus == [Self.unspecifiedReason])
    }

    @Test func allowedPairingBeginsWithoutAQuestion() {
        for hasHandler in [true, false] {
            var side = Side(.peripheral, hasPairingHandler: hasHandler) {
                $0.delaysJustWorksConsent = true
                $0.justWorks = .always
            }
            let effects = side.receive([0x01, 0x03, 0x00, 0x09, 0x10, 0x01, 0x01])
            #expect(effects.question == nil && effects.pdus.map(\.first) == [0x02])
        }
    }
}
