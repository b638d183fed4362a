import BLECryptography
import BLESMP
import BluetoothTypes
import Testing

@Suite("A signature")
struct SignatureTests {
    let toolbox = Toolbox(SwiftCryptography())
    let key: UInt128 = 0x611B_64EB_FBCD_1FD3_72EC_9196_DF42_5E50

    @Test func signatureIsCounterAndCodeLeastSignificantByteFirst() {
        let signature = toolbox.signature(of: [0xD2, 0x12, 0x00, 0x13, 0x37], counter: 1, key: key)
        #expect(signature == [0x01, 0x00, 0x00, 0x00, 0xF1, 0x87, 0x1E, 0x93, 0x3C, 0x90, 0x0F, 0xF2])
    }

    /// Vol 3, Part H, D.1.
    @Test func signatureIsTheCodeOfCounterAndMessageAsOneNumber() throws {
        // The message of the sample with 40 bytes, of which the counter takes the first four.
        let message = try #require(
            [UInt8](
                hexadecimal: "2e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411"
            )
        )
        let signature = toolbox.signature(
            of: message.reversed(),
            counter: 0x6BC1_BEE2,
            key: 0x2B7E_1516_28AE_D2A6_ABF7_1588_09CF_4F3C
        )
        #expect(signature == [0xE2, 0xBE, 0xC1, 0x6B] + [0xDF, 0xA6, 0x67, 0x47, 0xDE, 0x9A, 0xE6, 0x30].reversed())
    }

    @Test func signatureDiffersForAnotherCounterMessageOrKey() {
        let message: [UInt8] = [0xD2, 0x12, 0x00, 0x13, 0x37]
        let signature = toolbox.signature(of: message, counter: 1, key: key).suffix(8)
        #expect(toolbox.signature(of: message, counter: 2, key: key).suffix(8) != signature)
        #expect(toolbox.signature(of: message + [0], counter: 1, key: key).suffix(8) != signature)
        #expect(toolbox.signature(of: message, counter: 1, key: key ^ 1).suffix(8) != signature)
    }
}
