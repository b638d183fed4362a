import BLECryptography
import BLESMP
import BluetoothTypes
import Testing

@Suite("A resolvable private address")
struct PrivateAddressTests {
    let toolbox = Toolbox(SwiftCryptography())
    let irk: UInt128 = 0xEC02_34A3_57C8_AD05_3410_10A6_0A39_7D9B

    /// A generator that always returns the same number.
    struct Constant: RandomNumberGenerator {
        let value: UInt64
        mutating func next() -> UInt64 { value }
    }

    @Test func privateAddressIsResolvedByItsOwnKeyOnly() {
        let address = DeviceAddress(0x7081_940D_FBAA, isRandom: true)
        #expect(toolbox.resolves(address, irk: irk))
        #expect(!toolbox.resolves(address, irk: irk + 1))
        #expect(!toolbox.resolves(DeviceAddress(address.value ^ 1, isRandom: true), irk: irk))
        #expect(!toolbox.resolves(DeviceAddress(address.value, isRandom: false), irk: irk))
    }

    @Test(arguments: [0x30_8194, 0xB0_8194, 0xF0_8194])
    func addressOfAnotherKindIsNotResolvedEvenIfItsHashIsRight(prand: UInt32) {
        let address = DeviceAddress(UInt64(prand) << 24 | UInt64(toolbox.ah(irk: irk, prand: prand)), isRandom: true)
        #expect(!toolbox.resolves(address, irk: irk))
    }

    @Test func generatedAddressesAreResolvedByTheirKeyAndDiffer() {
        var random = SystemRandomNumberGenerator()
        var made: Set<DeviceAddress> = []
        for _ in 0..<64 {
            let address = toolbox.resolvablePrivateAddress(irk: irk, random: &random)
            #expect(address.kind == .resolvablePrivate)
            #expect(toolbox.resolves(address, irk: irk))
            made.insert(address)
        }
        #expect(made.count > 60)
    }

    @Test(arguments: [0, UInt64.max])
    func randomPartHasZerosAndOnesWhateverTheGeneratorReturns(value: UInt64) {
        var random = Constant(value: value)
        let part = toolbox.resolvablePrivateAddress(irk: irk, random: &random).value >> 24 & 0x3F_FFFF
        #expect(part != 0 && part != 0x3F_FFFF)
    }
}
