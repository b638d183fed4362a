import Cryptography
import SMP

extension BluetoothHost {
    /// Removes out of band data that a pairing has used from all policies: they are good for one pairing
    /// (Vol 3, Part H, 2.3.5.6.4).
    func forgetOutOfBandData(of link: Link) {
        let policy = link.protection.policy
        securityPolicy.forgetOutOfBandData(of: policy)
        for link in links.values { link.protection.policy.forgetOutOfBandData(of: policy) }
    }

    /// Makes what a peer is to be given by another way than the link, and the secret that belongs to it.
    package func makeOutOfBandData(isSecureConnections: Bool) -> (secret: OwnOutOfBandData, forPeer: OutOfBandData) {
        let number: UInt128 = random.next()
        guard isSecureConnections else { return (.temporaryKey(number), .temporaryKey(number)) }
        let functions = SwiftCryptography()
        while true {
            let octets = (0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }
            guard let value = UInt256Octets(leastSignificantFirst: octets) else { continue }
            let privateKey = P256PrivateKey(value)
            // Nearly all numbers are private keys.
            guard let publicKey = functions.publicKey(of: privateKey) else { continue }
            let confirm = Toolbox(functions).f4(u: publicKey.x, v: publicKey.x, x: number, z: 0)
            return (
                .secureConnections(privateKey: privateKey, random: number),
                .secureConnections(confirm: confirm, random: number)
            )
        }
    }
}

extension SecurityPolicy {
    /// Removes the out of band data that this policy shares with another.
    fileprivate mutating func forgetOutOfBandData(of used: SecurityPolicy) {
        if ownOutOfBandData == used.ownOutOfBandData { ownOutOfBandData = nil }
        if peerOutOfBandData == used.peerOutOfBandData { peerOutOfBandData = nil }
    }
}
