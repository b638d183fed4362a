import BLEHCI
import BluetoothTypes

/// The parameters and data of an advertisement.
///
/// # Length of the data
/// - Legacy PDUs have room for 31 bytes of advertising data, and for 31 bytes of scan response data.
/// - Connectable extended PDUs have room for 245 bytes of both together, or for 239 bytes if the advertisement is
///   directed: they have no chain (Vol 4, Part E, 7.8.56).
/// - Other extended PDUs have room for as much as the controller accepts, up to 1,650 bytes.
public struct AdvertisementConfiguration: Sendable, Hashable {
    /// Whether centrals may connect.
    public var isConnectable: Bool
    /// Whether scanners may request the scan response.
    public var isScannable: Bool
    /// The advertising interval: 20 ms to 10.24 s, in steps of 0.625 ms.
    public var interval: Duration
    /// The data that is sent to all scanners. Legacy PDUs have up to 31 bytes. Connectable extended PDUs have up to 245
    /// bytes, with the scan response data.
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
    /// The PHYs of extended PDUs, and the coding of the LE Coded PHY.
    public var phys: AdvertisingPHYs
    /// A periodic advertising train that the advertisement announces; nil for none.
    ///
    /// Such an advertisement uses extended PDUs, and is neither connectable nor scannable (Vol 4, Part E, 7.8.61).
    public var periodic: PeriodicAdvertisingConfiguration?

    /// Creates a configuration. The default is a connectable advertisement to all devices.
    public init(
        isConnectable: Bool = true,
        isScannable: Bool = true,
        interval: Duration = .milliseconds(100),
        advertisingData: AdvertisingData = AdvertisingData(),
        scanResponseData: AdvertisingData = AdvertisingData(),
        address: DeviceAddress? = nil,
        peer: DeviceAddress? = nil,
        usesExtendedPDUs: Bool? = nil,
        phys: AdvertisingPHYs = AdvertisingPHYs(),
        periodic: PeriodicAdvertisingConfiguration? = nil
    ) {
        self.isConnectable = isConnectable
        self.isScannable = isScannable
        self.interval = interval
        self.advertisingData = advertisingData
        self.scanResponseData = scanResponseData
        self.address = address
        self.peer = peer
        self.usesExtendedPDUs = usesExtendedPDUs
        self.phys = phys
        self.periodic = periodic
    }
}

/// The parameters and data of a periodic advertising train (Vol 3, Part C, 9.5).
public struct PeriodicAdvertisingConfiguration: Sendable, Hashable {
    /// The time between two events: 7.5 ms to 81.91875 s, in steps of 1.25 ms.
    public var interval: Duration
    /// The data of each event: up to 1,650 bytes, as far as the controller accepts it. Empty for a train with
    /// subevents.
    public var data: AdvertisingData
    /// Whether each event has the transmit power.
    public var includesTXPower: Bool
    /// The subevents, each with its own data, and with slots for responses; nil for a train without subevents.
    public var subevents: PeriodicSubeventConfiguration?

    /// Creates a configuration.
    public init(
        interval: Duration = .milliseconds(100),
        data: AdvertisingData = AdvertisingData(),
        includesTXPower: Bool = false,
        subevents: PeriodicSubeventConfiguration? = nil
    ) {
        self.interval = interval
        self.data = data
        self.includesTXPower = includesTXPower
        self.subevents = subevents
    }

    /// Checks what the caller has chosen.
    ///
    /// - Throws: ``HostError/invalidArgument(_:)`` or ``HostError/notSupported(_:)`` if this controller cannot send it.
    func check(
        in advertisement: AdvertisementConfiguration,
        against information: ControllerInformation
    ) throws(HostError) {
        guard information.canAdvertisePeriodically else {
            throw .notSupported("this controller does not send periodic advertising")
        }
        guard !advertisement.isConnectable, !advertisement.isScannable, advertisement.usesExtendedPDUs != false else {
            throw .invalidArgument(
                "an advertisement of a periodic train is not connectable, not scannable, and uses extended PDUs"
            )
        }
        guard interval >= .microseconds(7500), interval <= .microseconds(81_918_750) else {
            throw .invalidArgument("a periodic advertising interval is 7.5 ms to 81.91875 s, not \(interval)")
        }
        if let subevents {
            guard information.canAdvertiseWithResponses else {
                throw .notSupported("this controller does not send periodic advertising with responses")
            }
            guard data.length == 0 else {
                throw .invalidArgument("a train with subevents has the data of its subevents only")
            }
            try subevents.check(eventInterval: interval)
        }
        guard data.length <= information.maximumAdvertisingDataLength else {
            throw .invalidArgument(
                "periodic advertising data has \(data.length) bytes; this controller accepts at most "
                    + "\(information.maximumAdvertisingDataLength)"
            )
        }
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
        try phys.check(in: self, against: information)
        try periodic?.check(in: self, against: information)
        let longest = max(advertisingData.length, scanResponseData.length)
        guard usesExtendedPDUs(maximumLegacyLength: 31) else {
            guard peer != nil || longest <= 31 else {
                throw .invalidArgument("advertising data has \(longest) bytes; legacy PDUs have room for 31")
            }
            return
        }
        guard information.usesExtendedCommands else {
            throw .invalidArgument("advertising data has \(longest) bytes, more than this controller accepts")
        }
        guard !hasExtendedScanResponse || advertisingData.length == 0 else {
            throw .invalidArgument(
                "a scannable advertisement with extended PDUs has its data in the scan response only; move the data there, or "
                    + "set isScannable to false"
            )
        }
        let length = max(extendedAdvertisingData.length, hasExtendedScanResponse ? scanResponseData.length : 0)
        guard length <= information.maximumAdvertisingDataLength else {
            throw .invalidArgument(
                "advertising data has \(length) bytes; this controller accepts at most "
                    + "\(information.maximumAdvertisingDataLength)"
            )
        }
        guard !isConnectable || length <= connectableDataLimit else {
            throw .invalidArgument(
                "advertising data has \(length) bytes; connectable extended PDUs have room for "
                    + "\(connectableDataLimit); shorten the data, or advertise it in a set that is not connectable"
            )
        }
    }

    /// Maximum number of data bytes in connectable extended PDUs.
    ///
    /// All data must fit the AUX_ADV_IND PDU, whose payload has 255 bytes. Its extended header has the address of the
    /// advertiser, the ADI field, and the address of the target of a directed advertisement (Vol 6, Part B, 2.3.1.6).
    private var connectableDataLimit: Int { peer == nil ? 245 : 239 }

    /// Whether extended PDUs are requested, or are needed for the length of the data.
    func usesExtendedPDUs(maximumLegacyLength: Int) -> Bool {
        let maximumLength = peer == nil ? maximumLegacyLength : 0
        if periodic != nil || phys != AdvertisingPHYs() { return true }
        return usesExtendedPDUs ?? (max(advertisingData.length, scanResponseData.length) > maximumLength)
    }

    /// Whether extended PDUs have a scan response. Without data for it, they are not scannable (Vol 4, Part E, 7.8.56).
    var hasExtendedScanResponse: Bool { isScannable && !isConnectable && scanResponseData.length > 0 }

    /// The data of extended PDUs. Connectable ones have no scan response, so all data is in the advertising data.
    var extendedAdvertisingData: AdvertisingData {
        isConnectable
            ? AdvertisingData(decoding: advertisingData.bytes + scanResponseData.bytes)
            : hasExtendedScanResponse ? AdvertisingData() : advertisingData
    }

    func eventProperties(usesExtendedPDUs: Bool) -> AdvertisingEventProperties {
        if peer != nil {
            return usesExtendedPDUs ? [.connectable, .directed] : [.connectable, .directed, .useLegacyPDUs]
        }
        if usesExtendedPDUs {
            return isConnectable ? .connectable : hasExtendedScanResponse ? .scannable : []
        }
        if isConnectable { return [.connectable, .scannable, .useLegacyPDUs] }
        return isScannable ? [.scannable, .useLegacyPDUs] : .useLegacyPDUs
    }
}
