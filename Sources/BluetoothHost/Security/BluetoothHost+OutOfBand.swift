import Cryptography
import SMP

extension BluetoothHost {
    /// Removes the out of band data of the pairing under way on a link from all policies. The data are good for one pairing,
    /// whether it succeeds or fails (Vol 3, Part H, 2.3.5.6.4): a peer must not try again with what it has learned of them.
    ///
    /// The pairing itself has a copy. Another pairing under way that would use the same data will be refused.
    func forgetOutOfBandData(of link: Link) {
        let used = link.protection.channel.parameters
        link.protection.usesOutOfBandData = false
        securityPolicy.forgetOutOfBandData(of: used)
        for other in links.values {
            other.protection.policy.forgetOutOfBandData(of: used)
            if !other.protection.channel.isPairing {
                // A pairing that a central was asked for begins with the parameters of that time.
                other.protection.channel.parameters.forgetOutOfBandData(of: used)
            } else if other !== link, other.protection.channel.parameters.sharesOutOfBandData(with: used) {
                other.protection.isOutOfBandDataSpent = true
            }
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

/// What pairings get their out of band data from.
private protocol OutOfBandDataHolder {
    var ownOutOfBandData: OwnOutOfBandData? { get set }
    var peerOutOfBandData: OutOfBandData? { get set }
}

extension SecurityPolicy: OutOfBandDataHolder {}
extension PairingParameters: OutOfBandDataHolder {}

extension OutOfBandDataHolder {
    /// Removes the out of band data that a pairing with these parameters uses.
    fileprivate mutating func forgetOutOfBandData(of used: PairingParameters) {
        if ownOutOfBandData == used.ownOutOfBandData { ownOutOfBandData = nil }
        if peerOutOfBandData == used.peerOutOfBandData { peerOutOfBandData = nil }
    }

    fileprivate func sharesOutOfBandData(with used: PairingParameters) -> Bool {
        ownOutOfBandData != nil && ownOutOfBandData == used.ownOutOfBandData
            || peerOutOfBandData != nil && peerOutOfBandData == used.peerOutOfBandData
    }
}
