/// One pairing, from the Pairing Request to the last key (Vol 3, Part H, 2.1).
enum Pairing: Sendable {
    /// As the initiator: the Pairing Request is sent.
    case awaitingResponse(PairingTerms, PairingRequest)
    /// The user or the app decides whether to pair with the selected model, or the owner does if the user is asked
    /// later.
    case awaitingConsent(Agreement)
    case legacy(LegacyPairing)
    case secureConnections(SecureConnectionsPairing)
    /// Both sides have the key; the controllers encrypt the link with it.
    case encrypting(Agreement, LongTermKey)
    case distributing(KeyDistribution)

    /// Begins as the initiator.
    init(_ terms: PairingTerms, in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>) {
        context.send(terms.request)
        self = .awaitingResponse(terms, terms.request)
    }

    /// Begins as the responder.
    init(
        _ terms: PairingTerms,
        request: PairingRequest,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) {
        self.init(try Agreement(terms: terms, request: request, response: terms.response(to: request)), in: &context)
    }

    /// Asks for the consent to the model, or for the owner's decision if the consent is asked for later.
    private init(
        _ agreement: Agreement,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) {
        if agreement.delaysConsent {
            context.checkPolicy(agreement.model, agreement.strength)
        } else {
            context.ask(.consent(agreement.model, agreement.strength))
        }
        self = .awaitingConsent(agreement)
    }

    /// Begins phase 2. The responder sends the Pairing Response before.
    private static func phase2(
        _ agreement: Agreement,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) -> Pairing {
        if agreement.terms.role == .responder { context.send(agreement.response) }
        return agreement.strength.isSecureConnections
            ? .secureConnections(try SecureConnectionsPairing(agreement, in: &context))
            : .legacy(try LegacyPairing(agreement, in: &context))
    }

    /// The outcome of the pairing; nil until it has finished.
    var outcome: PairingOutcome? {
        guard case .distributing(let distribution) = self else { return nil }
        return distribution.outcome
    }

    // MARK: The peer

    /// Takes a command of the peer.
    mutating func receive(
        _ pdu: SecurityManagerPDU,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) {
        switch (self, pdu) {
        case (.awaitingResponse, .securityRequest):
            // The Security Request has crossed with the Pairing Request.
            break
        case (.encrypting(let agreement, _), .securityRequest) where agreement.terms.role == .initiator:
            // The requested encryption has begun (2.4.6).
            break
        case (.awaitingResponse(let terms, let request), .pairingResponse(let response)):
            self = Pairing(try Agreement(terms: terms, request: request, response: response), in: &context)
        case (.awaitingConsent(let agreement), .keypressNotification(let command))
        where agreement.mayReceiveKeypressBeforePhase2:
            if agreement.usesKeypressNotifications { context.report(command.kind) }
        case (.legacy(let pairing), .keypressNotification(let command))
        where pairing.agreement.model.isTypedByPeer:
            if pairing.agreement.usesKeypressNotifications { context.report(command.kind) }
        case (.secureConnections(let pairing), .keypressNotification(let command))
        where pairing.agreement.model.isTypedByPeer:
            if pairing.agreement.usesKeypressNotifications { context.report(command.kind) }
        case (.legacy(var pairing), _):
            let key = try pairing.receive(pdu, in: &context)
            self = .legacy(pairing)
            if let key { encrypt(with: key, by: pairing.agreement, in: &context) }
        case (.secureConnections(var pairing), _):
            let key = try pairing.receive(pdu, in: &context)
            self = .secureConnections(pairing)
            if let key { encrypt(with: key, by: pairing.agreement, in: &context) }
        case (.distributing(var distribution), _):
            try distribution.receive(pdu, in: &context)
            self = .distributing(distribution)
        default:
            throw .unspecifiedReason
        }
    }

    // MARK: A person

    /// Sends a keypress notification, if this device awaits a passkey and both sides support these notifications.
    func pressed(
        _ kind: KeypressNotification.Kind,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) {
        let agreement: Agreement
        switch self {
        case .legacy(let pairing) where pairing.isAwaitingPasskey: agreement = pairing.agreement
        case .secureConnections(let pairing) where pairing.isAwaitingPasskey: agreement = pairing.agreement
        default: return
        }
        if agreement.usesKeypressNotifications { context.send(KeypressNotification(kind: kind)) }
    }

    mutating func receive(
        _ answer: PairingAnswer,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) {
        switch (self, answer) {
        case (.awaitingConsent(let agreement), .accept):
            self = try Pairing.phase2(agreement, in: &context)
        case (.awaitingConsent(let agreement), .refuse):
            throw agreement.terms.role == .responder ? .pairingNotSupported : .unspecifiedReason
        case (.legacy(var pairing), .passkey(let passkey)) where pairing.isAwaitingPasskey:
            guard passkey <= Passkey.maximum else { throw .passkeyEntryFailed }
            try pairing.enter(passkey: passkey, in: &context)
            self = .legacy(pairing)
        case (.secureConnections(var pairing), .passkey(let passkey)) where pairing.isAwaitingPasskey:
            guard passkey <= Passkey.maximum else { throw .passkeyEntryFailed }
            try pairing.enter(passkey: passkey, in: &context)
            self = .secureConnections(pairing)
        case (.secureConnections(var pairing), .accept):
            let key = try pairing.acceptNumber(in: &context)
            self = .secureConnections(pairing)
            if let key { encrypt(with: key, by: pairing.agreement, in: &context) }
        case (.legacy(let pairing), .refuse)
        where pairing.isAwaitingPasskey || pairing.agreement.model == .passkeyShownHere:
            throw .passkeyEntryFailed
        case (.secureConnections(let pairing), .refuse):
            if pairing.isComparing {
                throw pairing.agreement.model == .justWorks ? .unspecifiedReason : .numericComparisonFailed
            }
            if pairing.isAwaitingPasskey || pairing.agreement.model == .passkeyShownHere { throw .passkeyEntryFailed }
        default:
            break
        }
    }

    // MARK: The controller

    private mutating func encrypt(
        with value: UInt128,
        by agreement: Agreement,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) {
        let key = agreement.key(value)
        context.encrypt(as: agreement.terms.role, with: key)
        self = .encrypting(agreement, key)
    }

    /// Takes the result of an attempt to encrypt the link.
    ///
    /// - Parameter strength: the strength of the link's key; nil if the link is not encrypted.
    mutating func encryptionChanged(
        to strength: KeyStrength?,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailure) {
        switch self {
        case .encrypting(let agreement, let key):
            guard strength == agreement.strength else { throw .encryptionFailed }
            self = .distributing(KeyDistribution(agreement, key: key, in: &context))
        case .distributing(let distribution):
            guard strength == distribution.agreement.strength else { throw .encryptionFailed }
        case .awaitingResponse, .awaitingConsent, .legacy, .secureConnections:
            // Only the central starts encryption, and not during these phases.
            if strength != nil { throw .ended(.unspecifiedReason) }
        }
    }
}
