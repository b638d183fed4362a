/// Creates the engines of the managers that apps create. The options of both kinds of managers have the same keys.
enum EngineFactory {
    /// Returns the engine for a central manager with these options.
    static func makeCentralEngine(_ options: [String: Any]?) -> (any CentralEngine)? {
        HostCentral(
            HostRegistry.host(on: options?[CBCentralManagerOptionAdapterKey], for: .central),
            options: HostOptions(options),
            restoreIdentifier: options?[CBCentralManagerOptionRestoreIdentifierKey] as? String
        )
    }

    /// Returns the engine for a peripheral manager with these options.
    static func makePeripheralEngine(_ options: [String: Any]?) -> (any PeripheralEngine)? {
        HostPeripheral(
            HostRegistry.host(on: options?[CBPeripheralManagerOptionAdapterKey], for: .peripheral),
            options: HostOptions(options),
            restoreIdentifier: options?[CBPeripheralManagerOptionRestoreIdentifierKey] as? String
        )
    }
}

extension HostOptions {
    /// Reads the options of a manager that concern its host.
    fileprivate init(_ options: [String: Any]?) {
        self.init(
            capturePath: options?[CBCentralManagerOptionCaptureKey] as? String,
            captureMasksKeys: options?.isSet(CBCentralManagerOptionCaptureMasksKeysKey) ?? false,
            usesNetworkPrivacy: options?.isSet(CBCentralManagerOptionNetworkPrivacyKey) ?? false
        )
    }
}
