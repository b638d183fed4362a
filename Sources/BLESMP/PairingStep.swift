import BluetoothTypes

/// An action of the owner of a ``SecurityChannel``. The owner executes actions in order.
public enum PairingStep: Hashable, Sendable {
    /// Send a PDU on the Security Manager's channel.
    case send([UInt8])
    /// Ask the app, or show it something; the answer goes to ``SecurityChannel/answer(_:at:random:)``.
    case ask(PairingQuestion)
    /// Decide whether a pairing by this model and with this strength may begin, although the consent to it is asked for
    /// later: see ``PairingParameters/delaysJustWorksConsent``. `accept` or `refuse` goes to
    /// ``SecurityChannel/answer(_:at:random:)`` before any other input. The peer has received nothing yet that depends
    /// on the decision.
    case checkPolicy(AssociationModel, KeyStrength)
    /// The peer has sent a keypress notification, which needs no answer.
    case keyPressed(KeypressNotification.Kind)
    /// As the central: start encryption with this key (LE Enable Encryption). If the link is encrypted, this refreshes
    /// the key.
    case encrypt(LongTermKey)
    /// As the peripheral: the key for the central's next LE Long Term Key Request with these EDIV and Rand. Until the
    /// pairing has ended, the controller must get no other key.
    case expectEncryption(LongTermKey)
    /// As the central: the peripheral requests security (2.4.6); nothing has begun.
    case securityRequested(SecurityRequirements)
    /// Pairing has finished and its keys are distributed; the link is encrypted with a key of this strength.
    case completed(PairingOutcome)
    /// Pairing has failed and has no result.
    case failed(PairingFailure)
}

/// The security that a Security Request or a local caller requires of a link.
public struct SecurityRequirements: Hashable, Sendable {
    /// Whether both sides are to store the keys.
    public var bonds: Bool
    /// Whether the key must be protected against a man in the middle (MITM).
    public var isAuthenticated: Bool
    /// Whether the key must be of LE Secure Connections.
    public var isSecureConnections: Bool

    /// Creates requirements.
    public init(bonds: Bool, isAuthenticated: Bool, isSecureConnections: Bool) {
        self.bonds = bonds
        self.isAuthenticated = isAuthenticated
        self.isSecureConnections = isSecureConnections
    }
}

/// A question to the user, or to the app on the user's behalf. A question that is open when the pairing ends becomes
/// void.
public enum PairingQuestion: Hashable, Sendable {
    /// Whether to pair at all, by this model and with this strength; answered by ``PairingAnswer/accept`` or `refuse`.
    /// The question is asked before the peer receives anything that depends on the answer. By default, that is before
    /// the Pairing Response or the public key; see ``PairingParameters/delaysJustWorksConsent``.
    case consent(AssociationModel, KeyStrength)
    /// Show this passkey, 0 to 999,999, in six digits. It needs no answer, but `refuse` ends the pairing. It is
    /// ignored once the encryption with the pairing's key has begun; ``SecurityChannel/cancel(_:)`` then ends the
    /// pairing.
    case showPasskey(UInt32)
    /// Ask for the passkey that the other device shows, or that the user enters on both; answered by `passkey` or
    /// `refuse`.
    case enterPasskey
    /// Compare this number, 0 to 999,999, with the number on the other device; answered by `accept` or `refuse`.
    case compare(UInt32)
}

/// The answer to a ``PairingQuestion``.
public enum PairingAnswer: Hashable, Sendable {
    /// Yes: pair, or the numbers are equal.
    case accept
    /// No: the pairing ends.
    case refuse
    /// The passkey that the user entered, 0 to 999,999.
    case passkey(UInt32)
}

/// The outcome of a pairing.
public struct PairingOutcome: Hashable, Sendable {
    /// The way in which the devices authenticated each other.
    public var model: AssociationModel
    /// The strength of the key.
    public var strength: KeyStrength
    /// The keys of both sides: to be stored if ``isBonded``, otherwise to be dropped with the connection.
    public var bond: Bond
    /// Whether both sides store the keys.
    public var isBonded: Bool

    /// Creates an outcome.
    public init(model: AssociationModel, strength: KeyStrength, bond: Bond, isBonded: Bool) {
        self.model = model
        self.strength = strength
        self.bond = bond
        self.isBonded = isBonded
    }
}

/// The reason why a pairing has failed.
public enum PairingFailure: Error, Hashable, Sendable {
    /// This device has ended the pairing, for a reason of Vol 3, Part H, 3.5.5.
    case ended(PairingFailedReason)
    /// The peer has ended the pairing.
    case endedByPeer(PairingFailedReason)
    /// The pairing did not proceed for 30 s (3.4); the link's Security Manager can no longer be used.
    case timedOut
    /// The link could not be encrypted with the new key.
    case encryptionFailed
    /// The link has ended.
    case linkEnded
}

#if !hasFeature(Embedded)
    extension PairingStep: CustomReflectable {
        /// A PDU to send may contain a key, so only its command code is shown.
        public var customMirror: Mirror {
            switch self {
            case .send(let pdu): Mirror(self, children: ["send": Array(pdu.prefix(1))], displayStyle: .enum)
            case .encrypt(let key): Mirror(self, children: ["encrypt": key], displayStyle: .enum)
            case .expectEncryption(let key): Mirror(self, children: ["expectEncryption": key], displayStyle: .enum)
            case .completed(let outcome): Mirror(self, children: ["completed": outcome], displayStyle: .enum)
            case .failed(let failure): Mirror(self, children: ["failed": failure], displayStyle: .enum)
            default: Mirror(self, children: [], displayStyle: .enum)
            }
        }
    }
#endif
