import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// A bounded table that discards the least recently used entries, in two generations.
///
/// Every operation costs one or two lookups. The table never holds more than `limit` entries.
struct GenerationalTable<Key: Hashable, Value> {
    private var young: [Key: Value] = [:]
    private var old: [Key: Value] = [:]
    private let limit: Int

    init(limit: Int) {
        self.limit = limit
    }

    var count: Int { young.count + old.count }

    /// The value for `key`. Reading it counts as a use; setting nil removes it.
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

    /// Returns the place of the value for `key`, which is valid until the table is changed; nil if there is none. This
    /// counts as a use.
    mutating func index(of key: Key) -> Index? {
        if let value = old.isEmpty ? nil : old.removeValue(forKey: key) { insert(value, for: key) }
        guard let index = young.index(forKey: key) else { return nil }
        return Index(base: index)
    }

    /// The place of a value in the table.
    struct Index {
        fileprivate let base: Dictionary<Key, Value>.Index
    }

    subscript(index: Index) -> Value {
        get { young.values[index.base] }
        _modify { yield &young.values[index.base] }
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
    var primaryPHY: PHY
    var secondaryPHY: PHY
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
        primaryPHY: PHY = .le1M,
        secondaryPHY: PHY = .none,
        isScanResponse: Bool,
        isTruncated: Bool = false,
        advertisingSetIdentifier: UInt8? = nil,
        data: RawSpan
    ) {
        self.address = address
        self.privateAddress = privateAddress
        // The value 127 means that the controller does not know the strength.
        self.rssi = rssi == 127 ? nil : Int(rssi)
        self.isConnectable = isConnectable
        self.isScannable = isScannable
        self.isLegacy = isLegacy
        self.primaryPHY = primaryPHY
        self.secondaryPHY = secondaryPHY
        self.isScanResponse = isScanResponse
        self.isTruncated = isTruncated
        self.advertisingSetIdentifier = advertisingSetIdentifier
        self.data = data
    }
}

/// The received state of the advertisers nearby, and a count of its changes.
struct AdvertiserTable {
    /// The state of an advertiser after its last report.
    struct Advertiser {
        fileprivate(set) var advertisement: Advertisement
        /// The table's count of changes when this advertiser last changed.
        fileprivate(set) var revision: UInt64
        /// Whether ``AdvertiserTable/otherPHYAdvertisers`` has the advertiser. So most reports need no lookup there.
        fileprivate var usesOtherPHY = false

        fileprivate init(advertisement: Advertisement, revision: UInt64) {
            self.advertisement = advertisement
            self.revision = revision
        }
    }

    private var advertisers: GenerationalTable<DeviceAddress, Advertiser>
    /// The advertisers that were received on the LE Coded PHY. They stay when their state is forgotten, because it
    /// tells how to connect to them.
    private var codedPHYAdvertisers: GenerationalTable<DeviceAddress, Void>
    /// The advertisers whose last connectable report was on another secondary PHY than LE 1M. They stay when their
    /// state is forgotten, because a link to them has this PHY.
    private var otherPHYAdvertisers: GenerationalTable<DeviceAddress, Void>
    private var changes: UInt64 = 0

    /// - Parameter limit: maximum number of advertisers that are remembered.
    init(limit: Int = 4096) {
        advertisers = GenerationalTable(limit: limit)
        codedPHYAdvertisers = GenerationalTable(limit: limit)
        otherPHYAdvertisers = GenerationalTable(limit: limit)
    }

    var count: Int { advertisers.count }

    mutating func removeAll() {
        advertisers.removeAll()
    }

    /// Forgets advertisers, so that their next reports count as new.
    mutating func forget(_ addresses: Set<DeviceAddress>) {
        for address in addresses { advertisers[address] = nil }
    }

    /// The place of an advertiser in the table. Valid until the table is changed.
    typealias Index = GenerationalTable<DeviceAddress, Advertiser>.Index

    /// Merges one report into the entry of its advertiser.
    ///
    /// - Returns: the place of the advertiser; the table always has room for one.
    mutating func receive(_ receipt: borrowing AdvertisingReceipt, at now: Instant) -> Index? {
        if receipt.primaryPHY == .leCoded || receipt.primaryPHY == .leCodedS2 {
            codedPHYAdvertisers[receipt.address] = ()
        }
        let usesOtherPHY = receipt.secondaryPHY != PHY.none && receipt.secondaryPHY != .le1M
        if let index = advertisers.index(of: receipt.address) {
            // Usually no advertiser has another PHY. Then this reads nothing of the advertiser.
            if receipt.isConnectable, usesOtherPHY || otherPHYAdvertisers.count > 0,
                advertisers[index].usesOtherPHY != usesOtherPHY
            {
                advertisers[index].usesOtherPHY = usesOtherPHY
                otherPHYAdvertisers[receipt.address] = usesOtherPHY ? () : nil
            }
            if advertisers[index].advertisement.merge(receipt, at: now) {
                changes += 1
                advertisers[index].revision = changes
            }
            return index
        }
        changes += 1
        var advertiser = Advertiser(advertisement: Advertisement(receipt, at: now), revision: changes)
        if receipt.isConnectable {
            advertiser.usesOtherPHY = usesOtherPHY
            if usesOtherPHY || otherPHYAdvertisers.count > 0 {
                otherPHYAdvertisers[receipt.address] = usesOtherPHY ? () : nil
            }
        }
        advertisers[receipt.address] = advertiser
        return advertisers.index(of: receipt.address)
    }

    /// Returns whether one of these addresses was received on the LE Coded PHY.
    mutating func wasReceivedOnCodedPHY(_ addresses: Set<DeviceAddress>) -> Bool {
        addresses.contains { codedPHYAdvertisers[$0] != nil }
    }

    /// Returns whether the last connectable report of one of these addresses was on another secondary PHY than LE 1M.
    mutating func usesOtherSecondaryPHY(_ addresses: Set<DeviceAddress>) -> Bool {
        addresses.contains { otherPHYAdvertisers[$0] != nil }
    }

    subscript(index: Index) -> Advertiser { advertisers[index] }

    /// Gives `body` access to an advertiser, without a copy.
    mutating func withAdvertiser(at index: Index, _ body: (inout Advertiser) -> Void) {
        body(&advertisers[index])
    }
}

extension Advertisement {
    /// The state of an advertiser after its first report.
    fileprivate init(_ receipt: borrowing AdvertisingReceipt, at now: Instant) {
        let data = [UInt8](copying: receipt.data)
        self.init(
            address: receipt.address,
            privateAddress: receipt.privateAddress,
            rssi: receipt.rssi,
            isConnectable: receipt.isConnectable,
            isScannable: receipt.isScannable || receipt.isScanResponse,
            isLegacy: receipt.isLegacy,
            primaryPHY: receipt.primaryPHY,
            secondaryPHY: receipt.secondaryPHY,
            isTruncated: receipt.isTruncated,
            advertisingData: receipt.isScanResponse ? [] : data,
            scanResponseData: receipt.isScanResponse ? data : [],
            advertisingSetIdentifier: receipt.advertisingSetIdentifier,
            time: now
        )
    }

    /// Merges a report.
    ///
    /// - Returns: whether the report contained anything new.
    fileprivate mutating func merge(_ receipt: borrowing AdvertisingReceipt, at now: Instant) -> Bool {
        privateAddress = receipt.privateAddress
        rssi = receipt.rssi
        time = now
        if receipt.isScanResponse {
            if scanResponseData.rawSpan.elementsEqual(receipt.data) { return false }
            scanResponseData = [UInt8](copying: receipt.data)
            return true
        }
        // A device that advertises the same data on two PHYs or in two sets is not new each time.
        let isNew =
            isConnectable != receipt.isConnectable || !advertisingData.rawSpan.elementsEqual(receipt.data)
        if isNew { advertisingData = [UInt8](copying: receipt.data) }
        isConnectable = receipt.isConnectable
        isScannable = receipt.isScannable
        isLegacy = receipt.isLegacy
        primaryPHY = receipt.primaryPHY
        secondaryPHY = receipt.secondaryPHY
        advertisingSetIdentifier = receipt.advertisingSetIdentifier
        isTruncated = receipt.isTruncated
        return isNew
    }
}
