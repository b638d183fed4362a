import BLEHCI
import BluetoothTypes

// The commands that set the parameters of scanning.
extension ScanPlan.Configuration {
    private var scanType: ScanType { isActive ? .active : .passive }

    /// The command for scanning with legacy commands, which is always on LE 1M.
    var legacyCommand: LESetScanParameters {
        LESetScanParameters(
            leScanType: scanType,
            leScanInterval: interval,
            leScanWindow: window,
            ownAddressType: ownAddressType
        )
    }

    /// The command for extended scanning, with the same interval and window on each PHY.
    var extendedCommand: LESetExtendedScanParameters {
        let parameters = LESetExtendedScanParameters.PHYParameters(
            scanType: scanType,
            scanInterval: interval,
            scanWindow: window
        )
        return LESetExtendedScanParameters(
            ownAddressType: ownAddressType,
            le1M: phys.contains(.le1M) ? parameters : nil,
            leCoded: phys.contains(.leCoded) ? parameters : nil
        )
    }
}
