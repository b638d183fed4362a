import BluetoothTypes
import ByteCoding

/// The Security Manager on one link: pairing, in either role (Vol 3, Part H).
///
/// It knows no link, clock or person: PDUs, times, random numbers and answers come in, and what is to be done goes out as
/// ``PairingStep``s, in their order. A pairing ends with ``PairingStep/completed(_:)`` or ``PairingStep/failed(_:)``, and
/// leaves nothing here; another one may follow, except after the time for one has run out.
///
/// Whatever the peer sends out of turn ends the pairing. What it may send while a person is asked is kept until the answer,
/// which is one PDU at most.
public struct SecurityChannel<Functions: SecurityFunctions>: Sendable {
    /// The role of this device on the link: the central initiates.
    public enum Role: Hashable, Sendable {
        case central
        case peripheral
    }

    enum Phase: Sendable {
        case idle
        /// As the central: the peripheral has asked for security, and the owner has not decided.
        case asked
        /// As the peripheral: the central has been asked for security.
        case asking(deadline: Instant)
        case pairing(Pairing, deadline: Instant)
        /// Nothing more is sent or taken on this link.
        case closed(PairingFailure)
    }

    public let role: Role
    /// The addresses that the link was made with, which go into the confirm values: private ones, where they were used.
    ///
    /// A controller may tell only after the connection which own one that was; a pairing that is going on keeps to what it
    /// began with.
    public package(set) var ownAddress: DeviceAddress
    public let peerAddress: DeviceAddress
    /// How this device pairs and who it is; a pairing that is going on keeps to what was set when it began.
    public var parameters = PairingParameters()
    public var identity: LocalIdentity
    let toolbox: Toolbox<Functions>
    var phase = Phase.idle

    public init(
        role: Role,
        ownAddress: DeviceAddress,
        peerAddress: DeviceAddress,
        identity: LocalIdentity,
        functions: Functions
    ) {
        self.role = role
        self.ownAddress = ownAddress
        self.peerAddress = peerAddress
        self.identity = identity
        toolbox = Toolbox(functions)
    }

    /// Whether a pairing is going on. A Security Request is none yet.
    public var isPairing: Bool {
        if case .pairing = phase { true } else { false }
    }

    /// Whether nothing more is sent or taken on this link, since the time for a pairing has run out (3.4), or it has ended.
    public var isClosed: Bool {
        if case .closed = phase { true } else { false }
    }

    /// When the pairing, or a Security Request, is given up (3.4).
    public var deadline: Instant? {
        switch phase {
        case .asking(let deadline), .pairing(_, let deadline): deadline
        case .idle, .asked, .closed: nil
        }
    }

    // MARK: The owner

    /// Begins: a Pairing Request as the central, a Security Request as the peripheral; nothing where one is under way.
    public mutating func start(
        at now: Instant,
        random: inout some RandomNumberGenerator
    ) -> [PairingStep] {
        switch phase {
        case .idle, .asked: break
        case .asking, .pairing: return []
        case .closed(let failure): return [.failed(failure)]
        }
        var turn = Turn(toolbox: toolbox, random: random)
        defer { random = turn.random }
        switch role {
        case .central:
            phase = .pairing(Pairing(terms, in: &turn), deadline: now + pairingTimeout)
        case .peripheral:
            turn.send(SecurityRequest(authenticationRequirements: parameters.authenticationRequirements))
            phase = .asking(deadline: now + pairingTimeout)
        }
        return turn.steps
    }

    /// Ends a pairing that is going on, and tells the peer. As the central, it also refuses what a Security Request asks.
    public mutating func cancel(_ reason: PairingFailedReason) -> [PairingStep] {
        switch phase {
        case .idle, .closed:
            return []
        case .asked:
            phase = .idle
            return [.send(failing: reason)]
        case .asking, .pairing:
            return end(.ended(reason), telling: reason)
        }
    }

    /// The link has ended.
    public mutating func linkEnded() -> [PairingStep] {
        defer { phase = .closed(.linkEnded) }
        switch phase {
        case .asking, .pairing: return [.failed(.linkEnded)]
        case .idle, .asked, .closed: return []
        }
    }

    /// Takes note of the time.
    public mutating func advance(to now: Instant) -> [PairingStep] {
        guard let deadline, deadline <= now else { return [] }
        phase = .closed(.timedOut)
        return [.failed(.timedOut)]
    }

    /// Takes the answer to a ``PairingStep/ask(_:)``; an answer to what was not asked is ignored.
    public mutating func answer(
        _ answer: PairingAnswer,
        at now: Instant,
        random: inout some RandomNumberGenerator
    ) -> [PairingStep] {
        pair(at: now, random: &random) { (pairing, turn) throws(PairingFailure) in
            do throws(PairingFailedReason) {
                try pairing.receive(answer, in: &turn)
            } catch {
                throw .ended(error)
            }
        }
    }

    /// Sends a keypress notification while a passkey is asked for here (Vol 3, Part H, 3.5.8).
    ///
    /// - Returns: nothing where no passkey is asked for, or either side does not use these notifications.
    public mutating func pressed(
        _ kind: KeypressNotification.Kind,
        at now: Instant,
        random: inout some RandomNumberGenerator
    ) -> [PairingStep] {
        pair(at: now, random: &random) { (pairing, turn) throws(PairingFailure) in pairing.pressed(kind, in: &turn) }
    }

    /// The controller has ended an attempt to encrypt the link, or to refresh its key.
    ///
    /// - Parameter strength: that of the key which the link is now encrypted with, as ``PairingStep`` or ``Bond`` has told
    ///   it; nil where it is not encrypted.
    public mutating func encryptionChanged(
        to strength: KeyStrength?,
        at now: Instant,
        random: inout some RandomNumberGenerator
    ) -> [PairingStep] {
        switch phase {
        case .asked:
            // The peripheral has been given what it asked for, with a key that both had.
            if strength != nil { phase = .idle }
            return []
        case .asking:
            // The central has followed the Security Request, with success or not: nothing more is awaited.
            phase = .idle
            return []
        case .idle, .pairing, .closed:
            return pair(at: now, random: &random) { (pairing, turn) throws(PairingFailure) in
                try pairing.encryptionChanged(to: strength, in: &turn)
            }
        }
    }
}
