import BLEHCI
import BluetoothTypes

/// One advertising event on the air.
struct Advertisement {
    let sender: VirtualController
    let advertisingSet: AdvertisingSet
    let address: OwnAddress
    /// The target address in the PDU; nil if the advertisement is undirected.
    let target: DeviceAddress?

    var properties: AdvertisingEventProperties { advertisingSet.parameters.properties }
    var isLegacy: Bool { advertisingSet.parameters.usesLegacyPDUs }
    var isConnectable: Bool { properties.contains(.connectable) }
    var isScannable: Bool { properties.contains(.scannable) }
    var isAnonymous: Bool { properties.contains(.omitAdvertiserAddress) }
    var primaryPHY: PHY { advertisingSet.parameters.primaryPHY }
    /// The PHY of the data, of requests and responses, and of a link made from the advertisement.
    var dataPHY: PHY { isLegacy ? .le1M : advertisingSet.parameters.secondaryPHY }
    /// The data sent, which is empty if the PDUs cannot contain data.
    var data: AdvertisingPayload { advertisingSet.parameters.supportsData ? advertisingSet.data : AdvertisingPayload() }
}
