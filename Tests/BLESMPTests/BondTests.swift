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

    @Test("A bond whose keys differ is as strong as the weaker one, and is replaced by the stronger one only")
    func bondWithDifferentKeysIsJudgedByBoth() {
        let legacy = KeyStrength(isAuthenticated: true, isSecureConnections: false, keySize: 7)
        let secure = KeyStrength(isAuthenticated: false, isSecureConnections: true, keySize: 16)
        var bond = Bond(identity: DeviceAddress(0xC0_0000_0001, isRandom: true))
        for (central, peripheral) in [(legacy, secure), (secure, legacy)] {
            bond.centralKey = LongTermKey(value: 1, strength: central)
            bond.peripheralKey = LongTermKey(value: 2, strength: peripheral)
            #expect(bond.strength == KeyStrength(isAuthenticated: false, isSecureConnections: false, keySize: 7))
            let replacement = KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 16)
            #expect(bond.replacementStrength == replacement)
        }
    }
}
