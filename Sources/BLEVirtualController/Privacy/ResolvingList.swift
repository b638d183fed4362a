import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes

/// The peers whose resolvable private addresses the controller resolves, and its own private addresses for them (Vol 6,
/// Part B, 4.7).
struct ResolvingList {
    /// A generated address, valid for a limited time.
    struct Generated {
        let address: DeviceAddress
        let since: Instant
    }

    struct Entry {
        let identity: DeviceAddress
        /// Zero if the peer has no key.
        let peerIRK: UInt128
        /// Zero if the controller uses no key with this peer.
        let localIRK: UInt128
        var privacyMode = PrivacyMode.network
        /// The controller's own address for this peer.
        var local: Generated?
        /// The target address for packets directed to the peer.
        var target: Generated?
        /// The address last used by the peer.
        var lastPeerAddress: DeviceAddress?
    }

    var entries: [Entry] = []
    var isResolving = false
    let toolbox = Toolbox(SwiftCryptography())
    /// The lifetime of a generated address: 15 minutes unless the host sets it.
    var timeout = Duration.seconds(900)

    func index(of identity: DeviceAddress) -> Int? {
        entries.firstIndex { $0.identity == identity }
    }

    /// Returns the index of the peer whose key generated an address.
    mutating func resolve(_ address: DeviceAddress) -> Int? {
        guard address.kind == .resolvablePrivate else { return nil }
        let known = entries.firstIndex { $0.lastPeerAddress == address }
        let found = known ?? entries.firstIndex { $0.peerIRK != 0 && toolbox.resolves(address, irk: $0.peerIRK) }
        if let found { entries[found].lastPeerAddress = address }
        return found
    }

    /// Whether the address was generated with the controller's key for a peer, or for any peer if `entry` is nil.
    func isOwn(_ address: DeviceAddress, towards entry: Int?) -> Bool {
        guard address.kind == .resolvablePrivate else { return false }
        let candidates = entry.map { entries[$0...$0] } ?? entries[...]
        return candidates.contains { $0.localIRK != 0 && toolbox.resolves(address, irk: $0.localIRK) }
    }
}
