import BLEByteCoding
import BluetoothTypes

/// LE Secure Connections, phase 2 (Vol 3, Part H, 2.3.5.6): the public keys, then authentication stage 1, which depends
/// on the association model, then stage 2, the DHKey checks. The initiator always goes first.
struct SecureConnectionsPairing: Sendable {
    /// The peer's public key and the Diffie-Hellman key.
    struct Exchange: Sendable {
        let peerKey: P256PublicKey
        let sharedKey: DiffieHellmanKey
    }

    enum State: Sendable {
        case awaitingPublicKey
        /// As the initiator, in just works and numeric comparison: the responder commits to its nonce before it
        /// receives ours.
        case awaitingCommitment(Exchange, ownNonce: UInt128)
        case awaitingNonce(Exchange, ownNonce: UInt128, commitment: UInt128?)
        /// The user enters the passkey. A confirm value that the peer sends before is kept.
        case awaitingPasskey(Exchange, peerConfirm: UInt128?)
        case enteringPasskey(Exchange, PasskeyRound)
        /// The user compares the numbers, or is asked for a delayed consent. A check that the peer sends before is
        /// kept.
        case comparing(KeyCheck, peerCheck: UInt128?)
        case checking(KeyCheck)
    }

    let agreement: Agreement
    let ownPrivateKey: P256PrivateKey
    let ownKey: P256PublicKey
    var state = State.awaitingPublicKey

    /// Begins phase 2.
    init(
        _ agreement: Agreement,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) {
        self.agreement = agreement
        (ownPrivateKey, ownKey) = try Self.keyPair(for: agreement, in: &context)
        if agreement.terms.role == .initiator { context.send(PairingPublicKey(key: ownKey)) }
    }

    /// Takes a command of the peer.
    ///
    /// - Returns: the long term key, once both sides have proved that they know it; nil before.
    mutating func receive(
        _ pdu: SecurityManagerPDU,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) -> UInt128? {
        switch (state, pdu) {
        case (.awaitingPublicKey, .pairingPublicKey(let command)):
            try receive(command.key, in: &context)
        case (.awaitingCommitment(let exchange, let ownNonce), .pairingConfirm(let command)):
            context.send(PairingRandom(value: ownNonce))
            state = .awaitingNonce(exchange, ownNonce: ownNonce, commitment: command.value)
        case (.awaitingNonce(let exchange, let ownNonce, let commitment), .pairingRandom(let command)):
            try receive(
                nonce: command.value,
                committedBy: commitment,
                for: ownNonce,
                of: exchange,
                in: &context
            )
        case (.awaitingPasskey(let exchange, nil), .pairingConfirm(let command))
        where agreement.terms.role == .responder:
            state = .awaitingPasskey(exchange, peerConfirm: command.value)
        case (.enteringPasskey(let exchange, let round), .pairingConfirm(let command)):
            try receive(confirm: command.value, in: round, of: exchange, in: &context)
        case (.enteringPasskey(let exchange, let round), .pairingRandom(let command)):
            try receive(random: command.value, in: round, of: exchange, in: &context)
        case (.comparing(let check, nil), .pairingDHKeyCheck(let command)) where agreement.terms.role == .responder:
            state = .comparing(check, peerCheck: command.value)
        case (.checking(let check), .pairingDHKeyCheck(let command)):
            return try receive(check: command.value, against: check, in: &context)
        default:
            throw .unspecifiedReason
        }
        return nil
    }

    // MARK: Public keys

    /// The key pair behind the out-of-band data, if the peer has that data; otherwise a new key pair for each pairing.
    private static func keyPair(
        for agreement: Agreement,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) -> (P256PrivateKey, P256PublicKey) {
        if let secret = agreement.ownOutOfBandSecret {
            guard let key = context.toolbox.functions.publicKey(of: secret.privateKey) else {
                throw .outOfBandNotAvailable
            }
            return (secret.privateKey, key)
        }
        // One in 2^32 numbers is not a valid private key.
        for _ in 0..<4 {
            let words = (0..<2).map { _ in context.randomNumber() }
            let octets = PacketBuffer.bytes { for word in words { $0.append(word) } }
            guard let number = UInt256Bytes(leastSignificantFirst: octets) else { break }
            let privateKey = P256PrivateKey(number)
            if let key = context.toolbox.functions.publicKey(of: privateKey) { return (privateKey, key) }
        }
        throw .unspecifiedReason
    }

    private mutating func receive(
        _ peerKey: P256PublicKey,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) {
        let allowsDebugKey = agreement.terms.parameters.allowsDebugKey
        if peerKey.isDebugKey {
            guard allowsDebugKey else { throw .invalidParameters }
        } else if peerKey.x == ownKey.x {
            // Our own key, or its negative, reflected by a peer (2.3.5.6.1).
            throw .dhKeyCheckFailed
        }
        guard let sharedKey = context.toolbox.functions.sharedKey(ownPrivateKey, with: peerKey) else {
            // The key is not a point of the curve. This is the reason for it since Core 6.1 (3.5.5).
            throw .dhKeyCheckFailed
        }
        if let data = agreement.peerOutOfBandData {
            guard context.toolbox.f4(u: peerKey.x, v: peerKey.x, x: data.random, z: 0) == data.confirm else {
                throw .confirmValueFailed
            }
        }
        if agreement.terms.role == .responder { context.send(PairingPublicKey(key: ownKey)) }
        beginStage1(of: Exchange(peerKey: peerKey, sharedKey: sharedKey), in: &context)
    }

    // MARK: Authentication stage 1

    private mutating func beginStage1(
        of exchange: Exchange,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) {
        switch agreement.model {
        case .justWorks, .numericComparison:
            beginCommitment(of: exchange, in: &context)
        case .outOfBand:
            let nonce = context.randomNumber()
            if agreement.terms.role == .initiator { context.send(PairingRandom(value: nonce)) }
            state = .awaitingNonce(exchange, ownNonce: nonce, commitment: nil)
        case .passkeyShownHere:
            let passkey = context.passkey()
            context.ask(.showPasskey(passkey))
            begin(PasskeyRound.first(of: passkey, in: &context), of: exchange, in: &context)
        case .passkeyTypedHere, .passkeyTypedOnBoth:
            context.ask(.enterPasskey)
            state = .awaitingPasskey(exchange, peerConfirm: nil)
        }
    }

    /// Just works and numeric comparison (2.3.5.6.2).
    private mutating func beginCommitment(
        of exchange: Exchange,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) {
        let nonce = context.randomNumber()
        switch agreement.terms.role {
        case .initiator:
            state = .awaitingCommitment(exchange, ownNonce: nonce)
        case .responder:
            let confirm = context.toolbox.f4(u: ownKey.x, v: exchange.peerKey.x, x: nonce, z: 0)
            context.send(PairingConfirm(value: confirm))
            state = .awaitingNonce(exchange, ownNonce: nonce, commitment: nil)
        }
    }

    private mutating func receive(
        nonce: UInt128,
        committedBy commitment: UInt128?,
        for ownNonce: UInt128,
        of exchange: Exchange,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) {
        // A peer could reflect our own nonce.
        guard nonce != ownNonce else { throw .confirmValueFailed }
        if let commitment {
            guard context.toolbox.f4(u: exchange.peerKey.x, v: ownKey.x, x: nonce, z: 0) == commitment else {
                throw .confirmValueFailed
            }
        }
        if agreement.terms.role == .responder { context.send(PairingRandom(value: ownNonce)) }
        beginStage2(of: exchange, ownNonce: ownNonce, peerNonce: nonce, passkey: nil, in: &context)
    }
}

extension P256PublicKey {
    /// Whether this is the debug public key, whose private key is public (Vol 3, Part H, 2.3.5.6.1), or its negative.
    var isDebugKey: Bool {
        x.bytes == [
            0xE6, 0x9D, 0x35, 0x0E, 0x48, 0x01, 0x03, 0xCC, 0xDB, 0xFD, 0xF4, 0xAC, 0x11, 0x91, 0xF4, 0xEF,
            0xB9, 0xA5, 0xF9, 0xE9, 0xA7, 0x83, 0x2C, 0x5E, 0x2C, 0xBE, 0x97, 0xF2, 0xD2, 0x03, 0xB0, 0x20,
        ]
    }
}
