/// Creates the engines of the managers that apps create.
enum EngineFactory {
    /// Returns the engine for a central manager with these options.
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

    /// Returns the engine for a peripheral manager with these options.
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
