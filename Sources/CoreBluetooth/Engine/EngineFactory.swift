/// Makes what the managers that apps create work with.
enum EngineFactory {
    /// The host for a central manager that was made with these options.
    static func makeCentralEngine(_ options: [String: Any]?) -> (any CentralEngine)? {
        HostCentral(
            HostRegistry.host(on: options?[CBCentralManagerOptionAdapterKey], for: .central),
            options: HostOptions(
                capturePath: options?[CBCentralManagerOptionCaptureKey] as? String,
                captureMasksKeys: options?.isSet(CBCentralManagerOptionCaptureMasksKeysKey) ?? false,
                usesNetworkPrivacy: options?.isSet(CBCentralManagerOptionNetworkPrivacyKey) ?? false
            ),
            restoreIdentifier: options?[CBCentralManagerOptionRestoreIdentifierKey] as? String
        )
    }

    /// The host for a peripheral manager that was made with these options.
    static func makePeripheralEngine(_ options: [String: Any]?) -> (any PeripheralEngine)? {
        HostPeripheral(
            HostRegistry.host(on: options?[CBPeripheralManagerOptionAdapterKey], for: .peripheral),
            options: HostOptions(
                capturePath: options?[CBPeripheralManagerOptionCaptureKey] as? String,
                captureMasksKeys: options?.isSet(CBPeripheralManagerOptionCaptureMasksKeysKey) ?? false,
                usesNetworkPrivacy: options?.isSet(CBPeripheralManagerOptionNetworkPrivacyKey) ?? false
            ),
            restoreIdentifier: options?[CBPeripheralManagerOptionRestoreIdentifierKey] as? String
        )
    }
}
