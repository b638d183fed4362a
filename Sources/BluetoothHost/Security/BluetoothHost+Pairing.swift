import BluetoothTypes
import ByteCoding
import Cryptography
import HCI
import L2CAP
import SMP

// How a pairing goes on: what comes from the peer, what is done about it, and who is asked.
extension BluetoothHost {
    func makeProtection(for connection: NewConnection) -> Protection {
        let channel = makeSecurityChannel(
            role: connection.role == .central ? .central : .peripheral,
            ownAddress: connection.localPrivateAddress ?? ownAddress(of: connection),
            peerAddress: connection.peerPrivateAddress ?? connection.peerAddress
        )
        return Protection(channel: channel, policy: securityPolicy)
    }

    /// - Parameters:
    ///   - ownAddress: the address that this host used on the air when the link was made.
    ///   - peerAddress: the one that the peer used.
    func makeSecurityChannel(
        role: SecurityChannel<SwiftCryptography>.Role,
        ownAddress: DeviceAddress,
        peerAddress: DeviceAddress
    ) -> SecurityChannel<SwiftCryptography> {
        SecurityChannel(
            role: role,
            ownAddress: ownAddress,
            peerAddress: peerAddress,
            identity: localIdentity,
            functions: SwiftCryptography()
        )
    }

    // MARK: What comes

    func receiveSecurityPDU(_ pdu: RawSpan, on link: Link) {
        guard !pdu.isEmpty else { return metrics.malformed.increment() }
        if isPairingRequest(pdu), !link.protection.channel.isPairing, !link.protection.channel.isClosed {
            if refusesPairingRequest(of: link) { return }
            // What was asked of the central stays asked of the pairing that it begins.
            if !link.protection.isCentralAsked {
                prepareChannel(of: link)
                link.protection.initiative = .peer
                link.protection.replacesBond = false
            }
        }
        let wasPairing = link.protection.channel.isPairing
        let steps = link.protection.channel.receive(pdu, at: loop.now, random: &random)
        proceed(link, steps, wasPairing: wasPairing)
    }

    private func isPairingRequest(_ pdu: RawSpan) -> Bool {
        pdu[checked: 0] == CommandCode.pairingRequest.rawValue
    }

    /// Sends a PDU of the Security Manager.
    func send(_ pdu: [UInt8], on link: Link) {
        var buffer = sender.takeBuffer()
        buffer.append(pdu)
        send(consume buffer, .security, on: .securityManager, of: link)
    }

    // MARK: What is done

    /// Does what the Security Manager of a link has said.
    func proceed(_ link: Link, _ steps: [PairingStep], wasPairing: Bool) {
        if !wasPairing, link.protection.channel.isPairing {
            link.protection.isCentralAsked = false
            link.protection.refusal = nil
            link.protection.isSecretAtStake = false
            link.protection.isOutOfBandDataSpent = false
            link.protection.onlyIdentity = isAdmittedByProof(link) ? link.identity : nil
            emit(.pairingStarted(link.identifier, peer: link.identity))
        }
        run(steps, on: link)
        armTimer(of: link)
    }

    func run(_ steps: [PairingStep], on link: Link) {
        for step in steps {
            switch step {
            case .send(let pdu): send(pdu, on: link)
            case .ask(let question): ask(question, on: link)
            case .keyPressed(let kind): emit(.keyPressed(link.identifier, peer: link.identity, kind))
            case .encrypt(let key): startEncryption(of: link, with: key)
            case .expectEncryption(let key): link.protection.expectedKey = key
            case .securityRequested(let requirements): securityRequested(requirements, on: link)
            case .completed(let outcome): pairingCompleted(outcome, on: link)
            case .failed(let failure): pairingFailed(failure, on: link)
            }
        }
    }

    /// As the central: the peripheral asks for security (Vol 3, Part H, 2.4.6).
    ///
    /// That it would use LE Secure Connections is no reason to replace a bond without.
    private func securityRequested(_ requirements: SecurityRequirements, on link: Link) {
        let policy = link.protection.policy
        let canAuthenticate = policy.ioCapability != .noInputNoOutput || policy.peerOutOfBandData != nil
        let required = RequiredSecurity(isAuthenticated: requirements.isAuthenticated && canAuthenticate)
        // A peer that asks again and again waits once.
        guard !link.protection.waiters.contains(where: { $0.initiative == .peer }) else { return }
        require(required, of: link, for: .peer) { [logger] result in
            if case .failure(let error) = result { logger.debug("a peripheral's request for security: \(error)") }
        }
    }

    // MARK: Who is asked

    private func ask(_ question: PairingQuestion, on link: Link) {
        let existing = bonds.strength(of: link.identity)
        let inquiry = PairingInquiry(
            link: link.identifier,
            peer: link.identity,
            question: question,
            isStartedHere: link.protection.initiative != .peer,
            replaces: existing,
            isProven: link.protection.isBondProven
        )
        switch question {
        case .showPasskey, .enterPasskey, .compare: link.protection.isSecretAtStake = true
        case .consent(let model, let strength):
            link.protection.usesOutOfBandData = model == .outOfBand
            if let existing, strength.isWeaker(than: existing) { return refuse(.weakerThanBond(strength), on: link) }
            if model == .justWorks, link.protection.policy.justWorks == .never {
                return refuse(.refused("the policy refuses just works"), on: link)
            }
            if link.protection.policy.bonds, bonds.isFull, existing == nil {
                return refuse(.tooManyBonds(bonds.limit), on: link)
            }
        }
        put(inquiry, for: .pairing, on: link)
    }

    /// Asks whoever there is to be asked.
    private func put(_ inquiry: PairingInquiry, for purpose: Protection.Question.Purpose, on link: Link) {
        takeBackQuestion(on: link)
        let number = makeIdentifier()
        link.protection.question = .init(number: number, purpose: purpose, takeBack: {})
        if pairingHandler != nil { return deliver(.inquiry(inquiry, number: number)) }
        // Answered in its turn, after what else there is to be done now.
        loop.execute { [weak self] in
            self?.assumeIsolated { $0.answerForNobody(inquiry, number) }
        }
    }

    /// Asks the app, unless the question was taken back before this turn came to it.
    func ask(_ inquiry: PairingInquiry, _ number: UInt64) {
        let identifier = inquiry.link
        guard let link = links[identifier], let question = link.protection.question, question.number == number else {
            return
        }
        guard let pairingHandler else { return answerForNobody(inquiry, number) }
        let takeBack = pairingHandler(inquiry) { [weak self] answer in
            guard let self else { return }
            loop.execute { [weak self] in
                self?.assumeIsolated { $0.answer(number, on: identifier, answer, refusal: "it was not consented to") }
            }
        }
        guard link.protection.question?.number == number else { return }
        link.protection.question = .init(number: number, purpose: question.purpose, takeBack: takeBack)
    }

    /// Nobody can show, type or compare anything; what needs no person is as the policy says.
    private func answerForNobody(_ inquiry: PairingInquiry, _ number: UInt64) {
        guard let link = links[inquiry.link] else { return }
        var refusal: String?
        switch inquiry.question {
        case .consent(.justWorks, _):
            if link.protection.policy.justWorks != .always, !inquiry.isStartedHere {
                refusal = "the peer began it, and there is nobody to ask"
            }
        case .consent(.outOfBand, _): break
        case .consent, .showPasskey, .enterPasskey, .compare: refusal = "there is nobody to ask"
        }
        if inquiry.replaces != nil, !link.protection.replacesBond || isAboutReplacement(number, link) {
            refusal = "it would replace a bond, and there is nobody to ask"
        }
        answer(number, on: inquiry.link, refusal == nil ? .accept : .refuse, refusal: refusal ?? "")
        endInput()
    }

    private func isAboutReplacement(_ number: UInt64, _ link: Link) -> Bool {
        guard let question = link.protection.question, question.number == number else { return false }
        if case .replacement = question.purpose { return true }
        return false
    }

    private func answer(_ number: UInt64, on identifier: LinkIdentifier, _ answer: PairingAnswer, refusal: String) {
        guard let link = links[identifier], let question = link.protection.question,
            question.number == number
        else { return }
        link.protection.question = nil
        link.protection.replacementDeadline = nil
        switch question.purpose {
        case .pairing:
            var answer = answer
            if answer == .refuse { link.protection.refusal = .refused(refusal) }
            if case .passkey(let passkey) = answer, pairingAttempts.use(passkey: passkey),
                !link.isChosenByApp(link.protection.initiative)
            {
                link.protection.refusal = .refused("the passkey was used before; each pairing needs another one")
                answer = .refuse
            }
            if link.protection.usesOutOfBandData, answer != .refuse {
                if link.protection.isOutOfBandDataSpent {
                    link.protection.refusal = .refused("another pairing has used the out of band data")
                    answer = .refuse
                } else {
                    forgetOutOfBandData(of: link)
                }
            }
            give(answer, to: link)
        case .replacement(let outcome):
            if answer == .accept {
                admit(outcome, on: link, isConfirmed: true)
            } else {
                reject(.refused(refusal), on: link)
            }
        }
        endInput()
    }

    private func refuse(_ error: SecurityError, on link: Link) {
        link.protection.refusal = error
        let (number, identifier) = (makeIdentifier(), link.identifier)
        link.protection.question = .init(number: number, purpose: .pairing, takeBack: {})
        loop.execute { [weak self] in
            self?.assumeIsolated { host in
                guard let link = host.links[identifier], link.protection.question?.number == number else {
                    return
                }
                link.protection.question = nil
                host.give(.refuse, to: link)
                host.endInput()
            }
        }
    }

    private func give(_ answer: PairingAnswer, to link: Link) {
        let steps = link.protection.channel.answer(answer, at: loop.now, random: &random)
        proceed(link, steps, wasPairing: true)
    }

    /// Sends a keypress notification to the peer of a link (Vol 3, Part H, 3.5.8).
    ///
    /// - Returns: false where no passkey is asked for on the link, or either side does not use these notifications.
    package func reportKeypress(_ kind: KeypressNotification.Kind, on identifier: LinkIdentifier) -> Bool {
        guard let link = links[identifier] else { return false }
        let steps = link.protection.channel.pressed(kind, at: loop.now, random: &random)
        guard !steps.isEmpty else { return false }
        proceed(link, steps, wasPairing: true)
        endInput()
        return true
    }

    func takeBackQuestion(on link: Link) {
        let question = link.protection.question
        link.protection.question = nil
        link.protection.replacementDeadline = nil
        if let question { deliver(.withdrawal(question.takeBack)) }
    }

    // MARK: Outcomes

    private func pairingCompleted(_ outcome: PairingOutcome, on link: Link) {
        link.protection.expectedKey = nil
        takeBackQuestion(on: link)
        // The peer gives its identity only now: it may be, or claim to be, a device that is connected or bonded.
        let identity = outcome.bond.identity
        if let only = link.protection.onlyIdentity, identity != only {
            return reject(.refused("the peer is bonded as \(only) and claims to be \(identity)"), on: link)
        }
        if isConnected(identity, apartFrom: link) {
            return reject(.refused("the peer claims to be \(identity), which is connected already"), on: link)
        }
        if let obstacle = obstacleOfAcceptList(toIdentity: outcome.bond.identity, link.protection.policy) {
            return reject(obstacle, on: link)
        }
        admit(outcome, on: link, isConfirmed: false)
    }

    private func isConnected(_ address: DeviceAddress, apartFrom link: Link) -> Bool {
        links.values.contains { $0 !== link && !$0.isDisconnecting && $0.isWith(anyOf: [address]) }
    }

    /// The app has not said in time whether another peer's bond is replaced.
    func replacementTimedOut(on link: Link) {
        link.protection.replacementDeadline = nil
        guard link.protection.isAskedAboutReplacement else { return }
        takeBackQuestion(on: link)
        reject(.refused("it would replace a bond, and the question was not answered within 30 s"), on: link)
    }

    /// Has the bond database decide about the keys of a pairing, and uses them.
    ///
    /// - Parameter isConfirmed: whether the app has allowed the bond to replace that of another peer.
    private func admit(_ outcome: PairingOutcome, on link: Link, isConfirmed: Bool) {
        let peer = link.identity
        let (decision, effects) = bonds.admit(
            outcome,
            from: peer,
            keeping: link.att.isTrusted ? link.session.persistentState : nil,
            isForApp: link.protection.initiative == .app,
            isConfirmed: isConfirmed,
            inUse: connectedIdentities
        )
        switch decision {
        case .refused(let error): return reject(error, on: link)
        case .replacesOther(let strength): return askAboutReplacement(of: strength, by: outcome, on: link)
        case .bonded:
            link.identity = outcome.bond.identity
            link.protection.passingBond = nil
            link.protection.loss = nil
        case .keptForLink:
            link.protection.passingBond = outcome.bond
            keysChanged(of: link)
        }
        perform(effects)
        pairingAttempts.succeeded(peer)
        paired(outcome, on: link, isBonded: decision == .bonded)
    }

    private func askAboutReplacement(of strength: KeyStrength, by outcome: PairingOutcome, on link: Link) {
        guard link.protection.policy.bondReplacement == .whenConsented else {
            return reject(.refused("it would replace the bond of \(outcome.bond.identity)"), on: link)
        }
        let inquiry = PairingInquiry(
            link: link.identifier,
            peer: outcome.bond.identity,
            question: .consent(outcome.model, outcome.strength),
            isStartedHere: link.protection.initiative != .peer,
            replaces: strength,
            isProven: link.protection.isBondProven
        )
        put(inquiry, for: .replacement(outcome), on: link)
        link.protection.replacementDeadline = loop.now + .seconds(30)
        armTimer(of: link)
    }

    /// A pairing has succeeded, and its keys are used.
    private func paired(_ outcome: PairingOutcome, on link: Link, isBonded: Bool) {
        logger.info("paired with \(outcome.bond.identity)\(isBonded ? "" : " without a bond")")
        emit(
            .paired(
                link.identifier,
                PairingResult(
                    peer: link.peer,
                    identity: outcome.bond.identity,
                    model: outcome.model,
                    strength: outcome.strength,
                    isBonded: isBonded
                )
            )
        )
        if isBonded { bondWasProven(on: link) }
        pursueSecurity(of: link)
        encryptionSettled(on: link)
    }

    /// Ends a link whose pairing has succeeded and may not be kept.
    private func reject(_ error: SecurityError, on link: Link) {
        emit(.pairingFailed(link.identifier, peer: link.identity, error))
        pairingAttempts.failed(link.identity, at: loop.now)
        failSecurityWaiters(of: link, .security(error))
        giveUp(link, .controller(.authenticationFailure), telling: .authenticationFailure)
    }

    private func pairingFailed(_ failure: PairingFailure, on link: Link) {
        link.protection.expectedKey = nil
        takeBackQuestion(on: link)
        guard !link.protection.isCentralAsked else {
            // The central has not followed a Security Request: nothing has begun.
            link.protection.isCentralAsked = false
            failSecurityWaiters(of: link, .security(failure == .timedOut ? .timedOut : .pairing(failure)))
            return encryptionSettled(on: link)
        }
        let error = link.protection.refusal ?? .pairing(failure)
        link.protection.refusal = nil
        pairingAttempts.failed(
            link.identity,
            countsForAll: link.protection.isSecretAtStake && !link.isChosenByApp(link.protection.initiative),
            at: loop.now
        )
        logger.info("pairing with \(link.peer) failed: \(error)")
        emit(.pairingFailed(link.identifier, peer: link.identity, error))
        failSecurityWaiters(of: link, .security(error))
        if link.protection.strength != nil, !isAdmittedByAcceptList(link) {
            // The pairing has encrypted the link, and the peer has withheld its identity.
            return giveUp(link, .controller(.authenticationFailure), telling: .authenticationFailure)
        }
        encryptionSettled(on: link)
    }
}
