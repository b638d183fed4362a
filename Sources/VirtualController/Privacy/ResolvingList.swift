import BluetoothTypes
import Cryptography
import HCI
import SMP

/// The devices whose resolvable private addresses the controller knows, and those it makes for itself (Vol 6, Part B, 4.7).
struct ResolvingList {
    /// An address that holds for some time.
    struct Generated {
        let address: DeviceAddress
        let since: Instant
    }

    struct Entry {
        let identity: DeviceAddress
        /// Zero where the peer has none.
        let peerIRK: UInt128
        /// Zero where the controller uses none with this peer.
        let localIRK: UInt128
        var privacyMode = PrivacyMode.network
        /// Under which the controller shows itself to the peer.
        var local: Generated?
        /// To which the controller directs what is for the peer.
        var target: Generated?
        /// Under which the peer was last met.
        var lastPeerAddress: DeviceAddress?
    }

    var entries: [Entry] = []
    var isResolving = false
    let toolbox = Toolbox(SwiftCryptography())
    /// How long an address of the controller's making holds: 15 minutes unless the host says otherwise.
    var timeout = Duration.seconds(900)

    func index(of identity: DeviceAddress) -> Int? {
        entries.firstIndex { $0.identity == identity }
    }

    /// The peer whose key an address was made with.
    mutating func resolve(_ address: DeviceAddress) -> Int? {
        guard address.kind == .resolvablePrivate else { return nil }
        let known = entries.firstIndex { $0.lastPeerAddress == address }
        let found = known ?? entries.firstIndex { $0.peerIRK != 0 && toolbox.resolves(address, irk: $0.peerIRK) }
        if let found { entries[found].lastPeerAddress = address }
        return found
    }

    /// Whether an address was made with the key that the controller uses towards a peer, or towards anyone.
    func isOwn(_ address: DeviceAddress, towards entry: Int?) -> Bool {
        guard address.kind == .resolvablePrivate else { return false }
        let candidates = entry.map { entries[$0...$0] } ?? entries[...]
        return candidates.contains { $0.localIRK != 0 && toolbox.resolves(address, irk: $0.localIRK) }
    }
}
