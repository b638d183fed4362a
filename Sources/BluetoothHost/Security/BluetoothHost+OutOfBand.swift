import Cryptography
import SMP

extension BluetoothHost {
    /// Removes the out of band data of the pairing under way on a link from all policies. The data are good for one pairing,
    /// whether it succeeds or fails (Vol 3, Part H, 2.3.5.6.4): a peer must not try again with what it has learned of them.
    ///
    /// The pairing itself has a copy.
    func forgetOutOfBandData(of link: Link) {
        let used = link.protection.channel.parameters
        link.protection.usesOutOfBandData = false
        securityPolicy.forgetOutOfBandData(of: used)
        for link in links.values {
            link.protection.policy.forgetOutOfBandData(of: used)
            // A pairing that a central was asked for begins with the parameters of that time.
            if !link.protection.channel.isPairing { link.protection.channel.parameters.forgetOutOfBandData(of: used) }
        }
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
    /// Removes the out of band data that a pairing with these parameters uses.
    fileprivate mutating func forgetOutOfBandData(of used: PairingParameters) {
        if ownOutOfBandData == used.ownOutOfBandData { ownOutOfBandData = nil }
        if peerOutOfBandData == used.peerOutOfBandData { peerOutOfBandData = nil }
    }
}

extension PairingParameters {
    /// Removes the out of band data that a pairing with these parameters uses.
    fileprivate mutating func forgetOutOfBandData(of used: PairingParameters) {
        if ownOutOfBandData == used.ownOutOfBandData { ownOutOfBandData = nil }
        if peerOutOfBandData == used.peerOutOfBandData { peerOutOfBandData = nil }
    }
}
