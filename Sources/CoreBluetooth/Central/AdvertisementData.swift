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

    // Numbers that most discoveries have. Each new one costs two allocations.
    private static let yes = NSNumber(value: true)
    private static let no = NSNumber(value: false)
    private static let rssiNumbers = (-128...127).map { NSNumber(value: $0) }

    /// Returns the number that the delegate receives for an RSSI in dBm; 127 for nil.
    static func number(ofRSSI rssi: Int?) -> NSNumber {
        let rssi = rssi ?? unknownRSSI
        return rssiNumbers.indices.contains(rssi + 128) ? rssiNumbers[rssi + 128] : NSNumber(value: rssi)
    }

    /// The company identifier and the data of the first structure with manufacturer data, as they were sent.
    private var manufacturerData: Data? {
        var found: Data?
        content.data.forEachStructure { structure in
            guard structure.type == .manufacturerSpecificData, structure.data.byteCount >= 2, found == nil else {
                return
            }
            found = unsafe structure.data.withUnsafeBytes { unsafe Data($0) }
        }
        return found
    }

    /// The dictionary for the delegate: a key for each kind of AD structure in the data, whether the peripheral is
    /// connectable, and the time.
    var dictionary: [String: Any] {
        // As many as there are keys, so that the dictionary never grows.
        var dictionary = [String: Any](minimumCapacity: 8)
        dictionary[CBAdvertisementDataIsConnectable] = isConnectable ? Discovery.yes : Discovery.no
        dictionary[Discovery.timestampKey] = NSNumber(value: time)
        if let name = content.localName { dictionary[CBAdvertisementDataLocalNameKey] = name }
        if let data = manufacturerData { dictionary[CBAdvertisementDataManufacturerDataKey] = data }
        let serviceData = content.data.serviceData
        if !serviceData.isEmpty {
            dictionary[CBAdvertisementDataServiceDataKey] =
                Dictionary(uniqueKeysWithValues: serviceData.map { (CBUUID.shared($0), Data($1)) })
        }
        if !content.services.isEmpty { dictionary[CBAdvertisementDataServiceUUIDsKey] = content.services }
        let solicited = content.data.solicitedServiceUUIDs
        if !solicited.isEmpty { dictionary[CBAdvertisementDataSolicitedServiceUUIDsKey] = solicited.map(CBUUID.shared) }
        if let power = content.data.txPower {
            dictionary[CBAdvertisementDataTxPowerLevelKey] = NSNumber(value: Int(power))
        }
        return dictionary
    }
}
