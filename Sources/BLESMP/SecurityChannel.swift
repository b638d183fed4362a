import BLEByteCoding
import BluetoothTypes

/// The Security Manager on one link: pairing, in either role (Vol 3, Part H).
///
/// It has no access to the link, the clock or the user: PDUs, times, random numbers and answers are its inputs. Its
/// outputs are ``PairingStep``s, in order. A pairing ends with ``PairingStep/completed(_:)`` or
/// ``PairingStep/failed(_:)``, and no state of it remains. Another pairing may follow, except after a timeout.
///
/// A command that the peer sends out of turn ends the pairing. While the user is asked, the peer may send at most one
/// PDU, which is kept until the answer. Keypress notifications of a passkey that the peer types are not counted.
public struct SecurityChannel<Functions: SecurityFunctions>: Sendable {
    /// The role of this device on the link: the central initiates.
    public enum Role: Hashable, Sendable {
        /// This device initiates pairings and starts encryption.
        case central
        /// This device responds to pairings, and may request security.
        case peripheral
    }

    enum Phase: Sendable {
        case idle
        /// As the central: the peripheral has requested security, and the owner has not decided.
        case asked
        /// As the peripheral: a Security Request is sent to the central.
        case asking(deadline: Instant)
        /// Indirect, because a pairing is large and most links have none.
        ///
        /// `typingEnd` is the latest time to which keypress notifications of the peer move the deadline.
        indirect case pairing(Pairing, deadline: Instant, typingEnd: Instant)
        /// Nothing more is sent or received on this link.
        case closed(PairingFailure)
    }

    /// The role of this device on the link.
    public let role: Role
    /// The addresses that were used to create the connection. They are part of the confirm values; they are private
    /// addresses if those were used.
    ///
    /// A controller may report the own address only after the connection is created. A current pairing keeps the
    /// address with which it began.
    public package(set) var ownAddress: DeviceAddress
    /// The peer's address with which the connection was created: see ``ownAddress``.
    public let peerAddress: DeviceAddress
    /// The address under which the owner knows the peer, such as the identity address of its bond; nil if it knows
    /// none. A peer with a private address that gives no identity address keeps this one, if it is public or static. A
    /// current pairing keeps the value with which it began.
    package var peerIdentity: DeviceAddress?
    /// The parameters and the identity of this device. A current pairing keeps the values with which it began.
    public var parameters = PairingParameters()
    /// The identity that this device distributes. A current pairing keeps the value with which it began.
    public var identity: LocalIdentity
    let toolbox: Toolbox<Functions>
    var phase = Phase.idle

    /// Creates the Security Manager of a new link.
    ///
    /// - Parameters:
    ///   - role: the role of this device on the link.
    ///   - ownAddress: this device's address with which the connection was created.
    ///   - peerAddress: the peer's address with which the connection was created.
    ///   - identity: the identity that this device distributes when it pairs.
    ///   - functions: the ciphers to use.
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

    /// Whether a pairing is in progress. A Security Request alone is not a pairing.
    public var isPairing: Bool {
        if case .pairing = phase { true } else { false }
    }

    /// Whether nothing more is sent or received on this link, because a pairing has timed out (3.4) or the connection
    /// has ended.
    public var isClosed: Bool {
        if case .closed = phase { true } else { false }
    }

    /// As the central: whether the peripheral has requested security, and has not got an answer yet.
    package var isSecurityRequestPending: Bool {
        if case .asked = phase { true } else { false }
    }

    /// The time at which the pairing, or a Security Request, times out (3.4): 30 s after the last PDU that this device
    /// has sent for it. If both sides support keypress notifications, each one of the peer puts the timeout off to 30 s
    /// after it, but not beyond 5 min after the pairing began.
    public var deadline: Instant? {
        switch phase {
        case .asking(let deadline), .pairing(_, let deadline, _): deadline
        case .idle, .asked, .closed: nil
        }
    }

    // MARK: The owner

    /// Begins security: sends a Pairing Request as the central, a Security Request as the peripheral. Has no effect if
    /// one is in progress.
    ///
    /// - Parameters:
    ///   - strength: as the peripheral, the strength of the key with which the central is to encrypt the link; nil if
    ///     the devices are to pair. The Security Request then requests no more than the key gives. Otherwise the
    ///     central would pair instead (2.4.6).
    ///   - now: the time of the call.
    ///   - random: the generator of nonces and keys.
    public mutating func start(
        expecting strength: KeyStrength? = nil,
        at now: Instant,
        random: inout some RandomNumberGenerator
    ) -> [PairingStep] {
        switch phase {
        case .idle, .asked: break
        case .asking, .pairing: return []
        case .closed(let failure): return [.failed(failure)]
        }
        var context = PairingContext(toolbox: toolbox, random: random)
        defer { random = context.random }
        switch role {
        case .central:
            phase = .pairing(
                Pairing(terms, in: &context),
                deadline: now + pairingTimeout,
                typingEnd: now + typingTimeLimit
            )
        case .peripheral:
            var requirements = parameters.authenticationRequirements
            if strength?.isAuthenticated == false { requirements.remove(.authentication) }
            if strength?.isSecureConnections == false { requirements.remove(.secureConnections) }
            context.send(SecurityRequest(authenticationRequirements: requirements))
            phase = .asking(deadline: now + pairingTimeout)
        }
        return context.steps
    }

    /// Ends the current pairing and informs the peer. As the central, it also refuses a Security Request.
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

    /// Takes the end of the connection.
    public mutating func linkEnded() -> [PairingStep] {
        defer { phase = .closed(.linkEnded) }
        switch phase {
        case .asking, .pairing: return [.failed(.linkEnded)]
        case .idle, .asked, .closed: return []
        }
    }

    /// Advances the time and ends a pairing that has timed out.
    public mutating func advance(to now: Instant) -> [PairingStep] {
        guard let deadline, deadline <= now else { return [] }
        phase = .closed(.timedOut)
        return [.failed(.timedOut)]
    }

    /// Takes the answer to a ``PairingStep/ask(_:)``; an answer without an open question is ignored.
    public mutating func answer(
        _ answer: PairingAnswer,
        at now: Instant,
        random: inout some RandomNumberGenerator
    ) -> [PairingStep] {
        pair(at: now, random: &random) { (pairing, context) throws(PairingFailure) in
            do throws(PairingFailedReason) {
                try pairing.receive(answer, in: &context)
            } catch {
                throw .ended(error)
            }
        }
    }

    /// Sends a keypress notification while this device awaits a passkey (Vol 3, Part H, 3.5.8).
    ///
    /// - Returns: no steps if no passkey is awaited, or either side does not support these notifications.
    public mutating func pressed(
        _ kind: KeypressNotification.Kind,
        at now: Instant,
        random: inout some RandomNumberGenerator
    ) -> [PairingStep] {
        pair(at: now, random: &random) { (pairing, context) throws(PairingFailure) in
            pairing.pressed(kind, in: &context)
        }
    }

    /// Takes the result of the controller's attempt to encrypt the link, or to refresh its key.
    ///
    /// - Parameters:
    ///   - strength: the strength of the key that now encrypts the link, as a ``PairingStep`` or ``Bond`` reports it;
    ///     nil if the link is not encrypted.
    ///   - now: the time of the event.
    ///   - random: the generator of nonces and keys.
    public mutating func encryptionChanged(
        to strength: KeyStrength?,
        at now: Instant,
        random: inout some RandomNumberGenerator
    ) -> [PairingStep] {
        switch phase {
        case .asked:
            // The link is encrypted with an existing key, as the peripheral requested.
            if strength != nil { phase = .idle }
            return []
        case .asking:
            // The central has answered the Security Request, successfully or not.
            phase = .idle
            return []
        case .idle, .pairing, .closed:
            return pair(at: now, random: &random) { (pairing, context) throws(PairingFailure) in
                try pairing.encryptionChanged(to: strength, in: &context)
            }
        }
    }
}
