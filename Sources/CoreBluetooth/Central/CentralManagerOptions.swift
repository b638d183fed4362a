import BluetoothTypes
import Foundation

extension [String: Any] {
    /// Returns a Boolean option, given as an `NSNumber` or a `Bool`; false if it is not set.
    func isSet(_ key: String) -> Bool {
        (self[key] as? NSNumber)?.boolValue ?? (self[key] as? Bool) ?? false
    }
}

extension ScanRequest {
    init(services: [CBUUID]?, options: [String: Any]?) {
        self.services = (services ?? []).values
        guard let options else { return }
        allowsDuplicates = options.isSet(CBCentralManagerScanOptionAllowDuplicatesKey)
        solicitedServices =
            (options[CBCentralManagerScanOptionSolicitedServiceUUIDsKey] as? [CBUUID] ?? []).values
    }

    /// The options for this scan, without its services.
    var options: [String: Any] {
        var options: [String: Any] = [
            CBCentralManagerScanOptionAllowDuplicatesKey: NSNumber(value: allowsDuplicates)
        ]
        if !solicitedServices.isEmpty {
            options[CBCentralManagerScanOptionSolicitedServiceUUIDsKey] = solicitedServices.map(CBUUID.init)
        }
        return options
    }
}

extension ConnectionRequest {
    init(options: [String: Any]?) {
        guard let options else { return }
        if options[CBConnectPeripheralOptionEnableAutoReconnect] != nil {
            reconnects = options.isSet(CBConnectPeripheralOptionEnableAutoReconnect)
        }
        if let seconds = (options[CBConnectPeripheralOptionStartDelayKey] as? NSNumber)?.doubleValue, seconds > 0 {
            delay = .seconds(min(seconds, 86_400))
        }
    }
}

extension ConnectionEventFilter {
    init(options: [CBConnectionEventMatchingOption: Any]) {
        services = (options[.serviceUUIDs] as? [CBUUID] ?? []).values
        peripherals = options[.peripheralUUIDs] as? [UUID] ?? []
    }
}
