import BLECryptography
import BLESMP
import BluetoothTypes
import Testing

/// A sample of P-256: both key pairs and the shared key.
struct KeyAgreementSample: Sendable, CustomTestStringConvertible {
    let name: String
    let privateKeyA: P256PrivateKey
    let publicKeyA: P256PublicKey
    let privateKeyB: P256PrivateKey
    let publicKeyB: P256PublicKey
    let sharedKey: DiffieHellmanKey

    var testDescription: String { name }

    /// Reads 64 digits, least significant byte first, as in the Security Manager's PDUs.
    static func number(_ text: String) -> UInt256Bytes {
        UInt256Bytes(leastSignificantFirst: [UInt8](hexadecimal: text) ?? [])!
    }

    static func point(_ x: String, _ y: String) -> P256PublicKey {
        P256PublicKey(x: number(x), y: number(y))
    }

    /// The sample data of Vol 2, Part G, 7.1.2. The first sample's A is the debug key pair (Vol 3, Part H, 2.3.5.6.1).
    static let all = [
        KeyAgreementSample(
            name: "the first data set",
            privateKeyA: P256PrivateKey(number("bd1a3ccda6b8995899b740eb7b60ff4a503f10d2e3b3c974385fc5a3d4f6493f")),
            publicKeyA: point(
                "e69d350e480103ccdbfdf4ac1191f4efb9a5f9e9a7832c5e2cbe97f2d203b020",
                "8bd28915d08e1c742430ed8fc24563765c15525abf9a32636deb2a65499c80dc"
            ),
            privateKeyB: P256PrivateKey(number("fdc57ff449dd4f6bfb7c9df1c29acb592ae7d4eefbfc0a909abbf6323d8b1855")),
            publicKeyB: point(
                "90a1aa2fb27790559fa61586fd8ab547004c9ef184225909961daf1ff0f0a11e",
                "4a21b115f9af895f76368ee230112d476051b89a3a70567337ad9d423ef3554c"
            ),
            sharedKey: DiffieHellmanKey(number("98a6bf73f3348d86f166f8b4136b79999b7d390aa610103405adc857a33402ec"))
        ),
        KeyAgreementSample(
            name: "the second data set",
            privateKeyA: P256PrivateKey(number("637645d0f773acb7ffdd0372b97285b441b65d0c5d5484601aa39a3c6916a506")),
            publicKeyA: point(
                "dd785c74039b7e98cb94874aadfaf8d5433e5cafeab54cf49e8079577ba4312c",
                "4f5d71437743f8ead43ebd17911021d01f87438e40e252cdbedf983818129591"
            ),
            privateKeyB: P256PrivateKey(number("ba30555019a2caa3a52908c6b503887e032b5073d42e509764cd720d67a09a52")),
            publicKeyB: point(
                "cc0065e1f56c0dcfec96472066c9db848175a84dc0dfc79d1b3f3df23fe465f4",
                "79b2ecd8ca55a1a8434d6bca10b0c201c2334e1624c4efee99d8bbbc48d00102"
            ),
            sharedKey: DiffieHellmanKey(number("69eb2132f2c605416019cd5e94e1e65f3307e3384b68e5623f886d2f3a8485ab"))
        ),
    ]
}

@Suite("Key agreement on P-256")
struct KeyAgreementTests {
    let functions = SwiftCryptography()

    @Test(
        "The specification's samples give their public keys and, on both sides, the shared key",
        arguments: KeyAgreementSample.all
    )
    func samplesGiveTheirPublicKeysAndTheSharedKeyOnBothSides(sample: KeyAgreementSample) {
        #expect(functions.publicKey(of: sample.privateKeyA) == sample.publicKeyA)
        #expect(functions.publicKey(of: sample.privateKeyB) == sample.publicKeyB)
        #expect(functions.sharedKey(sample.privateKeyA, with: sample.publicKeyB) == sample.sharedKey)
        #expect(functions.sharedKey(sample.privateKeyB, with: sample.publicKeyA) == sample.sharedKey)
    }

    @Test("A key is computed with one's own public key as well; the protocol must refuse that")
    func sharedKeyIsComputedWithTheOwnPublicKeyAsWell() {
        let sample = KeyAgreementSample.all[0]
        let expected = KeyAgreementSample.number("2dab0048cbb37bda557b8b72a85787c387279932fc795fae7c1cf949e6d7aa70")
        #expect(functions.sharedKey(sample.privateKeyA, with: sample.publicKeyA) == DiffieHellmanKey(expected))
    }

    /// Coordinates of no point on the curve, each made in its own way from the first sample's.
    static let invalidPoints: [(String, P256PublicKey)] = {
        let zero = String(repeating: "00", count: 32)
        let x = "90a1aa2fb27790559fa61586fd8ab547004c9ef184225909961daf1ff0f0a11e"
        let y = "4a21b115f9af895f76368ee230112d476051b89a3a70567337ad9d423ef3554c"
        let prime = "ffffffffffffffffffffffff00000000000000000000000001000000ffffffff"
        let ones = String(repeating: "ff", count: 32)
        let point = KeyAgreementSample.point
        return [
            ("the point at infinity, as zeros", point(zero, zero)),
            ("a y of zero, which puts the point on a weaker curve (CVE-2018-5383)", point(x, zero)),
            ("an x of zero", point(zero, y)),
            ("a y with its least significant bit turned", point(x, "4b" + y.dropFirst(2))),
            ("an x with its least significant bit turned", point("91" + x.dropFirst(2), y)),
            ("coordinates that are swapped", point(y, x)),
            ("an x that is the prime of the field", point(prime, y)),
            ("a y that is the prime of the field", point(x, prime)),
            ("an x beyond the prime", point(ones, y)),
            ("a y beyond the prime", point(x, ones)),
        ]
    }()

    @Test("Coordinates of no point on the curve give no key", arguments: invalidPoints)
    func pointOutsideTheCurveGivesNoKey(name: String, point: P256PublicKey) {
        for sample in KeyAgreementSample.all {
            #expect(functions.sharedKey(sample.privateKeyA, with: point) == nil)
        }
    }

    @Test(
        "A private key must be greater than zero and less than the order of the curve",
        arguments: [
            String(repeating: "00", count: 32),
            String(repeating: "ff", count: 32),
            "512563fcc2cab9f3849e17a7adfae6bcffffffffffffffff00000000ffffffff",
        ]
    )
    func privateKeyOutOfRangeGivesNoKeys(text: String) {
        let key = P256PrivateKey(KeyAgreementSample.number(text))
        #expect(functions.publicKey(of: key) == nil)
        #expect(functions.sharedKey(key, with: KeyAgreementSample.all[0].publicKeyB) == nil)
    }

    @Test(arguments: [0, 31, 33, 64])
    func numberThatHasNot32BytesIsRefused(count: Int) {
        #expect(UInt256Bytes(leastSignificantFirst: Array(repeating: 1, count: count)) == nil)
    }
}
