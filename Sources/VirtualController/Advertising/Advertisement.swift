import BluetoothTypes
import HCI

/// One advertising event on the air.
struct Advertisement {
    let sender: VirtualController
    let advertisingSet: AdvertisingSet
    let address: OwnAddress
    /// To whom it is directed, as the PDU says it.
    let target: DeviceAddress?

    var properties: AdvertisingEventProperties { advertisingSet.parameters.properties }
    var isLegacy: Bool { advertisingSet.parameters.usesLegacyPDUs }
    var isConnectable: Bool { properties.contains(.connectable) }
    var isScannable: Bool { properties.contains(.scannable) }
    var isAnonymous: Bool { properties.contains(.omitAdvertiserAddress) }
    var primaryPHY: PHY { advertisingSet.parameters.primaryPHY }
    /// Where its data, requests and responses are, and a link begins.
    var dataPHY: PHY { isLegacy ? .le1M : advertisingSet.parameters.secondaryPHY }
    /// What it brings: nothing where its PDUs have no place for data.
    var data: AdvertisingPayload { advertisingSet.parameters.supportsData ? advertisingSet.data : AdvertisingPayload() }
}
