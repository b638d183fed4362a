import BLECryptography
import BLESMP
import Testing

@Suite("Ciphers by swift-crypto")
struct SwiftCryptographyTests {
    let functions = SwiftCryptography()

    @Test("AES-128 agrees with FIPS-197, C.1")
    func aes128AgreesWithFIPS197() {
        let key: UInt128 = 0x0001_0203_0405_0607_0809_0A0B_0C0D_0E0F
        let plaintext: UInt128 = 0x0011_2233_4455_6677_8899_AABB_CCDD_EEFF
        #expect(functions.encrypt(plaintext, key: key) == 0x69C4_E0D8_6A7B_0430_D8CD_B780_70B4_C55A)
    }

    @Test("AES-CMAC of an empty message agrees with RFC 4493")
    func aesCMACOfAnEmptyMessageAgreesWithRFC4493() {
        let key: UInt128 = 0x2B7E_1516_28AE_D2A6_ABF7_1588_09CF_4F3C
        #expect(functions.authenticationCode(of: [], key: key) == 0xBB1D_6929_E959_3728_7FA3_7D12_9B75_6746)
    }
}
