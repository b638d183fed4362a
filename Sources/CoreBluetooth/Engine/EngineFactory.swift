/// Makes what the managers that apps create work with.
enum EngineFactory {
    /// The host for a central manager that was made with these options.
    static func makeCentralEngine(_ options: [String: Any]?) -> (any CentralEngine)? {
        HostCentral(
            HostRegistry.host(
                on: options?[CBCentralManagerOptionAdapterKey],
                for: .central,
                capture: HostCapture(
                    path: options?[CBCentralManagerOptionCaptureKey] as? String,
                    masksKeys: options?.isSet(CBCentralManagerOptionCaptureMasksKeysKey) ?? false
                )
            ),
            restoreIdentifier: options?[CBCentralManagerOptionRestoreIdentifierKey] as? String
        )
    }

    /// The host for a peripheral manager that was made with these options.
    static func makePeripheralEngine(_ options: [String: Any]?) -> (any PeripheralEngine)? {
        HostPeripheral(
            HostRegistry.host(
                on: options?[CBPeripheralManagerOptionAdapterKey],
                for: .peripheral,
                capture: HostCapture(
                    path: options?[CBPeripheralManagerOptionCaptureKey] as? String,
                    masksKeys: options?.isSet(CBPeripheralManagerOptionCaptureMasksKeysKey) ?? false
                )
            ),
            restoreIdentifier: options?[CBPeripheralManagerOptionRestoreIdentifierKey] as? String
        )
    }
}
