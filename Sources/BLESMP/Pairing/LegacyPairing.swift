import BLEByteCoding
import BluetoothTypes

/// LE legacy pairing, phase 2 (Vol 3, Part H, 2.3.5.2 to 2.3.5.5). Both sides commit to a random value and then send
/// it, the initiator first.
struct LegacyPairing: Sendable {
    /// A random value and its confirm value.
    struct Commitment: Sendable {
        let random: UInt128
        let confirm: UInt128
    }

    enum State: Sendable {
        /// The user enters the passkey. A confirm value that the peer sends before is kept.
        case awaitingPasskey(peerConfirm: UInt128?)
        /// The peer's confirm value is expected. As the initiator, this device has sent its own.
        case awaitingConfirm(temporaryKey: UInt128, own: Commitment?)
        case awaitingRandom(temporaryKey: UInt128, own: Commitment, peerConfirm: UInt128)
    }

    let agreement: Agreement
    private var state: State

    /// Begins phase 2.
    init(
        _ agreement: Agreement,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) {
        self.agreement = agreement
        state = .awaitingPasskey(peerConfirm: nil)
        switch agreement.model {
        case .justWorks:
            commit(to: 0, in: &context)
        case .outOfBand:
            guard let temporaryKey = agreement.terms.parameters.temporaryKey else { throw .outOfBandNotAvailable }
            commit(to: temporaryKey, in: &context)
        case .passkeyShownHere:
            let passkey = context.passkey()
            context.ask(.showPasskey(passkey))
            commit(to: UInt128(passkey), in: &context)
        case .passkeyTypedHere, .passkeyTypedOnBoth:
            context.ask(.enterPasskey)
        case .numericComparison:
            throw .unspecifiedReason
        }
    }

    /// Takes a command of the peer.
    ///
    /// - Returns: the short term key, once both sides have proved that they know the temporary key; nil before.
    mutating func receive(
        _ pdu: SecurityManagerPDU,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) -> UInt128? {
        switch (state, pdu) {
        case (.awaitingPasskey(nil), .pairingConfirm(let command)) where agreement.terms.role == .responder:
            state = .awaitingPasskey(peerConfirm: command.value)
            return nil
        case (.awaitingConfirm(let temporaryKey, let own), .pairingConfirm(let command)):
            try receive(confirm: command.value, temporaryKey: temporaryKey, own: own, in: &context)
            return nil
        case (.awaitingRandom(let temporaryKey, let own, let confirm), .pairingRandom(let command)):
            return try receive(
                random: command.value,
                committedBy: confirm,
                temporaryKey: temporaryKey,
                own: own,
                in: &context
            )
        default:
            throw .unspecifiedReason
        }
    }

    /// Takes the passkey that the user has entered, if it is expected.
    mutating func enter(
        passkey: UInt32,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) {
        guard case .awaitingPasskey(let peerConfirm) = state else { return }
        commit(to: UInt128(passkey), in: &context)
        if let peerConfirm {
            try receive(confirm: peerConfirm, temporaryKey: UInt128(passkey), own: nil, in: &context)
        }
    }

    var isAwaitingPasskey: Bool {
        if case .awaitingPasskey = state { true } else { false }
    }

    private mutating func commit(
        to temporaryKey: UInt128,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) {
        var own: Commitment?
        if agreement.terms.role == .initiator {
            own = sendConfirm(temporaryKey: temporaryKey, in: &context)
        }
        state = .awaitingConfirm(temporaryKey: temporaryKey, own: own)
    }

    private func sendConfirm(
        temporaryKey: UInt128,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) -> Commitment {
        let random = context.randomNumber()
        let confirm = confirm(of: random, temporaryKey: temporaryKey, by: context.toolbox)
        context.send(PairingConfirm(value: confirm))
        return Commitment(random: random, confirm: confirm)
    }

    /// As the responder, answers with the own confirm value; as the initiator, with the committed random value.
    private mutating func receive(
        confirm: UInt128,
        temporaryKey: UInt128,
        own: Commitment?,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) {
        let commitment: Commitment
        if let own {
            // A peer without the key could reflect our own value (2.3.5.5).
            guard confirm != own.confirm else { throw .confirmValueFailed }
            context.send(PairingRandom(value: own.random))
            commitment = own
        } else {
            commitment = sendConfirm(temporaryKey: temporaryKey, in: &context)
        }
        state = .awaitingRandom(temporaryKey: temporaryKey, own: commitment, peerConfirm: confirm)
    }

    private func receive(
        random: UInt128,
        committedBy confirm: UInt128,
        temporaryKey: UInt128,
        own: Commitment,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) -> UInt128 {
        guard random != own.random, self.confirm(of: random, temporaryKey: temporaryKey, by: context.toolbox) == confirm
        else { throw .confirmValueFailed }
        switch agreement.terms.role {
        case .initiator:
            return context.toolbox.s1(k: temporaryKey, r1: random, r2: own.random)
        case .responder:
            context.send(PairingRandom(value: own.random))
            return context.toolbox.s1(k: temporaryKey, r1: own.random, r2: random)
        }
    }

    private func confirm(
        of random: UInt128,
        temporaryKey: UInt128,
        by toolbox: Toolbox<some SecurityFunctions>
    ) -> UInt128 {
        toolbox.c1(
            k: temporaryKey,
            r: random,
            preq: PacketBuffer.bytes { agreement.request.encode(into: &$0) },
            pres: PacketBuffer.bytes { agreement.response.encode(into: &$0) },
            ia: agreement.initiatorAddress,
            ra: agreement.responderAddress
        )
    }
}
