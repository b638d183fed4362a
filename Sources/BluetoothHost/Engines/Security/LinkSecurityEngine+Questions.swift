import BLESMP
import BluetoothTypes

// The questions about a pairing to the app.
extension LinkSecurityEngine {
    /// Asks the app, unless the policy decides.
    ///
    /// - Returns: the steps of the Security Manager after a refusal by the policy.
    mutating func ask(_ question: PairingQuestion, _ context: inout SecurityContext) -> [PairingStep] {
        guard case .pairing(var work) = state else { return [] }
        switch question {
        case .showPasskey, .enterPasskey, .compare: work.isSecretAtStake = true
        case .consent(let model, let strength):
            work.usesOutOfBandData = model == .outOfBand
            if let refusal = refusal(of: model, strength, context) { return refuse(work, refusal, &context) }
        }
        if let earlier = work.question { effects.append(.withdraw(earlier.number)) }
        let asked = makeQuestion(
            question,
            about: context.peer,
            work.initiative,
            replaces: context.bondStrength
        )
        work.question = asked
        state = .pairing(work)
        effects.append(.ask(asked.inquiry, number: asked.number))
        return []
    }

    /// Decides whether a pairing may begin to which the app consents later. It is refused at once if the policy would
    /// refuse it without asking the app, or if no app can consent.
    ///
    /// - Returns: the steps of the Security Manager after the decision.
    mutating func checkPolicy(
        _ model: AssociationModel,
        _ strength: KeyStrength,
        _ context: inout SecurityContext
    ) -> [PairingStep] {
        guard case .pairing(let work) = state else { return [] }
        var refusal = refusal(of: model, strength, context)
        if refusal == nil, !context.hasPairingHandler {
            refusal = refusalWithoutApp(
                of: .consent(model, strength),
                isStartedHere: isStartedHere(work.initiative),
                replaces: context.bondStrength,
                isReplacementWanted: work.replacesBond
            ).map { .refused($0) }
        }
        if let refusal { return refuse(work, refusal, &context) }
        return securityManager.answer(.accept, at: context.now, random: &context.random)
    }

    /// The reason why the policy refuses a pairing without asking the app; nil if it asks.
    private func refusal(
        of model: AssociationModel,
        _ strength: KeyStrength,
        _ context: SecurityContext
    ) -> SecurityError? {
        if let existing = context.bondStrength, strength.isWeaker(than: existing) { return .weakerThanBond(strength) }
        if model == .justWorks, policy.justWorks == .never { return .refused("the policy refuses just works") }
        if policy.bonds, let limit = context.reachedBondLimit, context.bond == nil { return .tooManyBonds(limit) }
        return nil
    }

    private mutating func refuse(
        _ work: PairingWork,
        _ refusal: SecurityError,
        _ context: inout SecurityContext
    ) -> [PairingStep] {
        var work = work
        work.refusal = refusal
        state = .pairing(work)
        return securityManager.answer(.refuse, at: context.now, random: &context.random)
    }

    /// Makes a question with a new number.
    ///
    /// - Parameter strength: the strength of the bond that the pairing would replace.
    mutating func makeQuestion(
        _ question: PairingQuestion,
        about peer: DeviceAddress,
        _ initiative: SecurityInitiative,
        replaces strength: KeyStrength?
    ) -> SecurityQuestion {
        lastQuestionNumber += 1
        let inquiry = PairingInquiry(
            link: link,
            peer: peer,
            question: question,
            isStartedHere: isStartedHere(initiative),
            replaces: strength,
            isIdentityVerified: isIdentityVerified
        )
        return SecurityQuestion(number: lastQuestionNumber, inquiry: inquiry)
    }

    /// Handles the answer to a question. An answer to another question than the current one is ignored.
    ///
    /// - Parameters:
    ///   - isPasskeyReused: whether the passkey in the answer was used before.
    ///   - refusal: the reason that is reported for a refusal.
    mutating func answered(
        _ number: UInt64,
        _ answer: PairingAnswer,
        isPasskeyReused: Bool = false,
        refusal: String = "it was not consented to",
        _ context: inout SecurityContext
    ) -> [SecurityEffect] {
        switch state {
        case .pairing(var work) where work.question?.number == number:
            guard let question = work.question.take() else { break }
            var answer = answer
            if answer == .refuse { work.refusal = .refused(refusal) }
            if !question.inquiry.question.isAnswered(by: answer) {
                work.refusal = .refused("the answer does not fit the question")
                answer = .refuse
            }
            if isPasskeyReused, !isChosenByApp(work.initiative) {
                work.refusal = .refused("the passkey was used before; each pairing needs another one")
                answer = .refuse
            }
            if work.usesOutOfBandData, answer != .refuse {
                if work.isOutOfBandDataSpent {
                    work.refusal = .refused("another pairing has used the out of band data")
                    answer = .refuse
                } else {
                    work.usesOutOfBandData = false
                    effects.append(.outOfBandDataUsed(securityManager.parameters))
                }
            }
            state = .pairing(work)
            perform(securityManager.answer(answer, at: context.now, random: &context.random), &context)
            endRefusedPairing(context)
        case .awaitingConsent(let work, let question, _) where question.number == number:
            // The accept list may have changed since the question was asked.
            let obstacle = obstacleOfAcceptList(toIdentity: work.outcome.bond.identity)
            if answer == .accept, obstacle == nil {
                requestBondDecision(about: work, isConfirmed: true)
            } else {
                rejectPairing(work, obstacle ?? .refused(refusal), context)
            }
        case .settled, .requesting, .encrypting, .pairing, .awaitingBondDecision, .awaitingConsent, .ending, .ended:
            break
        }
        return finishInput(&context)
    }

    /// Ends the link if the Security Manager continues a pairing that was refused.
    ///
    /// A passkey can be refused after the peer has proved that it has the passkey. The key of the refused pairing then
    /// encrypts the link, or soon will.
    private mutating func endRefusedPairing(_ context: SecurityContext) {
        guard case .pairing(let work) = state, let refusal = work.refusal else { return }
        for case .send(let pdu) in securityManager.cancel(.passkeyEntryFailed) { effects.append(.send(pdu)) }
        reportFailure(of: work, refusal, context)
        failAndDisconnect(work.current, work.waiting, refusal, context)
    }

    /// Answers a question if no app does. The policy decides about consent. A question that needs a person is refused.
    mutating func unanswered(_ number: UInt64, _ context: inout SecurityContext) -> [SecurityEffect] {
        guard let question = state.question, question.number == number else { return [] }
        let inquiry = question.inquiry
        let isReplacementWanted =
            switch state {
            case .pairing(let work): work.replacesBond
            case .awaitingConsent(let work, _, _): consentsToReplacement(afterPairing: work)
            case .settled, .requesting, .encrypting, .awaitingBondDecision, .ending, .ended: false
            }
        let refusal = refusalWithoutApp(
            of: inquiry.question,
            isStartedHere: inquiry.isStartedHere,
            replaces: inquiry.replaces,
            isReplacementWanted: isReplacementWanted
        )
        return answered(number, refusal == nil ? .accept : .refuse, refusal: refusal ?? "", &context)
    }

    /// Whether the app has consented that a completed pairing replaces the bond with the identity that the peer has
    /// given.
    ///
    /// The app cannot know the identity of a peer at a private address that no bond resolves. A bonded device that was
    /// reset has such an address, because it has another key for its addresses. So the app consents if it has asked for
    /// a new pairing, this one has served its call, and the call accepts the key. A peer that was recognized must not
    /// replace the bond of another one.
    private func consentsToReplacement(afterPairing work: CompletedPairing) -> Bool {
        role == .central && work.peer.kind == .resolvablePrivate
            && work.waiting.contains { call in
                call.initiative == .app && call.lacksNewPairing && call.required.isMet(by: work.outcome.strength)
            }
    }

    /// The reason why a question is refused that no app can answer; nil if it is accepted.
    ///
    /// - Parameters:
    ///   - strength: the strength of the bond that the pairing would replace; nil if it replaces none.
    ///   - isReplacementWanted: whether the app has asked for a pairing that replaces the bond.
    private func refusalWithoutApp(
        of question: PairingQuestion,
        isStartedHere: Bool,
        replaces strength: KeyStrength?,
        isReplacementWanted: Bool
    ) -> String? {
        if strength != nil, !isReplacementWanted {
            return "it would replace a bond, and there is no pairing delegate to consent"
        }
        switch question {
        case .consent(.justWorks, _):
            return policy.justWorks == .always || isStartedHere
                ? nil : "the peer began it, and there is no pairing delegate to consent"
        case .consent(.outOfBand, _): return nil
        case .consent, .showPasskey, .enterPasskey, .compare: return "there is no pairing delegate to answer"
        }
    }
}

extension PairingQuestion {
    /// Whether an answer is one to this question. Each question can be refused.
    fileprivate func isAnswered(by answer: PairingAnswer) -> Bool {
        switch (self, answer) {
        case (_, .refuse), (.showPasskey, _), (.enterPasskey, .passkey), (.compare, .accept), (.consent, .accept): true
        case (.enterPasskey, _), (.compare, _), (.consent, _): false
        }
    }
}
