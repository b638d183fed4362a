/// The degree to which a link's peer is known to be the device whose address it uses.
package enum IdentityVerification: Sendable {
    /// No bond exists with that address, so nothing can be verified.
    case notBonded
    /// A bond exists, but the link is not encrypted with its key. The peer may be another device.
    case unverified
    /// The link is encrypted with the bond's key.
    case verified
}

extension BluetoothHost {
    /// Returns whether the peer of a link is verified; nil if the link has ended.
    ///
    /// A key from a pairing without a bond verifies nothing: any device can pair by just works under any address.
    package func identityVerification(on identifier: LinkIdentifier) -> IdentityVerification? {
        guard let link = links[identifier] else { return nil }
        guard record(for: link) != nil else { return .notBonded }
        return link.security.isIdentityVerified ? .verified : .unverified
    }
}
