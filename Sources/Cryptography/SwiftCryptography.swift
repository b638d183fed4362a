import Crypto
import CryptoExtras
import SMP

/// The Security Manager's ciphers by swift-crypto.
public struct SwiftCryptography: SecurityFunctions {
    public init() {}

    public func encrypt(_ plaintext: UInt128, key: UInt128) -> UInt128 {
        var block = octets(plaintext)
        // A key and a block of 16 octets are what it takes, so that nothing is thrown.
        try? AES.permute(&block, key: SymmetricKey(data: octets(key)))
        return UInt128(mostSignificantFirst: block)
    }

    public func authenticationCode(of message: [UInt8], key: UInt128) -> UInt128 {
        // A key of 16 octets is what it takes, so that nothing is thrown.
        guard var code = try? AES.CMAC(key: SymmetricKey(data: octets(key))) else { return 0 }
        code.update(data: message)
        return UInt128(mostSignificantFirst: code.finalize())
    }

    public func publicKey(of privateKey: P256PrivateKey) -> P256PublicKey? {
        guard let key = try? P256.KeyAgreement.PrivateKey(rawRepresentation: privateKey.value.octets.reversed()) else {
            return nil
        }
        let octets = Array(key.publicKey.rawRepresentation)
        guard let x = UInt256Octets(leastSignificantFirst: octets.prefix(32).reversed()),
            let y = UInt256Octets(leastSignificantFirst: octets.suffix(32).reversed())
        else { return nil }
        return P256PublicKey(x: x, y: y)
    }

    public func sharedKey(_ privateKey: P256PrivateKey, with peer: P256PublicKey) -> DiffieHellmanKey? {
        let point = peer.x.octets.reversed() + peer.y.octets.reversed()
        guard let key = try? P256.KeyAgreement.PrivateKey(rawRepresentation: privateKey.value.octets.reversed()),
            let peerKey = try? P256.KeyAgreement.PublicKey(rawRepresentation: point),
            let secret = try? key.sharedSecretFromKeyAgreement(with: peerKey)
        else { return nil }
        return UInt256Octets(leastSignificantFirst: secret.withUnsafeBytes { $0.reversed() }).map(DiffieHellmanKey.init)
    }

    private func octets(_ number: UInt128) -> [UInt8] {
        var octets: [UInt8] = []
        octets.append(mostSignificantFirst: number)
        return octets
    }
}
