import BLEHCI
import BluetoothTypes

/// The links of a host, in the order in which they were made. A link is found in constant time by its connection handle
/// or its identifier.
///
/// Connection handles have twelve bits (Vol 4, Part E, 5.3.1), so an array indexed by them stays small.
struct LinkTable {
    /// Links by connection handle, up to the highest handle that was used.
    private var slots: [Link?] = []
    /// All links, oldest first.
    private(set) var values: [Link] = []
    /// The reasons for which links have ended, for callers that ask later; bounded.
    private var endReasons = GenerationalTable<LinkIdentifier, DisconnectionReason>(limit: 256)

    var count: Int { values.count }
    var isEmpty: Bool { values.isEmpty }
    /// The number of handles that find a link.
    var occupiedSlotCount: Int { slots.count { $0 != nil } }

    subscript(handle: ConnectionHandle) -> Link? {
        let index = Int(handle.rawValue)
        return index < slots.count ? slots[index] : nil
    }

    subscript(identifier: LinkIdentifier) -> Link? {
        guard let link = self[identifier.handle], link.identifier == identifier else { return nil }
        return link
    }

    /// Adds a link. No other link has its handle.
    mutating func insert(_ link: Link) {
        let index = Int(link.handle.rawValue)
        if index >= slots.count { slots.append(contentsOf: repeatElement(nil, count: index + 1 - slots.count)) }
        slots[index] = link
        values.append(link)
    }

    /// The reason for which a link has ended; nil if it has not ended, or too many others have ended since.
    mutating func endReason(of identifier: LinkIdentifier) -> DisconnectionReason? { endReasons[identifier] }

    /// Notes why a link has ended that was removed.
    mutating func setEndReason(_ reason: DisconnectionReason, of identifier: LinkIdentifier) {
        endReasons[identifier] = reason
    }

    mutating func remove(_ handle: ConnectionHandle) -> Link? {
        guard let link = self[handle] else { return nil }
        slots[Int(handle.rawValue)] = nil
        values.removeAll { $0 === link }
        return link
    }
}
