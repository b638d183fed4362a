/// Creates the backends of the managers that apps create. The options of both kinds of managers have the same keys.
enum BackendFactory {
    /// Returns the backend for a central manager with these options.
    static func makeCentralBackend(_ options: [String: Any]?) -> (any CentralBackend)? {
        HostCentral(
            HostRegistry.host(on: options?[CBCentralManagerOptionAdapterKey], for: .central),
            options: HostOptions(options),
            restoreIdentifier: options?[CBCentralManagerOptionRestoreIdentifierKey] as? String
        )
    }

    /// Returns the backend for a peripheral manager with these options.
    static func makePeripheralBackend(_ options: [String: Any]?) -> (any PeripheralBackend)? {
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
