import BluetoothTypes
import SMP

/// What a person, or an app for it, is asked about a pairing that is going on.
public struct PairingInquiry: Hashable, Sendable {
    public let link: LinkIdentifier
    /// The peer's identity address where it is bonded, else the address it is connected by.
    public let peer: DeviceAddress
    public let question: PairingQuestion
    /// Whether this device has begun the pairing, rather than the peer.
    public let isStartedHere: Bool
    /// What the key of the bond is worth that the pairing would replace; nil where the peer is not bonded.
    ///
    /// Whoever can do just works can claim to be any peer: a bond should be replaced only where somebody knows that the peer
    /// was reset.
    public let replaces: KeyStrength?
    /// Whether the link is encrypted with that bond's key, so that the peer is the one it claims to be.
    public let isProven: Bool
}

/// Is asked about pairings, on the loop, and gives a way to take the question back. It answers once, from anywhere.
package typealias PairingHandler =
    @Sendable (PairingInquiry, _ answer: @escaping @Sendable (PairingAnswer) -> Void) -> (@Sendable () -> Void)
