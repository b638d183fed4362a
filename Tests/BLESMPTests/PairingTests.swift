import BLESMP
import BluetoothTypes
import Testing

@Suite("Two devices that pair")
struct PairingTests {
    @Test(arguments: Method.all, [1, 2, 3] as [UInt64])
    func pairingGivesBothDevicesTheSameKeysWithEachMethod(method: Method, seed: UInt64) throws {
        var meeting = method.meeting(seed: seed)
        meeting.pair()
        #expect(meeting.central.failure == nil && meeting.peripheral.failure == nil)
        let central = try #require(meeting.central.outcome)
        let peripheral = try #require(meeting.peripheral.outcome)
        let strength = KeyStrength(
            isAuthenticated: method.model != .justWorks,
            isSecureConnections: method.isSecureConnections,
            keySize: 16
        )
        #expect(central.model == method.model && peripheral.model == method.modelOfPeripheral)
        #expect(central.strength == strength && peripheral.strength == strength)
        #expect(central.isBonded && peripheral.isBonded)
        #expect(central.bond.strength == strength && peripheral.bond.strength == strength)

        #expect(central.bond.centralKey == peripheral.bond.peripheralKey)
        #expect(central.bond.peripheralKey == peripheral.bond.centralKey)
        #expect(central.bond.centralKey != nil && central.bond.peripheralKey != nil)
        let key = try #require(meeting.encryptionKey)
        if method.isSecureConnections {
            #expect(central.bond.centralKey == key && central.bond.peripheralKey == key)
            #expect(key.encryptedDiversifier == 0 && key.randomNumber == 0)
        } else {
            #expect(Set([key.value, central.bond.centralKey?.value, central.bond.peripheralKey?.value]).count == 3)
        }
        #expect(central.bond.identity == Meeting.peripheralIdentity.address)
        #expect(peripheral.bond.identity == Meeting.centralIdentity.address)
        #expect(central.bond.identityResolvingKey == Meeting.peripheralIdentity.resolvingKey)
        #expect(peripheral.bond.identityResolvingKey == Meeting.centralIdentity.resolvingKey)
        #expect(central.bond.ownSigningKey != nil && central.bond.ownSigningKey == peripheral.bond.peerSigningKey)
        #expect(central.bond.peerSigningKey != nil && central.bond.peerSigningKey == peripheral.bond.ownSigningKey)
        #expect(!meeting.central.channel.isPairing && !meeting.peripheral.channel.isPairing)
        #expect(meeting.central.channel.deadline == nil && meeting.peripheral.channel.deadline == nil)
    }

    @Test(arguments: Method.all)
    func consentIsAskedFirstWithModelAndStrength(method: Method) throws {
        var meeting = method.meeting()
        meeting.pair()
        let strength = try #require(meeting.central.outcome?.strength)
        for role in [Channel.Role.central, .peripheral] {
            let first = meeting.asked.first { $0.of == role }
            let model = role == .central ? method.model : method.modelOfPeripheral
            #expect(first?.0 == .consent(model, strength))
        }
    }
}
