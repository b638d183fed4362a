import BluetoothTypes
import Cryptography
import SMP
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

    @Test("is resolved by the key that generated it and by no other")
    func resolves() {
        let address = DeviceAddress(0x7081_940D_FBAA, isRandom: true)
        #expect(toolbox.resolves(address, irk: irk))
        #expect(!toolbox.resolves(address, irk: irk + 1))
        #expect(!toolbox.resolves(DeviceAddress(address.value ^ 1, isRandom: true), irk: irk))
        #expect(!toolbox.resolves(DeviceAddress(address.value, isRandom: false), irk: irk))
    }

    @Test("of another kind is not resolved, even if its hash is right", arguments: [0x30_8194, 0xB0_8194, 0xF0_8194])
    func otherKinds(prand: UInt32) {
        let address = DeviceAddress(UInt64(prand) << 24 | UInt64(toolbox.ah(irk: irk, prand: prand)), isRandom: true)
        #expect(!toolbox.resolves(address, irk: irk))
    }

    @Test("is generated so that its key resolves it, and differs each time")
    func isMade() {
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

    @Test("has a random part with zeros and ones, whatever the generator returns", arguments: [0, UInt64.max])
    func randomPart(value: UInt64) {
        var random = Constant(value: value)
        let part = toolbox.resolvablePrivateAddress(irk: irk, random: &random).value >> 24 & 0x3F_FFFF
        #expect(part != 0 && part != 0x3F_FFFF)
    }
}
