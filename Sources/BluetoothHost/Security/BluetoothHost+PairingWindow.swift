import BluetoothTypes
import SMP

// Which peers may begin a pairing, and when.
extension BluetoothHost {
    /// Lets peers begin pairings from now on for `duration`, where the policy is ``SecurityPolicy/Pairable/duringWindow``.
    /// A window that is open is replaced.
    package func openPairingWindow(for duration: Duration) {
        pairingWindowEnd = loop.now + max(duration, .zero)
    }

    /// Ends the window. Pairings under way continue.
    package func closePairingWindow() {
        pairingWindowEnd = nil
    }

    /// Why the peer of a link must not begin a pairing now; nil where it may.
    ///
    /// A peer whose bond is proven on the link may always pair again, for a stronger key.
    func obstacleToPeersPairing(on link: Link) -> SecurityError? {
        let protection = link.protection
        let isWindowOpen = pairingWindowEnd.map { loop.now < $0 } ?? false
        switch protection.policy.pairable {
        case .always: break
        case _ where protection.isBondProven: break
        case .duringWindow where isWindowOpen: break
        case .duringWindow: return .refused("the pairing window is closed")
        case .never: return .refused("the policy does not let peers begin a pairing")
        }
        return obstacleOfAcceptList(to: link.identity, protection.policy)
    }

    /// Why the peer at an address must not pair; nil where it may, or has yet to give its identity.
    func obstacleOfAcceptList(to peer: DeviceAddress, _ policy: SecurityPolicy) -> SecurityError? {
        guard let list = policy.pairingAcceptList, peer.kind == .public || peer.kind == .randomStatic,
            !list.contains(peer)
        else { return nil }
        return .refused("\(peer) is not on the pairing accept list")
    }

    /// Why a peer must not pair, by the identity that it has given at the end of the pairing.
    func obstacleOfAcceptList(toIdentity identity: DeviceAddress, _ policy: SecurityPolicy) -> SecurityError? {
        guard let list = policy.pairingAcceptList, !list.contains(identity) else { return nil }
        return .refused("\(identity) is not on the pairing accept list")
    }

    /// Whether a Pairing Request answers a Security Request that needs no window. The app has asked for that pairing, or the
    /// peer does not claim a bonded identity.
    func isPairingAskedFor(on link: Link) -> Bool {
        link.protection.isCentralAsked && (link.protection.initiative == .app || link.protection.bondKey == nil)
    }
}
