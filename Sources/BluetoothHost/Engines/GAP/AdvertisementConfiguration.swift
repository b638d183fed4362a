import BLEHCI
import BluetoothTypes

/// The parameters and data of an advertisement.
public struct AdvertisementConfiguration: Sendable, Hashable {
    /// Whether centrals may connect.
    public var isConnectable: Bool
    /// Whether scanners may request the scan response.
    public var isScannable: Bool
    /// The advertising interval: 20 ms to 10.24 s, in steps of 0.625 ms.
    public var interval: Duration
    /// The data that is sent to all scanners: up to 31 bytes in legacy PDUs.
    public var advertisingData: AdvertisingData
    /// The data that is sent in answer to scan requests: up to 31 bytes in legacy PDUs.
    public var scanResponseData: AdvertisingData
    /// A random static address for this advertisement; nil for the host's own.
    public var address: DeviceAddress?
    /// The only device that the advertisement is directed to, by its identity address if it is bonded; nil for all
    /// devices. Directed PDUs of Bluetooth 4 carry no data.
    public var peer: DeviceAddress?
    /// Whether the PDUs of extended advertising are used; nil if the length of the data decides.
    public var usesExtendedPDUs: Bool?

    /// Creates a configuration. The default is a connectable advertisement to all devices.
    public init(
        isConnectable: Bool = true,
        isScannable: Bool = true,
        interval: Duration = .milliseconds(100),
        advertisingData: AdvertisingData = AdvertisingData(),
        scanResponseData: AdvertisingData = AdvertisingData(),
        address: DeviceAddress? = nil,
        peer: DeviceAddress? = nil,
        usesExtendedPDUs: Bool? = nil
    ) {
        self.isConnectable = isConnectable
        self.isScannable = isScannable
        self.interval = interval
        self.advertisingData = advertisingData
        self.scanResponseData = scanResponseData
        self.address = address
        self.peer = peer
        self.usesExtendedPDUs = usesExtendedPDUs
    }
}

extension AdvertisementConfiguration {
    /// Checks what the caller has chosen.
    ///
    /// - Throws: ``HostError/invalidArgument(_:)`` if this controller cannot advertise it.
    func check(against information: ControllerInformation) throws(HostError) {
        guard interval >= .milliseconds(20), interval <= .milliseconds(10_240) else {
            throw .invalidArgument("an advertising interval is 20 ms to 10.24 s, not \(interval)")
        }
        if let address, address.kind != .randomStatic {
            throw .invalidArgument("\(address) is not a static random address: its two highest bits must be set")
        }
        guard isConnectable || peer == nil else {
            throw .invalidArgument("an advertisement that is directed to a device is connectable")
        }
        guard usesExtendedPDUs(maximumLegacyLength: 31) else { return }
        guard information.usesExtendedCommands else {
            let longest = max(advertisingData.length, scanResponseData.length)
            throw .invalidArgument("advertising data has \(longest) bytes, more than this controller accepts")
        }
        let length = extendedAdvertisingData.length
        guard length <= information.maximumAdvertisingDataLength else {
            throw .invalidArgument(
                "advertising data has \(length) bytes; this controller accepts at most "
                    + "\(information.maximumAdvertisingDataLength)"
            )
        }
    }

    /// Whether extended PDUs are requested, or are needed for the length of the data.
    func usesExtendedPDUs(maximumLegacyLength: Int) -> Bool {
        let maximumLength = peer == nil ? maximumLegacyLength : 0
        return usesExtendedPDUs ?? (max(advertisingData.length, scanResponseData.length) > maximumLength)
    }

    /// The data of extended PDUs. Connectable ones have no scan response, so all data is in the advertising data.
    var extendedAdvertisingData: AdvertisingData {
        isConnectable
            ? AdvertisingData(decoding: advertisingData.bytes + scanResponseData.bytes)
            : isScannable ? AdvertisingData() : advertisingData
    }

    func eventProperties(usesExtendedPDUs: Bool) -> AdvertisingEventProperties {
        if peer != nil {
            return usesExtendedPDUs ? [.connectable, .directed] : [.connectable, .directed, .useLegacyPDUs]
        }
        if usesExtendedPDUs {
            return isConnectable ? .connectable : isScannable ? .scannable : []
        }
        if isConnectable { return [.connectable, .scannable, .useLegacyPDUs] }
        return isScannable ? [.scannable, .useLegacyPDUs] : .useLegacyPDUs
    }
}
