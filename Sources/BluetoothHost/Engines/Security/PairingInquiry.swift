import BLESMP
import BluetoothTypes

/// A question about a pairing in progress, for a person or for an app that answers on the person's behalf.
public struct PairingInquiry: Hashable, Sendable {
    /// The link on which the devices pair.
    public let link: LinkIdentifier
    /// The peer's identity address if it is bonded, otherwise the address with which it is connected.
    public let peer: DeviceAddress
    /// The question.
    public let question: PairingQuestion
    /// Whether this device began the pairing. If false, the peer began it.
    ///
    /// As the peripheral, this device has begun it only if the app has asked for security. A central can cause a
    /// pairing for a value, because it can refuse this device's requests.
    public let isStartedHere: Bool
    /// The strength of the bond that the pairing would replace; nil if it replaces none.
    ///
    /// Any device can claim the address of another one and pair by just works. So an app should consent only if a
    /// person knows that the peer was reset.
    public let replaces: KeyStrength?
    /// Whether the link is encrypted with the key of that bond, so that the peer's identity is verified.
    public let isIdentityVerified: Bool
}
