import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BLE

/// The sample data of the Core Specification Supplement, Part A, 2.3.
private enum Sample {
    static let key = EncryptedDataKeyMaterial(
        sessionKey: [UInt8](hexadecimal: "57a9da12d12e6e131e20612ad10a6a19")!,
        initializationVector: [UInt8](hexadecimal: "9e7a00efb17ae746")!
    )!
    static let randomizer = [UInt8](hexadecimal: "18e157cade")!
    static let structures = AdvertisingData([
        .completeLocalName("Short Mini-Bus"), .appearance(Appearance(rawValue: 0x8C0A)),
    ])
    static let encrypted = [UInt8](
        hexadecimal: "1e3118e157cade74e4dcafdc51c7282810c2217f0e4cef4343181fba0069cc"
    )!
}

/// Accepts each pairing, and each comparison of numbers.
private struct Consent: PairingDelegate {
    func answer(_ inquiry: PairingInquiry) async -> PairingAnswer { .accept }
}

@Suite("Encrypted Advertising Data")
struct EncryptedAdvertisingDataTests {
    @Test("The specification's sample data is encrypted and decrypted")
    func sampleDataIsEncryptedAndDecrypted() throws {
        let structure = try Sample.structures.encrypted(with: Sample.key, randomizer: Sample.randomizer)
        #expect(AdvertisingData([structure]).bytes == Sample.encrypted)
        #expect(AdvertisingData(decoding: Sample.encrypted).decrypted(with: Sample.key) == Sample.structures)
    }

    @Test("Structures beside an encrypted one stay, in their order")
    func structuresBesideAnEncryptedOneStay() throws {
        let key = EncryptedDataKeyMaterial()
        let data = AdvertisingData([
            .flags(.generalDiscoverable), try Sample.structures.encrypted(with: key), .txPowerLevel(4),
        ])
        #expect(
            data.decrypted(with: key)
                == AdvertisingData([
                    .flags(.generalDiscoverable), .completeLocalName("Short Mini-Bus"),
                    .appearance(Appearance(rawValue: 0x8C0A)), .txPowerLevel(4),
                ])
        )
    }

    @Test("Data is encrypted with another randomizer each time")
    func dataIsEncryptedWithAnotherRandomizerEachTime() throws {
        let encrypted = try (0..<10).map { _ in try Sample.structures.encrypted(with: Sample.key) }
        #expect(Set(encrypted).count == 10)
        #expect(encrypted.allSatisfy { AdvertisingData([$0]).decrypted(with: Sample.key) == Sample.structures })
    }

    @Test("Changed, truncated and foreign structures stay encrypted")
    func changedTruncatedAndForeignStructuresStayEncrypted() {
        let other = AdvertisingData(decoding: Sample.encrypted)
        #expect(other.decrypted(with: EncryptedDataKeyMaterial()) == other)
        for length in 0..<29 {
            let short = AdvertisingData([.raw(.encryptedData, Array(Sample.encrypted[2...].prefix(length)))])
            #expect(short.decrypted(with: Sample.key) == short)
        }
        for bit in 16..<Sample.encrypted.count * 8 {
            var bytes = Sample.encrypted
            bytes[bit / 8] ^= 1 << (bit % 8)
            let changed = AdvertisingData(decoding: bytes)
            #expect(changed.decrypted(with: Sample.key) == changed)
        }
    }

    @Test("Data that does not fit a structure is refused")
    func dataThatDoesNotFitAStructureIsRefused() throws {
        let largest = AdvertisingData([.raw(.manufacturerSpecificData, [UInt8](repeating: 1, count: 243))])
        let structure = try largest.encrypted(with: Sample.key)
        #expect(AdvertisingData([structure]).length == 245 + AdvertisingData.encryptionOverhead)
        var longer = largest
        longer.append(.flags([]))
        #expect(throws: BLEError.invalidArgument("248 bytes of advertising data cannot be encrypted: at most 245")) {
            try longer.encrypted(with: Sample.key)
        }
    }

    @Test("Key material has 24 bytes, and its description does not show it")
    func keyMaterialHas24Bytes() {
        #expect(EncryptedDataKeyMaterial(decoding: Sample.key.encoded) == Sample.key)
        #expect(EncryptedDataKeyMaterial(decoding: Array(Sample.key.encoded.dropLast())) == nil)
        #expect("\(Sample.key)" == "EncryptedDataKeyMaterial(redacted)")
        var text = ""
        dump(Sample.key, to: &text)
        #expect(!text.contains("87") && !text.contains("0x57"))
    }

    @Test("A central that has paired reads the key, and then understands the encrypted advertisement")
    func pairedCentralUnderstandsTheEncryptedAdvertisement() throws {
        try World.run { world in
            let key = EncryptedDataKeyMaterial()
            let server = try await world.device("server").openAdapter { $0.security.justWorks = .always }
            let client = try await world.device("client").openAdapter { $0.security.justWorks = .always }
            _ = try await server.peripheral.publish([
                ServiceDefinition(
                    uuid: "181A",
                    characteristics: [.encryptedDataKeyMaterial(key, permissions: [.read, .readEncrypted])]
                )
            ])
            var configuration = AdvertisementConfiguration()
            configuration.advertisingData = AdvertisingData([
                .flags(.generalDiscoverable), try Sample.structures.encrypted(with: key),
            ])
            let advertising = try await server.peripheral.startAdvertising(configuration)
            let address = try await server.information.identityAddress
            let peer = try await client.central.connect(to: address)
            try await peer.pair()
            #expect(try await peer.readEncryptedDataKeyMaterial() == key)
            await peer.disconnect()
            let keys = await client.encryptedDataKeys()
            #expect(keys == [address: key])
            for try await advertisement in client.central.scan() where advertisement.address == address {
                let saved = try #require(keys[advertisement.address])
                #expect(advertisement.localName == nil)
                #expect(advertisement.data.decrypted(with: saved).localName == "Short Mini-Bus")
                break
            }
            await advertising.stop()
        }
    }

    @Test("By default, a peer reads the key once its key is authenticated and the app has authorized it")
    func defaultPermissionsRequireAuthenticationAndAuthorization() throws {
        try World.run { world in
            let key = EncryptedDataKeyMaterial()
            let configure: @Sendable (inout Adapter.Configuration) -> Void = {
                $0.security.ioCapability = .displayYesNo
                $0.security.requiresAuthentication = true
                $0.pairingDelegate = Consent()
            }
            let server = try await world.device("server").openAdapter(configure)
            let client = try await world.device("client").openAdapter(configure)
            let published = try await server.peripheral.publish([
                ServiceDefinition(uuid: "181A", characteristics: [.encryptedDataKeyMaterial(key)])
            ])
            let handle = published[0].characteristics[0].valueHandle
            let advertising = try await server.peripheral.startAdvertising(AdvertisementConfiguration())
            let peer = try await client.central.connect(to: server.information.identityAddress)
            #expect(try await peer.pair().isAuthenticated)
            await #expect(throws: BLEError.attribute(.insufficientAuthorization, handle: handle)) {
                try await peer.readEncryptedDataKeyMaterial()
            }
            await server.peripheral.setAuthorizer { _, _ in true }
            #expect(try await peer.readEncryptedDataKeyMaterial() == key)
            await advertising.stop()
        }
    }

    @Test("A peer without the characteristic, and one that is not bonded, leave no key")
    func peerWithoutTheCharacteristicLeavesNoKey() throws {
        try World.run { world in
            let server = try await world.device("server").openAdapter()
            let client = try await world.device("client").openAdapter()
            let advertising = try await server.peripheral.startAdvertising(AdvertisementConfiguration())
            let peer = try await client.central.connect(to: server.information.identityAddress)
            await #expect(throws: BLEError.self) { try await peer.readEncryptedDataKeyMaterial() }
            let key = EncryptedDataKeyMaterial()
            _ = try await server.peripheral.publish([
                ServiceDefinition(uuid: "181A", characteristics: [.encryptedDataKeyMaterial(key, permissions: .read)])
            ])
            #expect(try await peer.readEncryptedDataKeyMaterial() == key)
            #expect(await client.encryptedDataKeys().isEmpty)
            await advertising.stop()
        }
    }
}
