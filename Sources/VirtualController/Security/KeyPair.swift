import Crypto
import HCI

/// A P-256 key pair of the controller (Vol 4, Part E, 7.8.36 and 7.8.37).
struct KeyPair {
    private let key: P256.KeyAgreement.PrivateKey

    /// Makes a key of numbers from `random`.
    init(random: () -> UInt64) {
        while true {
            let octets = (0..<32).map { _ in UInt8(truncatingIfNeeded: random()) }
            // Nearly every number of 32 octets is a private key.
            if let key = try? P256.KeyAgreement.PrivateKey(rawRepresentation: octets) {
                self.key = key
                return
            }
        }
    }

    /// Both coordinates, least significant octet first.
    var publicKey: (x: [UInt8], y: [UInt8]) {
        let octets = [UInt8](key.publicKey.rawRepresentation)
        return (octets.prefix(32).reversed(), octets.suffix(32).reversed())
    }

    /// The Diffie-Hellman key, least significant octet first; nil where the peer's key is no point of the curve.
    func sharedKey(with peer: P256PublicKey) -> [UInt8]? {
        let octets = peer.x.reversed() + peer.y.reversed()
        guard let publicKey = try? P256.KeyAgreement.PublicKey(rawRepresentation: octets),
            let secret = try? key.sharedSecretFromKeyAgreement(with: publicKey)
        else { return nil }
        return secret.withUnsafeBytes { Array($0.reversed()) }
    }
}
