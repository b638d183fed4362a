import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// The received state of an advertiser: its last advertising data and, if one was received, its last scan response.
public struct Advertisement: Sendable {
    /// The identity address of a bonded peer that uses a private address; otherwise the address that was received.
    public internal(set) var address: DeviceAddress
    /// The private address of a bonded peer as it was received; nil for other advertisers, and if the controller itself
    /// has resolved the address.
    public internal(set) var privateAddress: DeviceAddress?
    /// The signal strength in dBm: -127 to 20; nil if the controller does not know it.
    public internal(set) var rssi: Int?
    /// Whether the advertiser accepts connections.
    public internal(set) var isConnectable: Bool
    /// Whether the advertiser answers scan requests.
    public internal(set) var isScannable: Bool
    /// Whether the advertiser uses the PDUs of Bluetooth 4.
    public internal(set) var isLegacy: Bool
    /// The PHY of the primary channels on which the last advertising PDU was received: LE 1M or LE Coded. A controller
    /// with Advertising Coding Selection distinguishes ``/BLEHCI/PHY/leCoded``, S=8, from ``/BLEHCI/PHY/leCodedS2``.
    public internal(set) var primaryPHY = PHY.le1M
    /// The PHY of the secondary channels, which carry the data of extended advertising; ``/BLEHCI/PHY/none`` if they
    /// are not used.
    public internal(set) var secondaryPHY = PHY.none
    /// Whether the controller truncated the data.
    public internal(set) var isTruncated = false
    /// The AD structures of the advertising PDU.
    public internal(set) var advertisingData: [UInt8]
    /// The AD structures of the scan response; empty if none was received.
    public internal(set) var scanResponseData: [UInt8]
    /// The identifier of the advertising set, 0 to 15; nil for legacy advertising.
    public internal(set) var advertisingSetIdentifier: UInt8?
    /// When the last packet was received, on the host's clock.
    public internal(set) var time: Instant
    /// The number of advertisements that were dropped directly before this one, because the reader was too slow.
    public package(set) var droppedBefore = 0

    /// The AD structures of both payloads, those of the scan response after those of the advertising data.
    ///
    /// Padding at the end of either payload, which many devices send, is omitted: it would hide the structures after
    /// it.
    public var data: AdvertisingData {
        var data = AdvertisingData(decoding: advertisingData).significantPart
        if !scanResponseData.isEmpty { data.append(AdvertisingData(decoding: scanResponseData).significantPart) }
        return data
    }

    /// Calls `body` with each structure of ``data``, without building the data.
    func forEachStructure(_ body: (borrowing ADStructure) -> Void) {
        AdvertisingData(decoding: advertisingData).forEachStructure(body)
        AdvertisingData(decoding: scanResponseData).forEachStructure(body)
    }

    /// The local name in ``data``; nil if there is none.
    public var localName: String? { data.localName }
    /// The service UUIDs in ``data``, from complete and incomplete lists.
    public var serviceUUIDs: [BluetoothUUID] { data.serviceUUIDs }
    /// The TX Power Level in ``data``: the transmit power that the advertiser reports, in dBm; nil if there is none.
    public var txPower: Int? { data.txPower.map(Int.init) }
}

/// The filter and the parameters of a scan.
///
/// While several scans run, the controller scans with their shortest interval, their longest window and all their PHYs,
/// and actively if one of them is active. The window is cut to the interval. The host's own search for a peer or a
/// periodic train counts as a scan. So a scan may receive more than it has requested, and reports what passes its
/// filter.
public struct ScanOptions: Sendable, Hashable {
    /// Only advertisers that list one of these services are reported; all advertisers if this is empty.
    public var serviceUUIDs: [BluetoothUUID]
    /// Only advertisers whose local name contains this text are reported; case is ignored.
    public var name: String?
    /// Whether scan responses are requested.
    public var isActive: Bool
    /// Whether each received packet is reported, or only new content.
    public var reportsDuplicates: Bool
    /// The interval between the starts of scan windows: 2.5 ms to 10.24 s, in steps of 0.625 ms. A value outside is
    /// taken as the nearest one.
    public var interval: Duration
    /// How long the radio listens in each interval: 2.5 ms to the interval, in steps of 0.625 ms. A value outside is
    /// taken as the nearest one.
    public var window: Duration
    /// The PHYs of the primary channels on which the radio listens: LE 1M, LE Coded, or both.
    ///
    /// PHYs that the controller cannot scan are not used; if none is left, LE 1M is used. A controller may support LE
    /// Coded and refuse to scan on it. A scan on both PHYs then uses LE 1M; a scan on LE Coded alone ends with the
    /// error.
    ///
    /// A connection to an advertiser that a scan has received on LE Coded is initiated on LE 1M and LE Coded, to any
    /// other on LE 1M only. So a device that advertises on LE Coded only must be found by a scan before it is connected
    /// to.
    public var phys: PHYSet

    /// Creates options. The defaults report each advertiser when it is new or has changed.
    public init(
        serviceUUIDs: [BluetoothUUID] = [],
        name: String? = nil,
        isActive: Bool = true,
        reportsDuplicates: Bool = false,
        interval: Duration = .milliseconds(60),
        window: Duration = .milliseconds(60),
        phys: PHYSet = .le1M
    ) {
        self.serviceUUIDs = serviceUUIDs
        self.name = name
        self.isActive = isActive
        self.reportsDuplicates = reportsDuplicates
        self.interval = interval
        self.window = window
        self.phys = phys
    }

    /// Whether the scan requests LE Coded and not LE 1M.
    var isOnCodedAlone: Bool { phys.contains(.leCoded) && !phys.contains(.le1M) }

    /// Whether an advertiser passes the filter.
    func matches(_ advertisement: Advertisement) -> Bool {
        guard serviceUUIDs.isEmpty || listsService(advertisement) else { return false }
        guard let name else { return true }
        return advertisement.localName?.lowercased().contains(name.lowercased()) == true
    }

    private func listsService(_ advertisement: Advertisement) -> Bool {
        var isListed = false
        advertisement.forEachStructure { structure in
            guard !isListed, structure.type.isServiceList else { return }
            var uuids = structure.uuids
            while !isListed, let uuid = uuids.next() { isListed = serviceUUIDs.contains(uuid) }
        }
        return isListed
    }
}
