// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The constants have the names that Apple gave them.

import BluetoothTypes
import ByteCoding
import Foundation

/// A `String`: the peripheral's name, whole or shortened.
public let CBAdvertisementDataLocalNameKey = "kCBAdvDataLocalName"
/// `Data`: the company identifier in two octets, the least significant first, and what the company defines.
public let CBAdvertisementDataManufacturerDataKey = "kCBAdvDataManufacturerData"
/// `[CBUUID: Data]`: data by service.
public let CBAdvertisementDataServiceDataKey = "kCBAdvDataServiceData"
/// `[CBUUID]`: services of the peripheral.
public let CBAdvertisementDataServiceUUIDsKey = "kCBAdvDataServiceUUIDs"
/// `[CBUUID]`: services that had no room in the advertisement of an Apple device.
public let CBAdvertisementDataOverflowServiceUUIDsKey = "kCBAdvDataHashedServiceUUIDs"
/// An `NSNumber`: the transmitted power in dBm.
public let CBAdvertisementDataTxPowerLevelKey = "kCBAdvDataTxPowerLevel"
/// An `NSNumber`, a Boolean: whether the peripheral can be connected to now.
public let CBAdvertisementDataIsConnectable = "kCBAdvDataIsConnectable"
/// `[CBUUID]`: services that the peripheral looks for.
public let CBAdvertisementDataSolicitedServiceUUIDsKey = "kCBAdvDataSolicitedServiceUUIDs"

extension Discovery {
    /// When the packet came, in seconds since 2001; Apple's framework has this key without a name for it.
    static let timestampKey = "kCBAdvDataTimestamp"

    /// What apps are given where the strength of a signal is not known.
    static let unknownRSSI = 127

    /// What delegates are given: a key for each kind of AD structure that is there, and whether one can connect.
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
