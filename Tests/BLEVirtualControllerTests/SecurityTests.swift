import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Keys of software controllers")
struct SecurityTests {
    @Test("A session key equals that of the specification's sample data")
    func sessionKeyEqualsTheSampleOfTheSpecification() {
        // Vol 6, Part C, 1.
        var encryption = Encryption()
        encryption.longTermKey = 0x4C68_3841_39F5_74D8_36BC_F34E_9DFB_01BF
        encryption.diversifiers = (central: 0xACBD_CEDF_E0F1_0213, peripheral: 0x0213_2435_4657_6879)
        #expect(encryption.sessionKey == 0x99AD_1B52_26A3_7E3E_058E_3B8E_27C2_C666)
    }

    @Test("LE Encrypt uses bytes with the least significant first")
    func leEncryptUsesBytesLeastSignificantFirst() {
        let world = World(count: 1)
        let answer = world.send(
            LEEncrypt(
                key: 0x4C68_3841_39F5_74D8_36BC_F34E_9DFB_01BF,
                plaintextData: 0x0213_2435_4657_6879_ACBD_CEDF_E0F1_0213
            ),
            to: 0
        )
        let octets: [UInt8] = [
            0x66, 0xC6, 0xC2, 0x27, 0x8E, 0x3B, 0x8E, 0x05, 0x3E, 0x7E, 0xA3, 0x26, 0x52, 0x1B, 0xAD, 0x99,
        ]
        #expect(answer == [[0x04, 0x0E, 0x14, 0x01, 0x17, 0x20, 0x00] + octets])
    }

    @Test("Two controllers agree on a Diffie-Hellman key; a point outside the curve is refused")
    func controllersAgreeOnAKeyAndRefuseAPointOutsideTheCurve() throws {
        let world = World(count: 2)
        for index in 0...1 {
            world.send(SetEventMask(eventMask: EventMask(rawValue: .max)), to: index)
            world.send(LESetEventMask(leEventMask: LEEventMask(rawValue: .max)), to: index)
        }
        var keys: [P256PublicKey] = []
        for index in 0...1 {
            let event = try #require(world.send(LEReadLocalP256PublicKey(), to: index).last)
            #expect(event.prefix(5) == [0x04, 0x3E, 0x42, 0x08, 0x00])
            keys.append(P256PublicKey(x: Array(event[5..<37]), y: Array(event[37..<69])))
        }
        let first = world.send(LEGenerateDHKey(remotePublicKey: keys[1]), to: 0).last
        let second = world.send(LEGenerateDHKey(remotePublicKey: keys[0]), to: 1).last
        #expect(first?.prefix(5) == [0x04, 0x3E, 0x22, 0x09, 0x00] && first == second)
        let wrong = P256PublicKey(x: keys[0].x, y: keys[0].x)
        #expect(
            world.send(LEGenerateDHKey(remotePublicKey: wrong), to: 0).last?.prefix(5) == [
                0x04, 0x3E, 0x22, 0x09, 0x12,
            ]
        )
    }
}
