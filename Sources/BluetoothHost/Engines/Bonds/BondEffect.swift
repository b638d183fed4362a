import BLEGATT
import BLESMP
import BluetoothTypes

/// What the caller of a ``BondDatabase`` does after a change.
enum BondEffect: Equatable {
    /// Save the whole state. If there is a number, something waits for the end of the save.
    case save(HostSecurityState, number: UInt64?)
    /// Save the whole state, possibly together with other changes of the next seconds.
    case saveSoon(HostSecurityState)
    /// There is a new bond with this peer, another one, or none any more.
    case bondChanged(DeviceAddress)
    /// The bond with this peer was removed to make room for a new one.
    case evicted(DeviceAddress)
    /// The save that this has waited for has ended.
    case finish(SaveWaiter, isSaved: Bool)
    case report(SecurityEvent)
}

/// A call or a signed write that waits until a change is saved.
enum SaveWaiter: Equatable {
    /// A suspended call.
    case call(CallToken)
    /// A signed write of a peer, by its number in the link's ``SignedWriteQueue``.
    case signedWrite(UInt64, LinkIdentifier)
}

/// What happens to the keys of a pairing.
enum BondDecision: Equatable {
    /// There is a bond.
    case bonded
    /// The keys last as long as the link.
    case keptForLink
    /// The peer claims to be another bonded peer, whose bond has this strength. The app decides whether it is replaced.
    case replacesOther(KeyStrength)
    /// The keys must not be used.
    case refused(SecurityError)
}

/// A change of the record of a bonded peer.
enum BondChange {
    /// The bond's key was used.
    case used
    /// The app wants the bond to stay when there are too many, or no longer.
    case privileged(Bool)
    /// What the server remembers of the peer has changed.
    case serverState(ServerSession.PersistentState)
    /// The client has learned the peer's database; nil if it knows nothing of it. A cache with more than
    /// ``DiscoveryLimits/attributes`` attributes is not saved.
    case clientCache(DatabaseCache?)
    /// The client has read the key of the peer's encrypted advertising data.
    case advertisingKey(EncryptedDataKeyMaterial)
    /// The peer has signed with the counter before this one.
    case counterUsed(next: UInt32, SaveWaiter)

    /// Whether the store may save the change later with others, because a peer can cause it again and again.
    var isDeferrable: Bool {
        switch self {
        case .used, .serverState, .clientCache: true
        case .privileged, .advertisingKey, .counterUsed: false
        }
    }

    /// The call or signed write that waits for the change to be saved.
    var waiter: SaveWaiter? {
        if case .counterUsed(_, let waiter) = self { waiter } else { nil }
    }
}

/// A counter to sign with, or the reason why there is none.
enum SignCounter: Equatable {
    case available(SigningKey, UInt32)
    /// Counters must be reserved first.
    case noneReserved
    /// The key cannot be used any more.
    case usedUp
    /// The peer is not bonded, or this host has given it no key.
    case noKey
}
