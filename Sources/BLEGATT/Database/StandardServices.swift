import BluetoothTypes

extension ServiceDefinition {
    /// The GAP service (Vol 3, Part C, 12).
    ///
    /// - Parameters:
    ///   - deviceName: the value of Device Name.
    ///   - appearance: the value of Appearance.
    ///   - preferredParameters: Peripheral Preferred Connection Parameters: interval minimum and maximum in 1.25 ms,
    ///     latency, supervision timeout in 10 ms.
    ///   - supportsAddressResolution: whether the service has Central Address Resolution, with the value 1.
    public static func genericAccess(
        deviceName: String,
        appearance: Appearance,
        preferredParameters: (minimum: UInt16, maximum: UInt16, latency: UInt16, timeout: UInt16),
        supportsAddressResolution: Bool
    ) -> ServiceDefinition {
        func readOnly(_ uuid: BluetoothUUID, _ value: [UInt8]) -> CharacteristicDefinition {
            CharacteristicDefinition(uuid: uuid, properties: .read, permissions: .read, value: .stored(value))
        }
        func octets(_ values: UInt16...) -> [UInt8] {
            values.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
        }
        return ServiceDefinition(
            uuid: .genericAccessService,
            characteristics: [
                readOnly(.deviceName, Array(deviceName.utf8.prefix(248))),
                readOnly(.appearance, octets(appearance.rawValue)),
                readOnly(
                    .peripheralPreferredConnectionParameters,
                    octets(
                        preferredParameters.minimum,
                        preferredParameters.maximum,
                        preferredParameters.latency,
                        preferredParameters.timeout
                    )
                ),
                readOnly(.centralAddressResolution, [supportsAddressResolution ? 1 : 0]),
            ]
        )
    }

    /// The GATT service of a server without enhanced bearers (Vol 3, Part G, 7).
    public static var genericAttribute: ServiceDefinition { genericAttribute(features: []) }

    /// The GATT service (Vol 3, Part G, 7).
    ///
    /// - Parameter features: the value of Server Supported Features.
    public static func genericAttribute(features: ServerSupportedFeatures) -> ServiceDefinition {
        ServiceDefinition(
            uuid: .genericAttributeService,
            characteristics: [
                CharacteristicDefinition(
                    uuid: .serviceChanged,
                    properties: .indicate,
                    permissions: [],
                    value: .stored([0x01, 0x00, 0xFF, 0xFF])
                ),
                CharacteristicDefinition(
                    uuid: .clientSupportedFeatures,
                    properties: [.read, .write],
                    permissions: [.read, .write],
                    value: .handled
                ),
                CharacteristicDefinition(
                    uuid: .databaseHash,
                    properties: .read,
                    permissions: .read,
                    value: .stored(Array(repeating: 0, count: 16))
                ),
                CharacteristicDefinition(
                    uuid: .serverSupportedFeatures,
                    properties: .read,
                    permissions: .read,
                    value: .stored([features.rawValue])
                ),
            ]
        )
    }
}
