import BLECryptography
import BLESMP

extension BluetoothHost {
    /// Removes the out-of-band data that the pairing on a link has used from the policies of the host and of all links,
    /// and from kept policies.
    func forgetOutOfBandData(of used: PairingParameters, on link: Link) {
        pairing.forgetOutOfBandData(of: used)
        for other in links.values { other.security.outOfBandDataWasUsed(by: used, isOwn: other === link) }
    }

    /// Makes out-of-band data for a peer, and the secret of this host that belongs to the data.
    package func makeOutOfBandData(isSecureConnections: Bool) -> (secret: OwnOutOfBandData, forPeer: OutOfBandData) {
        let number: UInt128 = random.next()
        guard isSecureConnections else { return (.temporaryKey(number), .temporaryKey(number)) }
        let functions = SwiftCryptography()
        while true {
            let octets = (0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }
            guard let value = UInt256Bytes(leastSignificantFirst: octets) else { continue }
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
