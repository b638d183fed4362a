import BluetoothTypes
import HCI

/// What the host has set up for advertising.
struct AdvertisingState {
    var parameters = LESetAdvertisingParameters()
    var data: [UInt8] = []
    var scanResponse: [UInt8] = []
    var isEnabled = false

    var isConnectable: Bool {
        switch parameters.advertisingType {
        case .connectableScannableUndirected, .connectableHighDutyCycleDirected, .connectableLowDutyCycleDirected: true
        default: false
        }
    }

    var isScannable: Bool {
        parameters.advertisingType == .connectableScannableUndirected
            || parameters.advertisingType == .scannableUndirected
    }
}

/// What the host has set up for scanning.
struct ScanningState {
    var parameters = LESetScanParameters()
    var isEnabled = false
    var filtersDuplicates = false
    /// What has been reported: advertisements and scan responses apart.
    var reported: Set<Reported> = []

    struct Reported: Hashable {
        let address: DeviceAddress
        let isScanResponse: Bool
    }
}

/// A connection that is being initiated.
struct InitiatingState {
    let command: LECreateConnection
}
