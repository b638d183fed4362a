import BLE
import BluetoothTypes

extension AdvertisementConfiguration {
    /// A connectable advertisement every 50 ms, with the name in the scan response.
    static func connectable(named name: String) -> AdvertisementConfiguration {
        AdvertisementConfiguration(
            interval: .milliseconds(50),
            advertisingData: AdvertisingData([.flags([.generalDiscoverable, .brEdrNotSupported])]),
            scanResponseData: AdvertisingData([.completeLocalName(name)])
        )
    }
}
