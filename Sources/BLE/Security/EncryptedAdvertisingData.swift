import BLEByteCoding
import BLECryptography
import BLEGATT
import BluetoothHost
import BluetoothTypes

// Encrypted Advertising Data (Core Specification Supplement, Part A, 1.23): AES-CCM with a tag of 4 bytes. A device
// gives its key to bonded peers as the value of the Encrypted Data Key Material characteristic.

extension EncryptedDataKeyMaterial {
    /// Makes new key material from the system's random numbers.
    public init() {
        var random = SystemRandomNumberGenerator()
        self.init(using: &random)
    }
}

extension AdvertisingData {
    /// The bytes that encryption adds to AD structures: length, type, randomizer and tag.
    public static let encryptionOverhead = 2 + randomizerLength + tagLength

    private static let randomizerLength = 5
    private static let tagLength = 4
    private static let additionalData: [UInt8] = [0xEA]

    /// Returns all structures as one encrypted AD structure.
    ///
    /// Encrypt again with each change of the data, and at each change of the advertiser's private address. Otherwise an
    /// observer recognizes the device by the encrypted bytes.
    ///
    /// - Parameter key: the key material that the device's server gives to bonded peers.
    /// - Throws: ``BLEError/invalidArgument(_:)`` if the data has more than 245 bytes.
    public func encrypted(with key: EncryptedDataKeyMaterial) throws(BLEError) -> Structure {
        var randomizer = (0..<Self.randomizerLength).map { _ in UInt8.random(in: 0...255) }
        // The last bit takes the place of the direction bit in a nonce of the Link Layer.
        randomizer[Self.randomizerLength - 1] |= 0x80
        return try encrypted(with: key, randomizer: randomizer)
    }

    package func encrypted(
        with key: EncryptedDataKeyMaterial,
        randomizer: [UInt8]
    ) throws(BLEError) -> Structure {
        let limit = 254 - Self.randomizerLength - Self.tagLength
        guard length <= limit else {
            throw .invalidArgument("\(length) bytes of advertising data cannot be encrypted: at most \(limit)")
        }
        let nonce = randomizer + key.initializationVector
        guard let cipher = AESCCM(key: key.sessionKey, tagLength: Self.tagLength),
            let sealed = cipher.seal(bytes, nonce: nonce, additionalData: Self.additionalData)
        else { throw .invalidArgument("the key material cannot be used") }
        return .raw(.encryptedData, randomizer + sealed)
    }

    /// Returns the data with each encrypted structure replaced by the structures in it.
    ///
    /// A structure that the key does not decrypt stays as it is. Encrypted structures within an encrypted one are not
    /// decrypted.
    public func decrypted(with key: EncryptedDataKeyMaterial) -> AdvertisingData {
        guard let cipher = AESCCM(key: key.sessionKey, tagLength: Self.tagLength) else { return self }
        var result = AdvertisingData()
        forEachStructure { structure in
            let bytes = [UInt8](copying: structure.data)
            if structure.type == .encryptedData, let plaintext = Self.open(bytes, cipher, key) {
                result.append(AdvertisingData(decoding: plaintext).significantPart)
            } else {
                result.append(.raw(structure.type, bytes))
            }
        }
        return result
    }

    private static func open(_ bytes: [UInt8], _ cipher: AESCCM, _ key: EncryptedDataKeyMaterial) -> [UInt8]? {
        guard bytes.count >= randomizerLength + tagLength else { return nil }
        return cipher.open(
            Array(bytes.dropFirst(randomizerLength).dropLast(tagLength)),
            tag: Array(bytes.suffix(tagLength)),
            nonce: bytes.prefix(randomizerLength) + key.initializationVector,
            additionalData: additionalData
        )
    }
}

extension CharacteristicDefinition {
    /// Defines the characteristic from which peers read the key of this device's encrypted advertising data (Vol 3,
    /// Part C, 12.6).
    ///
    /// By default, a peer reads the key and receives its indications only over a link with an authenticated key, and
    /// only if the app has authorized it: see ``Peripheral/setAuthorizer(_:)`` and ``Peripheral/setAuthorized(_:_:)``.
    /// Without either, reading is refused with Insufficient Authorization.
    ///
    /// - Parameters:
    ///   - key: the key material.
    ///   - permissions: what reading requires. The specification requires authentication and authorization.
    public static func encryptedDataKeyMaterial(
        _ key: EncryptedDataKeyMaterial,
        permissions: AttributePermissions = [.read, .readEncrypted, .readAuthenticated, .readAuthorized]
    ) -> CharacteristicDefinition {
        CharacteristicDefinition(
            uuid: .encryptedDataKeyMaterial,
            properties: [.read, .indicate],
            permissions: permissions,
            value: .stored(key.encoded, maximumLength: 24)
        )
    }
}

extension RemotePeripheral {
    /// Reads the key of the peer's encrypted advertising data. If the peer is bonded, the key is saved with the bond,
    /// for ``Adapter/encryptedDataKeys()``.
    ///
    /// - Throws: ``BLEError/attribute(_:handle:)`` if the peer has no such characteristic, or the link is not secure
    ///   enough; ``BLEError/malformedResponse(_:)`` if the value does not have 24 bytes.
    public func readEncryptedDataKeyMaterial() async throws(BLEError) -> EncryptedDataKeyMaterial {
        // The values in this response may be cut.
        guard let handle = try await read(uuid: .encryptedDataKeyMaterial).first?.handle else {
            throw .malformedResponse("the peer listed no key for advertising data")
        }
        let value = try await read(handle)
        guard let key = EncryptedDataKeyMaterial(decoding: value) else {
            throw .malformedResponse("the peer's key for advertising data has \(value.count) bytes, not 24")
        }
        let link = try usableLink
        await host.setAdvertisingKey(key, of: link)
        return key
    }
}

extension Adapter {
    /// The saved keys of encrypted advertising data, by the identity addresses of the bonded peers.
    ///
    /// ```swift
    /// let keys = await adapter.encryptedDataKeys()
    /// for try await advertisement in adapter.central.scan() {
    ///     let key = keys[advertisement.address]
    ///     let data = key.map { advertisement.data.decrypted(with: $0) } ?? advertisement.data
    /// }
    /// ```
    public func encryptedDataKeys() async -> [DeviceAddress: EncryptedDataKeyMaterial] {
        await host.advertisingKeys()
    }
}
