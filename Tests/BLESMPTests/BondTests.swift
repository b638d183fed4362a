import BLESMP
import BluetoothTypes
import Testing

@Suite("A bond")
struct BondTests {
    @Test func bondHasTheStrengthOfTheKeyOfEitherRole() {
        let strength = KeyStrength(isAuthenticated: true, isSecureConnections: false, keySize: 16)
        var bond = Bond(identity: DeviceAddress(0xC0_0000_0001, isRandom: true))
        #expect(bond.strength == nil)
        bond.peripheralKey = LongTermKey(value: 1, strength: strength)
        #expect(bond.strength == strength)
        bond.peripheralKey = nil
        bond.centralKey = LongTermKey(value: 1, strength: strength)
        #expect(bond.strength == strength)
    }
}
