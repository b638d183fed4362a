import BLESMP
import Crypto
import CryptoExtras

/// The Security Manager's cryptographic functions, implemented with swift-crypto.
public struct SwiftCryptography: SecurityFunctions {
    public init() {}

    public func encrypt(_ plaintext: UInt128, key: UInt128) -> UInt128 {
        var block = octets(plaintext)
        // The key and the block have 16 bytes, so this does not throw.
        try? AES.permute(&block, key: SymmetricKey(data: octets(key)))
        return UInt128(mostSignificantFirst: block)
    }

    public func authenticationCode(of message: [UInt8], key: UInt128) -> UInt128 {
        // The key has 16 bytes, so this does not throw.
        guard var code = try? AES.CMAC(key: SymmetricKey(data: octets(key))) else { return 0 }
        code.update(data: message)
        return UInt128(mostSignificantFirst: code.finalize())
    }

    public func publicKey(of privateKey: P256PrivateKey) -> P256PublicKey? {
        guard let key = try? P256.KeyAgreement.PrivateKey(rawRepresentation: privateKey.value.bytes.reversed()) else {
            return nil
        }
        let octets = Array(key.publicKey.rawRepresentation)
        guard let x = UInt256Bytes(leastSignificantFirst: octets.prefix(32).reversed()),
            let y = UInt256Bytes(leastSignificantFirst: octets.suffix(32).reversed())
        else { return nil }
        return P256PublicKey(x: x, y: y)
    }

    public func sharedKey(_ privateKey: P256PrivateKey, with peer: P256PublicKey) -> DiffieHellmanKey? {
        let point = peer.x.bytes.reversed() + peer.y.bytes.reversed()
        guard let key = try? P256.KeyAgreement.PrivateKey(rawRepresentation: privateKey.value.bytes.reversed()),
            let peerKey = try? P256.KeyAgreement.PublicKey(rawRepresentation: point),
            let secret = try? key.sharedSecretFromKeyAgreement(with: peerKey)
        else { return nil }
        return unsafe UInt256Bytes(leastSignificantFirst: secret.withUnsafeBytes { unsafe $0.reversed() }).map(
            DiffieHellmanKey.init
        )
    }

    private func octets(_ number: UInt128) -> [UInt8] {
        var octets: [UInt8] = []
        octets.append(mostSignificantFirst: number)
        return octets
    }
}
