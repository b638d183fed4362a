import BluetoothHost
import BluetoothTypes
import Foundation

/// The identifiers of the centrals that are connected to a host.
///
/// A central has the identifier that the peer directory assigns to its address. An exception is a central that uses the
/// address of a bonded device and has not encrypted its link with the bond's key. It may be another device, so its link
/// has a separate identifier until the key has verified the central.
///
/// Used on the loop, except for ``address(of:)``.
final class CentralIdentities: Sendable {
    /// The use of a bonded device's address on an unverified link.
    private struct Claim {
        let identifier: UUID
        /// The peer's address on the link.
        let address: DeviceAddress
    }

    private let claims = Guarded<[LinkIdentifier: Claim]>([:])
    private let peers: PeerDirectory
    private let makeIdentifier: @Sendable () -> UUID

    init(peers: PeerDirectory, makeIdentifier: @escaping @Sendable () -> UUID) {
        self.peers = peers
        self.makeIdentifier = makeIdentifier
    }

    /// Returns the central on a link; nil if the link has ended.
    ///
    /// The identifier changes at most when the link's encryption or the bonds change.
    func central(on link: LinkIdentifier, _ host: isolated BluetoothHost) -> HeldPeer? {
        guard let information = try? host.information(on: link),
            let verification = host.identityVerification(on: link)
        else { return nil }
        switch verification {
        case .verified:
            claims.withLock { $0[link] = nil }
            return peers.heldPeer(at: information.peer)
        case .unverified:
            if let claim = claims.withLock({ $0[link] }) { return HeldPeer(identifier: claim.identifier) }
            let claim = Claim(identifier: makeIdentifier(), address: information.peerAddress)
            claims.withLock { $0[link] = claim }
            host.observeEnd(of: link) { [weak self] _ in self?.claims.withLock { $0[link] = nil } }
            return HeldPeer(identifier: claim.identifier)
        case .notBonded:
            // A bond that was removed does not verify a central that claimed it.
            return claims.withLock { $0[link] }.map { HeldPeer(identifier: $0.identifier) }
                ?? peers.heldPeer(at: information.peer)
        }
    }

    /// Returns the address of a central; nil if the identifier is unknown. Thread-safe.
    func address(of central: UUID) -> DeviceAddress? {
        claims.withLock { claims in claims.values.first { $0.identifier == central }?.address }
            ?? peers.address(of: central)
    }
}
