import BluetoothTypes
import ByteCoding

/// The Security Manager on one link: pairing, in either role (Vol 3, Part H).
///
/// It knows no link, clock or person: PDUs, times, random numbers and answers come in, and what is to be done goes out as
/// ``PairingStep``s.
public struct SecurityChannel<Functions: SecurityFunctions> {
    /// The role of this device on the link: the central initiates.
    public enum Role: Hashable, Sendable {
        case central
        case peripheral
    }

    public let role: Role
    /// The addresses that the link was made with, which go into the confirm values: private ones, where they were used.
    public let ownAddress: DeviceAddress
    public let peerAddress: DeviceAddress
    /// How this device pairs and who it is; may be set anew as long as no pairing is going on.
    public var parameters = PairingParameters()
    public var identity: LocalIdentity
    let functions: Functions

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
        self.functions = functions
    }

    /// Whether a pairing is going on.
    public var isPairing: Bool { false }

    /// When the pairing is given up, unless something comes (3.4).
    public var deadline: Instant? { nil }

    /// Begins: a Pairing Request as the central, a Security Request as the peripheral.
    public mutating func start(
        at now: Instant,
        random: inout some RandomNumberGenerator
    ) -> [PairingStep] { [] }

    /// Takes a PDU of the Security Manager's channel.
    public mutating func receive(
        _ pdu: RawSpan,
        at now: Instant,
        random: inout some RandomNumberGenerator
    ) -> [PairingStep] { [] }

    /// Takes the answer to a ``PairingStep/ask(_:)``; an answer to what was not asked is ignored.
    public mutating func answer(
        _ answer: PairingAnswer,
        at now: Instant,
        random: inout some RandomNumberGenerator
    ) -> [PairingStep] { [] }

    /// The controller has ended an attempt to encrypt the link, or to refresh its key.
    ///
    /// - Parameter strength: what the link is now worth; nil where it is not encrypted.
    public mutating func encryptionChanged(
        to strength: KeyStrength?,
        at now: Instant,
        random: inout some RandomNumberGenerator
    ) -> [PairingStep] { [] }

    /// Takes note of the time.
    public mutating func advance(to now: Instant) -> [PairingStep] { [] }

    /// Ends a pairing that is going on, and tells the peer.
    public mutating func cancel(_ reason: PairingFailedReason) -> [PairingStep] { [] }

    /// The link has ended.
    public mutating func linkEnded() -> [PairingStep] { [] }
}
