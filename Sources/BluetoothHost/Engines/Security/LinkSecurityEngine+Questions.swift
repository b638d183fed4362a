import BLESMP
import BluetoothTypes

// The questions about a pairing to the app.
extension LinkSecurityEngine {
    /// Asks the app, unless the policy decides.
    ///
    /// - Returns: the steps of the Security Manager after a refusal by the policy.
    mutating func ask(_ question: PairingQuestion, _ context: inout SecurityContext) -> [PairingStep] {
        guard case .pairing(var work) = state else { return [] }
        var refusal: SecurityError?
        switch question {
        case .showPasskey, .enterPasskey, .compare: work.isSecretAtStake = true
        case .consent(let model, let strength):
            work.usesOutOfBandData = model == .outOfBand
            if let existing = context.bondStrength, strength.isWeaker(than: existing) {
                refusal = .weakerThanBond(strength)
            } else if model == .justWorks, policy.justWorks == .never {
                refusal = .refused("the policy refuses just works")
            } else if policy.bonds, let limit = context.reachedBondLimit, context.bond == nil {
                refusal = .tooManyBonds(limit)
            }
        }
        if let refusal {
            work.refusal = refusal
            state = .pairing(work)
            return securityManager.answer(.refuse, at: context.now, random: &context.random)
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
            isStartedHere: initiative != .peer,
            replaces: strength,
            isProven: isIdentityVerified
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
            var answer = answer
            work.question = nil
            if answer == .refuse { work.refusal = .refused(refusal) }
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

    /// Answers a question if no app does. The policy decides about consent. A question that needs a person is refused.
    mutating func unanswered(_ number: UInt64, _ context: inout SecurityContext) -> [SecurityEffect] {
        guard let question = state.question, question.number == number else { return [] }
        var refusal: String?
        switch question.inquiry.question {
        case .consent(.justWorks, _):
            if policy.justWorks != .always, !question.inquiry.isStartedHere {
                refusal = "the peer began it, and there is no pairing delegate to consent"
            }
        case .consent(.outOfBand, _): break
        case .consent, .showPasskey, .enterPasskey, .compare: refusal = "there is no pairing delegate to answer"
        }
        let isReplacementWanted = if case .pairing(let work) = state { work.replacesBond } else { false }
        if question.inquiry.replaces != nil, !isReplacementWanted {
            refusal = "it would replace a bond, and there is no pairing delegate to consent"
        }
        return answered(number, refusal == nil ? .accept : .refuse, refusal: refusal ?? "", &context)
    }
}
