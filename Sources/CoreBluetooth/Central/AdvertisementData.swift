// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The constants have the names that Apple gave them.

import BLEByteCoding
import BluetoothTypes
import Foundation

/// A `String`: the peripheral's name, complete or shortened.
public let CBAdvertisementDataLocalNameKey = "kCBAdvDataLocalName"
/// `Data`: the company identifier in two bytes, least significant first, then the data of the company.
public let CBAdvertisementDataManufacturerDataKey = "kCBAdvDataManufacturerData"
/// `[CBUUID: Data]`: service data by service.
public let CBAdvertisementDataServiceDataKey = "kCBAdvDataServiceData"
/// `[CBUUID]`: services of the peripheral.
public let CBAdvertisementDataServiceUUIDsKey = "kCBAdvDataServiceUUIDs"
/// `[CBUUID]`: services that did not fit the advertisement of an Apple device.
public let CBAdvertisementDataOverflowServiceUUIDsKey = "kCBAdvDataHashedServiceUUIDs"
/// An `NSNumber`: the transmitted power in dBm.
public let CBAdvertisementDataTxPowerLevelKey = "kCBAdvDataTxPowerLevel"
/// An `NSNumber`, a Boolean: whether the peripheral can be connected to now.
public let CBAdvertisementDataIsConnectable = "kCBAdvDataIsConnectable"
/// `[CBUUID]`: services that the peripheral solicits.
public let CBAdvertisementDataSolicitedServiceUUIDsKey = "kCBAdvDataSolicitedServiceUUIDs"

extension Discovery {
    /// The time of the packet, in seconds since 2001. Apple's framework has this key without a symbol for it.
    static let timestampKey = "kCBAdvDataTimestamp"

    /// The RSSI for apps if the signal strength is not known.
    static let unknownRSSI = 127

    /// The dictionary for the delegate: a key for each kind of AD structure in the data, whether the peripheral is
    /// connectable, and the time.
    var dictionary: [String: Any] {
        var dictionary: [String: Any] = [
            CBAdvertisementDataIsConnectable: NSNumber(value: isConnectable),
            Discovery.timestampKey: NSNumber(value: time),
        ]
        if let name = advertisingData.localName { dictionary[CBAdvertisementDataLocalNameKey] = name }
        if let data = advertisingData.manufacturerData.first {
            let company = data.company.rawValue
            dictionary[CBAdvertisementDataManufacturerDataKey] =
                Data([UInt8(truncatingIfNeeded: company), UInt8(truncatingIfNeeded: company >> 8)] + data.data)
        }
        let serviceData = advertisingData.serviceData
        if !serviceData.isEmpty {
            dictionary[CBAdvertisementDataServiceDataKey] =
                Dictionary(uniqueKeysWithValues: serviceData.map { (CBUUID($0), Data($1)) })
        }
        let services = advertisingData.serviceUUIDs
        if !services.isEmpty { dictionary[CBAdvertisementDataServiceUUIDsKey] = services.map(CBUUID.init) }
        let solicited = advertisingData.solicitedServiceUUIDs
        if !solicited.isEmpty { dictionary[CBAdvertisementDataSolicitedServiceUUIDsKey] = solicited.map(CBUUID.init) }
        if let power = advertisingData.txPower {
            dictionary[CBAdvertisementDataTxPowerLevelKey] = NSNumber(value: Int(power))
        }
        return dictionary
    }
}
