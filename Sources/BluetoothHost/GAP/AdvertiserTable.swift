import BluetoothTypes
import ByteCoding

/// A bounded table that forgets what has not been touched for longest, in two generations.
///
/// Every operation costs one or two lookups; the table never holds more than `limit` entries.
struct GenerationalTable<Key: Hashable, Value> {
    private var young: [Key: Value] = [:]
    private var old: [Key: Value] = [:]
    private let limit: Int

    init(limit: Int) {
        self.limit = limit
    }

    var count: Int { young.count + old.count }

    /// The value for `key`, which counts as touched; nil removes it.
    subscript(key: Key) -> Value? {
        mutating get {
            if let value = young[key] { return value }
            guard let value = old.removeValue(forKey: key) else { return nil }
            insert(value, for: key)
            return value
        }
        set {
            old[key] = nil
            if let newValue {
                insert(newValue, for: key)
            } else {
                young[key] = nil
            }
        }
    }

    mutating func removeAll() {
        young.removeAll()
        old.removeAll()
    }

    private mutating func insert(_ value: Value, for key: Key) {
        if young.count >= limit / 2, young[key] == nil {
            old = young
            young = [:]
        }
        young[key] = value
    }
}

/// One received advertisement in the form that legacy and extended reports share.
struct AdvertisingReceipt: ~Escapable {
    var address: DeviceAddress
    var privateAddress: DeviceAddress?
    var rssi: Int?
    var isConnectable: Bool
    var isScannable: Bool
    var isLegacy: Bool
    var isScanResponse: Bool
    var isTruncated: Bool
    var advertisingSetIdentifier: UInt8?
    var data: RawSpan

    @_lifetime(copy data)
    init(
        address: DeviceAddress,
        privateAddress: DeviceAddress?,
        rssi: Int8,
        isConnectable: Bool,
        isScannable: Bool,
        isLegacy: Bool,
        isScanResponse: Bool,
        isTruncated: Bool = false,
        advertisingSetIdentifier: UInt8? = nil,
        data: RawSpan
    ) {
        self.address = address
        self.privateAddress = privateAddress
        // 127 is the controller's way to say that it does not know.
        self.rssi = rssi == 127 ? nil : Int(rssi)
        self.isConnectable = isConnectable
        self.isScannable = isScannable
        self.isLegacy = isLegacy
        self.isScanResponse = isScanResponse
        self.isTruncated = isTruncated
        self.advertisingSetIdentifier = advertisingSetIdentifier
        self.data = data
    }
}

/// What is known of the advertisers around, and how often it has changed.
struct AdvertiserTable {
    private struct Advertiser {
        var advertisement: Advertisement
        /// The table's count of changes when this advertiser last changed.
        var revision: UInt64
    }

    /// An advertiser as it is after a report.
    struct Entry {
        let advertisement: Advertisement
        let revision: UInt64
    }

    private var advertisers: GenerationalTable<DeviceAddress, Advertiser>
    private var changes: UInt64 = 0

    /// - Parameter limit: how many advertisers are remembered at the most.
    init(limit: Int = 4096) {
        advertisers = GenerationalTable(limit: limit)
    }

    var count: Int { advertisers.count }

    mutating func removeAll() {
        advertisers.removeAll()
    }

    /// Merges one report into what is known of its advertiser.
    mutating func receive(_ receipt: borrowing AdvertisingReceipt, at now: Instant) -> Entry {
        guard var known = advertisers[receipt.address] else {
            return insert(receipt, at: now)
        }
        known.advertisement.privateAddress = receipt.privateAddress
        known.advertisement.rssi = receipt.rssi
        known.advertisement.time = now
        let isChanged: Bool
        if receipt.isScanResponse {
            isChanged = !known.advertisement.scanResponseData.rawSpan.elementsEqual(receipt.data)
            if isChanged { known.advertisement.scanResponseData = [UInt8](copying: receipt.data) }
        } else {
            isChanged =
                !known.advertisement.advertisingData.rawSpan.elementsEqual(receipt.data)
                || known.advertisement.isConnectable != receipt.isConnectable
            if isChanged {
                known.advertisement.advertisingData = [UInt8](copying: receipt.data)
                known.advertisement.isConnectable = receipt.isConnectable
                known.advertisement.isScannable = receipt.isScannable
                known.advertisement.isTruncated = receipt.isTruncated
            }
        }
        if isChanged {
            changes += 1
            known.revision = changes
        }
        advertisers[receipt.address] = known
        return Entry(advertisement: known.advertisement, revision: known.revision)
    }

    private mutating func insert(_ receipt: borrowing AdvertisingReceipt, at now: Instant) -> Entry {
        changes += 1
        let data = [UInt8](copying: receipt.data)
        let advertisement = Advertisement(
            address: receipt.address,
            privateAddress: receipt.privateAddress,
            rssi: receipt.rssi,
            isConnectable: receipt.isConnectable,
            isScannable: receipt.isScannable || receipt.isScanResponse,
            isLegacy: receipt.isLegacy,
            isTruncated: receipt.isTruncated,
            advertisingData: receipt.isScanResponse ? [] : data,
            scanResponseData: receipt.isScanResponse ? data : [],
            advertisingSetIdentifier: receipt.advertisingSetIdentifier,
            time: now
        )
        advertisers[receipt.address] = Advertiser(advertisement: advertisement, revision: changes)
        return Entry(advertisement: advertisement, revision: changes)
    }
}
