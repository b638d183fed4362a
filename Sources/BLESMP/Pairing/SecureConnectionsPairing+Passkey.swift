import BluetoothTypes

/// The round of passkey entry for one bit of the passkey (Vol 3, Part H, 2.3.5.6.3).
///
/// Both sides commit to a nonce and the bit, and then send the nonce. So a peer that guesses a bit is detected before
/// the next bit.
struct PasskeyRound: Sendable {
    let passkey: UInt32
    /// The index of the bit; the least significant bit is 0.
    let index: UInt8
    let ownNonce: UInt128
    /// The confirm value of the peer.
    var peerConfirm: UInt128?

    static func first(
        of passkey: UInt32,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) -> PasskeyRound {
        PasskeyRound(passkey: passkey, index: 0, ownNonce: context.randomNumber())
    }

    /// The round for the next bit; nil after the last bit.
    func next(in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>) -> PasskeyRound? {
        guard index + 1 < Passkey.bitCount else { return nil }
        return PasskeyRound(passkey: passkey, index: index + 1, ownNonce: context.randomNumber())
    }

    func confirm(
        of nonce: UInt128,
        from: P256PublicKey,
        to: P256PublicKey,
        by toolbox: Toolbox<some SecurityFunctions>
    ) -> UInt128 {
        toolbox.f4(u: from.x, v: to.x, x: nonce, z: 0x80 | UInt8(truncatingIfNeeded: passkey >> UInt32(index) & 1))
    }
}

extension SecureConnectionsPairing {
    /// Takes the passkey that the user has entered, if it is expected.
    mutating func enter(
        passkey: UInt32,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) {
        guard case .awaitingPasskey(let exchange, let peerConfirm) = state else { return }
        let round = PasskeyRound.first(of: passkey, in: &context)
        begin(round, of: exchange, in: &context)
        if let peerConfirm { try receive(confirm: peerConfirm, in: round, of: exchange, in: &context) }
    }

    var isAwaitingPasskey: Bool {
        if case .awaitingPasskey = state { true } else { false }
    }

    mutating func begin(
        _ round: PasskeyRound,
        of exchange: Exchange,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) {
        if agreement.terms.role == .initiator { sendConfirm(of: round, of: exchange, in: &context) }
        state = .enteringPasskey(exchange, round)
    }

    private func ownConfirm(
        of round: PasskeyRound,
        of exchange: Exchange,
        by toolbox: Toolbox<some SecurityFunctions>
    ) -> UInt128 {
        round.confirm(of: round.ownNonce, from: ownKey, to: exchange.peerKey, by: toolbox)
    }

    private func sendConfirm(
        of round: PasskeyRound,
        of exchange: Exchange,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) {
        context.send(PairingConfirm(value: ownConfirm(of: round, of: exchange, by: context.toolbox)))
    }

    mutating func receive(
        confirm: UInt128,
        in round: PasskeyRound,
        of exchange: Exchange,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) {
        guard round.peerConfirm == nil else { throw .unspecifiedReason }
        // A peer that does not know the passkey could reflect our own value.
        guard confirm != ownConfirm(of: round, of: exchange, by: context.toolbox) else { throw .confirmValueFailed }
        switch agreement.terms.role {
        case .initiator: context.send(PairingRandom(value: round.ownNonce))
        case .responder: sendConfirm(of: round, of: exchange, in: &context)
        }
        var round = round
        round.peerConfirm = confirm
        state = .enteringPasskey(exchange, round)
    }

    mutating func receive(
        random: UInt128,
        in round: PasskeyRound,
        of exchange: Exchange,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) {
        guard let peerConfirm = round.peerConfirm else { throw .unspecifiedReason }
        guard random != round.ownNonce,
            round.confirm(of: random, from: exchange.peerKey, to: ownKey, by: context.toolbox) == peerConfirm
        else { throw .confirmValueFailed }
        if agreement.terms.role == .responder { context.send(PairingRandom(value: round.ownNonce)) }
        if let next = round.next(in: &context) {
            begin(next, of: exchange, in: &context)
        } else {
            beginStage2(
                of: exchange,
                ownNonce: round.ownNonce,
                peerNonce: random,
                passkey: round.passkey,
                in: &context
            )
        }
    }
}
