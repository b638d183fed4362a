import BLESMP
import BluetoothTypes

/// What happens to the security of links, and to bonds.
public enum SecurityEvent: Sendable, Hashable {
    /// A pairing has begun, by whichever side.
    case pairingStarted(LinkIdentifier, peer: DeviceAddress)
    /// The peer has sent a keypress notification: on it, the passkey that this device shows is being typed.
    case keyPressed(LinkIdentifier, peer: DeviceAddress, KeypressNotification.Kind)
    /// A pairing has succeeded.
    case paired(LinkIdentifier, PairingResult)
    /// A pairing has failed. The link continues, possibly without encryption, unless the pairing failed because the
    /// link has ended.
    case pairingFailed(LinkIdentifier, peer: DeviceAddress, SecurityError)
    /// The link is encrypted with a key of this strength from now on; nil where it is not encrypted any more.
    case encryptionChanged(LinkIdentifier, KeyStrength?)
    /// Nothing that proves the peer has the key has come for ``SecurityPolicy/authenticatedPayloadTimeout``; the link
    /// ends.
    case authenticatedPayloadTimedOut(LinkIdentifier, peer: DeviceAddress)
    /// A bonded peer reported that it does not have the bond's key: it has lost the bond, or is another device. A MIC
    /// failure shows neither and is not reported here; see ``SecurityError/encryptionFailed(_:)``.
    case keyMissing(LinkIdentifier, identity: DeviceAddress)
    /// A bond was added, or replaced by a new pairing.
    case bondAdded(BondInformation)
    /// A bond was removed, or evicted for a new one.
    case bondRemoved(identity: DeviceAddress)
    /// Changed bonds could not be saved: they are lost when the process ends.
    case bondsNotSaved
    /// The time of a pairing window is over (`Adapter.openPairingWindow(for:)`): peers can no longer begin pairings. A
    /// window that the app closes or replaces has no such event.
    case pairingWindowExpired
    /// As many events were dropped at this place, because the reader was too slow.
    case eventsDropped(Int)
}

/// The result of a pairing.
public struct PairingResult: Hashable, Sendable {
    /// The address or identity of the peer when the link was made.
    public let peer: DeviceAddress
    /// The peer's identity address. Without a bond, or if the peer has given none, the address that it is connected by.
    public let identity: DeviceAddress
    /// The way in which the devices authenticated each other.
    public let model: AssociationModel
    /// The strength of the key.
    public let strength: KeyStrength
    /// Whether the keys are kept beyond the link.
    public let isBonded: Bool
}

/// A bond: the peer's identity, and the strength of its key.
public struct BondInformation: Hashable, Sendable {
    /// The peer's identity address.
    public let identity: DeviceAddress
    /// The strength of the key; nil if the bond has no such key, but identifies or signs.
    public let strength: KeyStrength?
    /// Whether the peer's private addresses can be resolved.
    public let resolvesAddresses: Bool
    /// Whether the bond stays when there are too many: its key is authenticated, this device began the pairing for the
    /// app, or the app has marked or imported the bond. A bond that replaces a privileged one is privileged too, if the
    /// link was encrypted with the key of the earlier bond.
    public let isPrivileged: Bool

    init(_ record: BondRecord) {
        let bond = record.bond
        isPrivileged = record.isPrivileged
        identity = bond.identity
        strength = bond.strength
        resolvesAddresses = bond.identityResolvingKey != nil
    }
}
