import BluetoothHost

extension CBPeripheralManagerConnectionLatency {
    /// The connection parameters that are requested: to respond within a frame of a screen, soon, or with little power.
    var parameters: ConnectionParameters {
        switch self {
        case .low: ConnectionParameters(interval: .milliseconds(15)...(.milliseconds(30)))
        case .medium: ConnectionParameters(interval: .milliseconds(60)...(.milliseconds(90)))
        case .high:
            ConnectionParameters(
                interval: .milliseconds(180)...(.milliseconds(240)),
                latencyInEvents: 2,
                supervisionTimeout: .seconds(6)
            )
        }
    }
}
