import BLECryptography
import BLESMP
import BluetoothTypes
import Testing

/// The sample data of Vol 3, Part H, Appendix D, and of 2.2.
@Suite("The specification's sample data for the toolbox")
struct ToolboxTests {
    let toolbox = Toolbox(SwiftCryptography())

    static let u = number("20b003d2 f297be2c 5e2c83a7 e9f9a5b9 eff49111 acf4fddb cc030148 0e359de6")
    static let v = number("55188b3d 32f6bb9a 900afcfb eed4e72a 59cb9ac2 f19d7cfb 6b4fdd49 f47fc5fd")
    static let x: UInt128 = 0xD5CB_8454_D177_733E_FFFF_B2EC_712B_AEAB
    static let y: UInt128 = 0xA6E8_E7CC_25A7_5F6E_2165_83F7_FF3D_C4CF
    static let longTermKey: UInt128 = 0x368D_F9BC_E326_4B58_BD06_6C33_334F_BF64
    static let a1 = DeviceAddress(0x5612_3737_BFCE, isRandom: false)
    static let a2 = DeviceAddress(0xA713_702D_CFC1, isRandom: false)

    /// Reads 64 digits, the most significant first.
    static func number(_ text: String) -> UInt256Bytes {
        let octets = [UInt8](hexadecimal: text.filter { $0 != " " }) ?? []
        return UInt256Bytes(leastSignificantFirst: octets.reversed())!
    }

    /// Vol 3, Part H, 2.2.3.
    @Test func c1GivesTheSampleConfirmValue() {
        let confirm = toolbox.c1(
            k: 0,
            r: 0x5783_D521_56AD_6F0E_6388_274E_C670_2EE0,
            preq: [0x01, 0x01, 0x00, 0x00, 0x10, 0x07, 0x07],
            pres: [0x02, 0x03, 0x00, 0x00, 0x08, 0x00, 0x05],
            ia: DeviceAddress(0xA1A2_A3A4_A5A6, isRandom: true),
            ra: DeviceAddress(0xB1B2_B3B4_B5B6, isRandom: false)
        )
        #expect(confirm == 0x1E1E_3FEF_8789_88EA_D2A7_4DC5_BEF1_3B86)
    }

    /// Vol 3, Part H, 2.2.4.
    @Test func s1GivesTheSampleKey() {
        let key = toolbox.s1(
            k: 0,
            r1: 0x000F_0E0D_0C0B_0A09_1122_3344_5566_7788,
            r2: 0x0102_0304_0506_0708_99AA_BBCC_DDEE_FF00
        )
        #expect(key == 0x9A1F_E1F0_E8B0_F49B_5B42_16AE_796D_A062)
    }

    /// Vol 3, Part H, D.1.
    @Test(
        arguments: [
            (0, 0xBB1D_6929_E959_3728_7FA3_7D12_9B75_6746),
            (16, 0x070A_16B4_6B4D_4144_F79B_DD9D_D04A_287C),
            (40, 0xDFA6_6747_DE9A_E630_30CA_3261_1497_C827),
            (64, 0x51F0_BEBF_7E3B_9D92_FC49_7417_7936_3CFE),
        ] as [(Int, UInt128)]
    )
    func aesCMACGivesTheSampleCode(length: Int, code: UInt128) throws {
        let message = try #require(
            [UInt8](
                hexadecimal: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
                    + "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
            )
        )
        let key: UInt128 = 0x2B7E_1516_28AE_D2A6_ABF7_1588_09CF_4F3C
        #expect(SwiftCryptography().authenticationCode(of: Array(message.prefix(length)), key: key) == code)
    }

    /// Vol 3, Part H, D.2.
    @Test func f4GivesTheSampleConfirmValue() {
        let confirm = toolbox.f4(u: Self.u, v: Self.v, x: Self.x, z: 0)
        #expect(confirm == 0xF2C9_16F1_07A9_BD1C_F1ED_A1BE_A974_872D)
    }

    /// Vol 3, Part H, D.3.
    @Test func f5GivesTheSampleKeys() {
        let keys = toolbox.f5(
            w: DiffieHellmanKey(Self.number("ec0234a3 57c8ad05 341010a6 0a397d9b 99796b13 b4f866f1 868d34f3 73bfa698")),
            n1: Self.x,
            n2: Self.y,
            a1: Self.a1,
            a2: Self.a2
        )
        #expect(keys.longTermKey == 0x6986_7911_69D7_CD23_9805_22B5_9475_0A38)
        #expect(keys.macKey == 0x2965_F176_A108_4A02_FD3F_6A20_CE63_6E20)
    }

    /// Vol 3, Part H, D.4.
    @Test func f6GivesTheSampleCheckValue() {
        let check = toolbox.f6(
            w: 0x2965_F176_A108_4A02_FD3F_6A20_CE63_6E20,
            n1: Self.x,
            n2: Self.y,
            r: 0x12A3_343B_B453_BB54_08DA_42D2_0C2D_0FC8,
            ioCapability: 0x01_0102,
            a1: Self.a1,
            a2: Self.a2
        )
        #expect(check == 0xE3C4_7398_9CD0_E8C5_D26C_0B09_DA95_8F61)
    }

    /// Vol 3, Part H, D.5.
    @Test func g2GivesTheSixDigitsOfTheSample() {
        #expect(toolbox.g2(u: Self.u, v: Self.v, x: Self.x, y: Self.y) == 0x2F9E_D5BA % 1_000_000)
    }

    /// Vol 3, Part H, D.6.
    @Test func h6GivesTheSampleKey() {
        let key = toolbox.h6(w: 0xEC02_34A3_57C8_AD05_3410_10A6_0A39_7D9B, keyID: 0x6C65_6272)
        #expect(key == 0x2D9A_E102_E76D_C91C_E8D3_A9E2_80B1_6399)
    }

    /// Vol 3, Part H, D.7.
    @Test func ahGivesTheSampleHash() {
        #expect(toolbox.ah(irk: 0xEC02_34A3_57C8_AD05_3410_10A6_0A39_7D9B, prand: 0x70_8194) == 0x0D_FBAA)
    }

    /// Vol 3, Part H, D.8.
    @Test func h7GivesTheSampleKey() {
        let key = toolbox.h7(salt: 0x746D_7031, w: 0xEC02_34A3_57C8_AD05_3410_10A6_0A39_7D9B)
        #expect(key == 0xFB17_3597_C6A3_C0EC_D299_8C2A_75A5_7011)
    }

    /// Vol 3, Part H, D.9 and D.10.
    @Test func h7AndH6GiveTheSampleLinkKeys() {
        let byH7 = toolbox.h6(w: toolbox.h7(salt: 0x746D_7031, w: Self.longTermKey), keyID: 0x6C65_6272)
        #expect(byH7 == 0x287A_D379_DCA4_0253_0A39_F1F4_3047_B835)
        let byH6 = toolbox.h6(w: toolbox.h6(w: Self.longTermKey, keyID: 0x746D_7031), keyID: 0x6C65_6272)
        #expect(byH6 == 0xBC1C_A4EF_633F_C1BD_0D82_30AF_EE38_8FB0)
    }

    /// Vol 3, Part H, D.11 and D.12.
    @Test func h7AndH6GiveTheSampleLongTermKeys() {
        let linkKey: UInt128 = 0x0504_0302_0100_0908_0706_0504_0302_0100
        let byH7 = toolbox.h6(w: toolbox.h7(salt: 0x746D_7032, w: linkKey), keyID: 0x6272_6C65)
        #expect(byH7 == 0xE85E_09EB_5ECC_B3E2_6941_8A13_3211_BC79)
        let byH6 = toolbox.h6(w: toolbox.h6(w: linkKey, keyID: 0x746D_7032), keyID: 0x6272_6C65)
        #expect(byH6 == 0xA813_FB72_F1A3_DFA1_8A2C_9A43_F10D_0A30)
    }
}
