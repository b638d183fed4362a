import BluetoothTypes
import Foundation

/// The advertising data and the scan response of an app.
///
/// Data made from a local name and services fits legacy advertising: 31 bytes of advertising data and 31 of scan
/// response.
struct AdvertisementPayload: Hashable, Sendable {
    /// Flags, then the services that fit, then the name if it fits completely; or the data that the app has laid out
    /// itself.
    private(set) var advertisingData = AdvertisingData()
    /// The services and the name that did not fit the advertising data.
    private(set) var scanResponseData = AdvertisingData()
    /// Services that fit neither.
    private(set) var omittedServices: [BluetoothUUID] = []
    let localName: String?
    let services: [BluetoothUUID]
    /// The advertising interval; nil for the host's default.
    private(set) var interval: Duration?

    /// Maximum length of the data of legacy advertising PDUs (Vol 6, Part B, 2.3.1).
    static let capacity = 31

    /// Creates a payload of data that the app has laid out itself.
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
        // An incomplete list is marked as incomplete, in both places.
        advertisingData = AdvertisingData([.flags(flags)] + first.flatMap { $0.structures(of: services) })
        scanResponseData = AdvertisingData(second.flatMap { $0.structures(of: services) })
        appendName(room: room, responseRoom: responseRoom)
    }

    /// The keys that advertisements support.
    static let keys: Set<String> = [CBAdvertisementDataLocalNameKey, CBAdvertisementDataServiceUUIDsKey]

    init(dictionary: [String: Any]?) {
        self.init(
            localName: dictionary?[CBAdvertisementDataLocalNameKey] as? String,
            services: (dictionary?[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID] ?? []).values
        )
    }

    /// Services of one width in one AD structure.
    private struct List {
        var uuids: [BluetoothUUID]

        func structures(of all: [BluetoothUUID]) -> [AdvertisingData.Structure] {
            let width = uuids.first?.width
            let isComplete = all.filter { $0.width == width }.count == uuids.count
            return [.serviceUUIDs(uuids, isComplete: isComplete)]
        }
    }

    /// Removes and returns as many services as there is room for, from the front, in a list for each width.
    private static func takeServices(from services: inout [BluetoothUUID], room: inout Int) -> [List] {
        var lists: [BluetoothUUID.Width: List] = [:]
        services.removeAll { uuid in
            let isNew = lists[uuid.width] == nil
            let needed = uuid.width.byteCount + (isNew ? 2 : 0)
            guard needed <= room else { return false }
            room -= needed
            lists[uuid.width, default: List(uuids: [])].uuids.append(uuid)
            return true
        }
        return [.bits16, .bits32, .bits128].compactMap { lists[$0] }
    }

    /// Adds the complete name to the advertising data if it fits, otherwise to the scan response. If it fits neither,
    /// adds a shortened name to the scan response.
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
