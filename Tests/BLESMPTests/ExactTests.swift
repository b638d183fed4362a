import BLEByteCoding
import BLECryptography
import BluetoothTypes
import Testing

@testable import BLESMP

/// The results for fixed random numbers, from the specification's sample data (Vol 3, Part H, D, and Vol 2, Part G,
/// 7.1.2) and from other implementations of the toolbox.
private enum SampleExchange {
    static let centralAddress = DeviceAddress(0x5612_3737_BFCE, isRandom: false)
    static let peripheralAddress = DeviceAddress(0xA713_702D_CFC1, isRandom: false)
    static let centralKey = "bd1a3ccda6b8995899b740eb7b60ff4a503f10d2e3b3c974385fc5a3d4f6493f"
    static let peripheralKey = "fdc57ff449dd4f6bfb7c9df1c29acb592ae7d4eefbfc0a909abbf6323d8b1855"
    static let centralNonce: UInt128 = 0xD5CB_8454_D177_733E_FFFF_B2EC_712B_AEAB
    static let peripheralNonce: UInt128 = 0xA6E8_E7CC_25A7_5F6E_2165_83F7_FF3D_C4CF
    /// The key that f5 makes of N1 and N2, the public keys and their DHKey (D.3).
    static let longTermKey: UInt128 = 0x6986_7911_69D7_CD23_9805_22B5_9475_0A38

    static let publicKeys = [
        "0ce69d350e480103ccdbfdf4ac1191f4efb9a5f9e9a7832c5e2cbe97f2d203b020"
            + "8bd28915d08e1c742430ed8fc24563765c15525abf9a32636deb2a65499c80dc",
        "0c90a1aa2fb27790559fa61586fd8ab547004c9ef184225909961daf1ff0f0a11e"
            + "4a21b115f9af895f76368ee230112d476051b89a3a70567337ad9d423ef3554c",
    ]
    static let nonces = ["04abae2b71ecb2ffff3e7377d15484cbd5", "04cfc43dfff78365216e5fa725cce7e8a6"]
    static let confirm = "036bab385318d9cea1ba9fc6b57775ff3a"
}

private func octets(_ digits: String) -> [UInt8] {
    let digits = Array(digits)
    return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...($0 + 1)]), radix: 16) }
}

/// Returns the generator's numbers from which a private key is made.
private func draws(ofKey digits: String) -> [UInt64] {
    let octets = octets(digits)
    let words = stride(from: 0, to: 32, by: 8).map { start in
        octets[start..<(start + 8)].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    }
    return [words[1], words[0], words[3], words[2]]
}

private func draws(of number: UInt128) -> [UInt64] {
    [UInt64(truncatingIfNeeded: number >> 64), UInt64(truncatingIfNeeded: number)]
}

private func meeting(
    _ central: IOCapability,
    _ peripheral: IOCapability,
    draws: (central: [UInt64], peripheral: [UInt64]),
    _ change: (inout PairingParameters, inout PairingParameters) -> Void = { _, _ in }
) -> Meeting {
    var (centralParameters, peripheralParameters) = (PairingParameters(), PairingParameters())
    centralParameters.ioCapability = central
    peripheralParameters.ioCapability = peripheral
    // The specification's sample key pair is the debug key pair.
    peripheralParameters.allowsDebugKey = true
    change(&centralParameters, &peripheralParameters)
    var meeting = Meeting(central: centralParameters, peripheral: peripheralParameters)
    meeting.central.channel = Channel(
        role: .central,
        ownAddress: SampleExchange.centralAddress,
        peerAddress: SampleExchange.peripheralAddress,
        identity: Meeting.centralIdentity,
        functions: SwiftCryptography()
    )
    meeting.central.channel.parameters = centralParameters
    meeting.peripheral.channel = Channel(
        role: .peripheral,
        ownAddress: SampleExchange.peripheralAddress,
        peerAddress: SampleExchange.centralAddress,
        identity: Meeting.peripheralIdentity,
        functions: SwiftCryptography()
    )
    meeting.peripheral.channel.parameters = peripheralParameters
    meeting.central.random.script = draws.central
    meeting.peripheral.random.script = draws.peripheral
    return meeting
}

@Suite("The exact bytes of a pairing")
struct ExactTests {
    private let secureDraws = (
        draws(ofKey: SampleExchange.centralKey) + draws(of: SampleExchange.centralNonce),
        draws(ofKey: SampleExchange.peripheralKey) + draws(of: SampleExchange.peripheralNonce)
    )

    private func expectSent(_ meeting: Meeting, _ expected: [String]) {
        #expect(meeting.sent.prefix(expected.count).map(\.pdu) == expected.map(octets))
    }

    @Test func justWorksWithSecureConnectionsSendsTheExpectedBytes() throws {
        var secure = secureDraws
        secure.0 += [0x3132_3334_3536_3738, 0x4142_4344_4546_4748]
        secure.1 += [0x1112_1314_1516_1718, 0x2122_2324_2526_2728]
        var meeting = meeting(.noInputNoOutput, .noInputNoOutput, draws: secure)
        meeting.pair()
        let exchange = SampleExchange.publicKeys + [SampleExchange.confirm] + SampleExchange.nonces
        expectSent(
            meeting,
            ["01030009100707", "02030009100606"] + exchange + [
                "0dc994bb9c4708967d239e609785831a81", "0dc0509525f371ff94a825859705879a67",
                // The peripheral's keys, and then the central's.
                "0844443333222211110000000000000000", "09011122334455c6",
                "0a28272625242322211817161514131211",
                "089b7d390aa610103405adc857a33402ec", "0900ef3207dc1b00",
                "0a48474645444342413837363534333231",
            ]
        )
        #expect(meeting.sent.count == 15)
        #expect(meeting.central.outcome?.bond.centralKey?.value == SampleExchange.longTermKey)
        #expect(meeting.peripheral.outcome?.bond.peripheralKey?.value == SampleExchange.longTermKey)
    }

    @Test func numericComparisonSendsTheExpectedBytes() {
        var meeting = meeting(.displayYesNo, .keyboardDisplay, draws: secureDraws)
        meeting.pair()
        let exchange = SampleExchange.publicKeys + [SampleExchange.confirm] + SampleExchange.nonces
        expectSent(
            meeting,
            ["0101000d100707", "0204000d100606"] + exchange + [
                "0dd9b5614a965f24ff0cedd39f4b98e2af", "0d8f7b8ff0833dda4e1eda527014ca2e57",
            ]
        )
        #expect(meeting.asked.filter { $0.0 == .compare(706_570) }.count == 2)
        #expect(meeting.encryptionKey?.value == SampleExchange.longTermKey)
    }

    @Test func passkeyTypedOnBothSidesSendsTheExpectedBytes() {
        func nonces(_ last: UInt128) -> [UInt64] {
            (0..<20).flatMap { draws(of: last << 120 | UInt128($0)) }
        }
        var meeting = meeting(
            .keyboardOnly,
            .keyboardOnly,
            draws: (
                draws(ofKey: SampleExchange.centralKey) + nonces(0xA0),
                draws(ofKey: SampleExchange.peripheralKey) + nonces(0xB0)
            )
        )
        meeting.typed = 918_273
        meeting.pair()
        expectSent(
            meeting,
            ["0102000d100707", "0202000d100606"] + SampleExchange.publicKeys + [
                "03594fea133840a6762dfb043970f7ccf9", "033b4b71add71320cd845a16b691711fd6",
                "04000000000000000000000000000000a0", "04000000000000000000000000000000b0",
            ]
        )
        #expect(
            meeting.sent.dropFirst(4 + 4 * 19).prefix(6).map(\.pdu)
                == [
                    "031f049d1eddce4b60ab4537e6fe708750", "031934cad2130c23b8c2df7c60f5166e25",
                    "04130000000000000000000000000000a0", "04130000000000000000000000000000b0",
                    "0d201d535d3da49992296aa05313d50911", "0dc11dc26c7c55facaed272fa81df5bcf9",
                ].map(octets)
        )
        #expect(meeting.encryptionKey?.value == 0x13EE_1703_237C_4798_DC48_E1AF_D701_CD28)
    }

    @Test func outOfBandDataInBothDirectionsSendsTheExpectedBytes() throws {
        let central = try #require(UInt256Bytes(leastSignificantFirst: octets(SampleExchange.centralKey)))
        let peripheral = try #require(UInt256Bytes(leastSignificantFirst: octets(SampleExchange.peripheralKey)))
        let centralRandom: UInt128 = 0x1F1E_1D1C_1B1A_1918_1716_1514_1312_1110
        let peripheralRandom: UInt128 = 0x2F2E_2D2C_2B2A_2928_2726_2524_2322_2120
        var meeting = meeting(
            .noInputNoOutput,
            .noInputNoOutput,
            draws: (draws(of: SampleExchange.centralNonce), draws(of: SampleExchange.peripheralNonce))
        ) { centralParameters, peripheralParameters in
            centralParameters.ownOutOfBandData = .secureConnections(
                privateKey: P256PrivateKey(central),
                random: centralRandom
            )
            centralParameters.peerOutOfBandData = .secureConnections(
                confirm: 0xBB5D_6E44_C41C_DDE9_4F36_7C6E_B0DB_6206,
                random: peripheralRandom
            )
            peripheralParameters.ownOutOfBandData = .secureConnections(
                privateKey: P256PrivateKey(peripheral),
                random: peripheralRandom
            )
            peripheralParameters.peerOutOfBandData = .secureConnections(
                confirm: 0x255D_6DF3_F58F_EDEA_BC40_5FCE_DFF8_574C,
                random: centralRandom
            )
        }
        meeting.pair()
        expectSent(
            meeting,
            ["01030109100707", "02030109100606"] + SampleExchange.publicKeys + SampleExchange.nonces + [
                "0d644b37f6779102f0a19143e625bde334", "0da6c0d83e84a18149211f18df976534d8",
            ]
        )
        #expect(meeting.encryptionKey?.value == SampleExchange.longTermKey)
    }

    @Test func legacyPasskeyTypedOnBothSidesSendsTheExpectedBytes() {
        var meeting = meeting(
            .keyboardOnly,
            .keyboardOnly,
            draws: (
                draws(of: 0x000F_0E0D_0C0B_0A09_1122_3344_5566_7788),
                draws(of: 0x0102_0304_0506_0708_99AA_BBCC_DDEE_FF00) + [
                    0x5152_5354_5556_5758, 0x6162_6364_6566_6768, 0xBEEF, 0x7172_7374_7576_7778,
                    0x1112_1314_1516_1718, 0x2122_2324_2526_2728,
                ]
            )
        ) { _, peripheral in peripheral.offersSecureConnections = false }
        meeting.typed = 918_273
        meeting.pair()
        expectSent(
            meeting,
            [
                "0102000d100707", "02020005100707",
                "0300235fe90d2cca9f19879ab43e7db1eb", "03a7262b2f26f53ba422590de4a5ff8c8b",
                "048877665544332211090a0b0c0d0e0f00", "0400ffeeddccbbaa990807060504030201",
                "0668676665646362615857565554535251", "07efbe7877767574737271",
                "0844443333222211110000000000000000", "09011122334455c6",
                "0a28272625242322211817161514131211",
            ]
        )
        #expect(meeting.sent.count == 16)
        #expect(meeting.encryptionKey?.value == 0xC57B_B11F_B32F_6C69_BE95_4F08_7BFC_CF70)
        let key = LongTermKey(
            value: 0x5152_5354_5556_5758_6162_6364_6566_6768,
            encryptedDiversifier: 0xBEEF,
            randomNumber: 0x7172_7374_7576_7778,
            strength: KeyStrength(isAuthenticated: true, isSecureConnections: false, keySize: 16)
        )
        #expect(meeting.central.outcome?.bond.centralKey == key)
        #expect(meeting.peripheral.outcome?.bond.peripheralKey == key)
    }

    /// Vol 3, Part H, 2.2.3.
    @Test func legacyConfirmValueEqualsTheSampleOfTheSpecification() throws {
        let request = try PairingRequest(decoding: octets("01010000100707").rawSpan)
        let response = try PairingResponse(decoding: octets("02030000080005").rawSpan)
        var parameters = PairingParameters()
        parameters.minimumKeySize = 7
        let terms = PairingTerms(
            role: .initiator,
            ownAddress: DeviceAddress(0xA1A2_A3A4_A5A6, isRandom: true),
            peerAddress: DeviceAddress(0xB1B2_B3B4_B5B6, isRandom: false),
            peerIdentity: nil,
            parameters: parameters,
            identity: Meeting.centralIdentity
        )
        var context = PairingContext(
            toolbox: Toolbox(SwiftCryptography()),
            random: ScriptedGenerator(script: draws(of: 0x5783_D521_56AD_6F0E_6388_274E_C670_2EE0), seed: 0)
        )
        _ = try LegacyPairing(Agreement(terms: terms, request: request, response: response), in: &context)
        #expect(context.steps == [.send(octets("03863bf1bec54da7d2ea888987ef3f1e1e"))])
    }
}
