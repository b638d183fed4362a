import BluetoothTypes
import Foundation

/// What an app advertises, laid out for a controller of any age: 31 octets of advertising data and 31 of scan response.
struct AdvertisementPayload: Hashable, Sendable {
    /// Flags, then as much as fits of services and name.
    private(set) var advertisingData = AdvertisingData()
    /// What had no room in the advertising data.
    private(set) var scanResponseData = AdvertisingData()
    /// Services that had no room in either.
    private(set) var omittedServices: [BluetoothUUID] = []
    let localName: String?
    let services: [BluetoothUUID]
    /// The advertising interval; nil for the host's own choice.
    private(set) var interval: Duration?

    /// The longest data of legacy advertising PDUs (Vol 6, Part B, 2.3.1).
    static let capacity = 31

    /// What an app has laid out itself.
    init(_ advertisingData: AdvertisingData, scanResponse: AdvertisingData, interval: Duration?) {
        self.advertisingData = advertisingData
        scanResponseData = scanResponse
        self.interval = interval
        localName = advertisingData.localName ?? scanResponse.localName
        services = advertisingData.serviceUUIDs + scanResponse.serviceUUIDs
    }

    init(localName: String?, services: [BluetoothUUID]) {
        self.localName = localName
        self.services = services
        let flags: AdvertisingFlags = [.generalDiscoverable, .brEdrNotSupported]
        var rest = services
        var room = AdvertisementPayload.capacity - 3
        let first = AdvertisementPayload.takeServices(from: &rest, room: &room)
        var responseRoom = AdvertisementPayload.capacity
        let second = AdvertisementPayload.takeServices(from: &rest, room: &responseRoom)
        omittedServices = rest
        // A list that is not whole says so, in both places.
        advertisingData = AdvertisingData([.flags(flags)] + first.flatMap { $0.structures(of: services) })
        scanResponseData = AdvertisingData(second.flatMap { $0.structures(of: services) })
        appendName(room: room, responseRoom: responseRoom)
    }

    /// The keys that advertisements honour.
    static let keys: Set<String> = [CBAdvertisementDataLocalNameKey, CBAdvertisementDataServiceUUIDsKey]

    init(dictionary: [String: Any]?) {
        self.init(
            localName: dictionary?[CBAdvertisementDataLocalNameKey] as? String,
            services: (dictionary?[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID] ?? []).values
        )
    }

    /// Services of one width that lie together.
    private struct List {
        var uuids: [BluetoothUUID]

        func structures(of all: [BluetoothUUID]) -> [AdvertisingData.Structure] {
            let width = uuids.first?.width
            let isComplete = all.filter { $0.width == width }.count == uuids.count
            return [.serviceUUIDs(uuids, isComplete: isComplete)]
        }
    }

    /// Takes as many services as there is room for, the first ones first, in a list for each width.
    private static func takeServices(from services: inout [BluetoothUUID], room: inout Int) -> [List] {
        var lists: [BluetoothUUID.Width: List] = [:]
        services.removeAll { uuid in
            let isNew = lists[uuid.width] == nil
            let needed = uuid.width.octets + (isNew ? 2 : 0)
            guard needed <= room else { return false }
            room -= needed
            lists[uuid.width, default: List(uuids: [])].uuids.append(uuid)
            return true
        }
        return [.bits16, .bits32, .bits128].compactMap { lists[$0] }
    }

    /// The name goes where it fits whole, the advertising data first, else shortened into the scan response.
    private mutating func appendName(room: Int, responseRoom: Int) {
        guard let localName, !localName.isEmpty else { return }
        let needed = localName.utf8.count + 2
        if needed <= room { return advertisingData.append(.completeLocalName(localName)) }
        if needed <= responseRoom { return scanResponseData.append(.completeLocalName(localName)) }
        var shortened = localName
        while shortened.utf8.count + 2 > responseRoom, !shortened.isEmpty { shortened.removeLast() }
        if !shortened.isEmpty { scanResponseData.append(.shortenedLocalName(shortened)) }
    }
}
