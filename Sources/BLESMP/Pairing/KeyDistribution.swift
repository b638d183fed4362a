import BluetoothTypes

/// Phase 3, on the encrypted link: the responder distributes its keys, then the initiator
/// (Vol 3, Part H, 2.4.3 and 3.6.1).
struct KeyDistribution: Sendable {
    /// The next PDU that the peer sends.
    enum Expected: Sendable {
        case longTermKey
        case identification(of: UInt128)
        case resolvingKey
        case identityAddress(resolvingKey: UInt128)
        case signingKey
    }

    let agreement: Agreement
    private var bond: Bond
    /// The next expected key; nil once the peer has sent everything.
    private var expected: Expected?

    /// Begins once the link is encrypted with the key of phase 2.
    init(
        _ agreement: Agreement,
        key: LongTermKey,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) {
        self.agreement = agreement
        bond = Bond(identity: agreement.terms.peerAddress)
        bond.peerIOCapability = agreement.peerFeatures.ioCapability
        if agreement.strength.isSecureConnections {
            bond.centralKey = key
            bond.peripheralKey = key
        }
        expected = Self.first(of: agreement.peerKeys)
        if agreement.terms.role == .responder || expected == nil { distribute(in: &context) }
    }

    /// The outcome of the pairing; nil until all keys are distributed.
    var outcome: PairingOutcome? {
        guard expected == nil else { return nil }
        return PairingOutcome(
            model: agreement.model,
            strength: agreement.strength,
            bond: bond,
            isBonded: agreement.isBonded
        )
    }

    /// Takes a key of the peer.
    mutating func receive(
        _ pdu: SecurityManagerPDU,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) {
        switch (expected, pdu) {
        case (.longTermKey, .encryptionInformation(let command)):
            let key = agreement.shortened(command.longTermKey)
            guard key != 0 else { throw .keyRejected }
            expected = .identification(of: key)
        case (.identification(let key), .centralIdentification(let command)):
            bond.centralKey = LongTermKey(
                value: key,
                encryptedDiversifier: command.encryptedDiversifier,
                randomNumber: command.randomNumber,
                strength: agreement.strength
            )
            expected = Self.first(of: agreement.peerKeys.intersection([.identity, .signing]))
        case (.resolvingKey, .identityInformation(let command)):
            expected = .identityAddress(resolvingKey: command.resolvingKey)
        case (.identityAddress(let key), .identityAddressInformation(let command)):
            var address = command.address
            if address.value == 0 { address = substituteIdentity(of: key, toolbox: context.toolbox) }
            guard address != agreement.terms.identity.address else { throw .keyRejected }
            // A device connected by its identity address has no other one: a contradicting address is not stored.
            let peerAddress = agreement.terms.peerAddress
            if !peerAddress.isLasting || address == peerAddress {
                bond.identity = address
                // A device without private addresses sends zero (3.6.4), a key that anyone could use.
                bond.identityResolvingKey = key == 0 ? nil : key
            }
            expected = Self.first(of: agreement.peerKeys.intersection(.signing))
        case (.signingKey, .signingInformation(let command)):
            // Some devices send zero because they sign nothing. Anyone could use this key, so it is not stored.
            if command.signatureKey != 0 {
                bond.peerSigningKey = SigningKey(
                    value: command.signatureKey,
                    isAuthenticated: agreement.strength.isAuthenticated
                )
            }
            expected = nil
        default:
            throw .unspecifiedReason
        }
        if expected == nil, agreement.terms.role == .initiator { distribute(in: &context) }
    }

    /// The identity address of a peer that has given zero instead (Vol 3, Part C, 10.7).
    ///
    /// It is the address of the connection if that is a public or static one. Otherwise it is the identity under which
    /// the owner knows the peer, or a static random address that depends on the peer's key only. So a peer that pairs
    /// again with a private address has the same identity. It has another one if it pairs with a public or static
    /// address after it was bonded under the address that depends on its key. Without a key, nothing identifies the
    /// peer, and the address of the connection stays.
    private func substituteIdentity(
        of resolvingKey: UInt128,
        toolbox: Toolbox<some SecurityFunctions>
    ) -> DeviceAddress {
        let address = agreement.terms.peerAddress
        guard !address.isLasting, resolvingKey != 0 else { return address }
        if let identity = agreement.terms.peerIdentity, identity.isLasting { return identity }
        let keyID: UInt32 = 0x6964_6E74  // "idnt"
        return .randomStatic(from: UInt64(truncatingIfNeeded: toolbox.h6(w: resolvingKey, keyID: keyID)))
    }

    private static func first(of keys: DistributedKeys) -> Expected? {
        if keys.contains(.encryption) { return .longTermKey }
        if keys.contains(.identity) { return .resolvingKey }
        return keys.contains(.signing) ? .signingKey : nil
    }

    private mutating func distribute(
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) {
        let keys = agreement.ownKeys
        if keys.contains(.encryption) {
            let key = LongTermKey(
                // Zero is a key that the peer may refuse.
                value: max(agreement.shortened(context.randomNumber()), 1),
                encryptedDiversifier: UInt16(truncatingIfNeeded: context.random.next()),
                // Zero names a key of LE Secure Connections.
                randomNumber: max(context.random.next(), 1),
                strength: agreement.strength
            )
            bond.peripheralKey = key
            context.send(EncryptionInformation(longTermKey: key.value))
            context.send(
                CentralIdentification(
                    encryptedDiversifier: key.encryptedDiversifier,
                    randomNumber: key.randomNumber
                )
            )
        }
        if keys.contains(.identity) {
            let identity = agreement.terms.identity
            context.send(IdentityInformation(resolvingKey: identity.resolvingKey ?? 0))
            context.send(IdentityAddressInformation(address: identity.address))
        }
        if keys.contains(.signing) {
            let key = SigningKey(
                value: max(context.randomNumber(), 1),
                isAuthenticated: agreement.strength.isAuthenticated
            )
            bond.ownSigningKey = key
            context.send(SigningInformation(signatureKey: key.value))
        }
    }
}
