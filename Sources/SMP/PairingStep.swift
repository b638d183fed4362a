import BluetoothTypes

/// What the owner of a ``SecurityChannel`` does, in this order.
public enum PairingStep: Hashable, Sendable {
    /// Send a PDU on the Security Manager's channel.
    case send([UInt8])
    /// Ask the app, or show it something; the answer goes to ``SecurityChannel/answer(_:at:random:)``.
    case ask(PairingQuestion)
    /// The peer has sent a keypress notification, which needs no answer.
    case keyPressed(KeypressNotification.Kind)
    /// As the central: start encryption with this key (LE Enable Encryption; it pauses and refreshes one that is on).
    case encrypt(LongTermKey)
    /// As the peripheral: this is the key for the central's coming LE Long Term Key Request with these EDIV and Rand. Until
    /// the pairing has ended, the controller must be given no other one.
    case expectEncryption(LongTermKey)
    /// As the central: the peripheral asks for security (2.4.6); nothing has been begun.
    case securityRequested(SecurityRequirements)
    /// Pairing is done and its keys are distributed; the link is encrypted with a key of this strength.
    case completed(PairingOutcome)
    /// Pairing has ended and has left nothing.
    case failed(PairingFailure)
}

/// What a Security Request or a local caller asks of a link.
public struct SecurityRequirements: Hashable, Sendable {
    public var bonds: Bool
    public var isAuthenticated: Bool
    public var isSecureConnections: Bool

    public init(bonds: Bool, isAuthenticated: Bool, isSecureConnections: Bool) {
        self.bonds = bonds
        self.isAuthenticated = isAuthenticated
        self.isSecureConnections = isSecureConnections
    }
}

/// What a person, or an app for it, is asked during pairing. A question that is open when the pairing ends is void.
public enum PairingQuestion: Hashable, Sendable {
    /// Whether to pair at all, by this model and with this strength; answered by ``PairingAnswer/accept`` or `refuse`. Asked
    /// before the peer is told anything that depends on it.
    case consent(AssociationModel, KeyStrength)
    /// Show this passkey, 0 to 999,999, in six digits; needs no answer, but `refuse` ends the pairing.
    case showPasskey(UInt32)
    /// Take the passkey that the other device shows, or that both are given; answered by `passkey` or `refuse`.
    case enterPasskey
    /// Compare this number, 0 to 999,999, with the one that the other device shows; answered by `accept` or `refuse`.
    case compare(UInt32)
}

public enum PairingAnswer: Hashable, Sendable {
    case accept
    case refuse
    case passkey(UInt32)
}

/// What a pairing has come to.
public struct PairingOutcome: Hashable, Sendable {
    public var model: AssociationModel
    public var strength: KeyStrength
    /// The keys of both sides: to be kept where ``isBonded``, else to be forgotten with the link.
    public var bond: Bond
    /// Whether both sides keep the keys.
    public var isBonded: Bool

    public init(model: AssociationModel, strength: KeyStrength, bond: Bond, isBonded: Bool) {
        self.model = model
        self.strength = strength
        self.bond = bond
        self.isBonded = isBonded
    }
}

/// Why a pairing has failed.
public enum PairingFailure: Error, Hashable, Sendable {
    /// This device has ended it, for a reason of Vol 3, Part H, 3.5.5.
    case ended(PairingFailedReason)
    /// The peer has ended it.
    case endedByPeer(PairingFailedReason)
    /// Nothing came for 30 s (3.4); the link's Security Manager can no longer be used.
    case timedOut
    /// The link could not be encrypted with the new key.
    case encryptionFailed
    /// The link has ended.
    case linkEnded
}

#if !hasFeature(Embedded)
    extension PairingStep: CustomReflectable {
        /// A PDU to send may hold a key: its command code is shown, without parameters.
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
