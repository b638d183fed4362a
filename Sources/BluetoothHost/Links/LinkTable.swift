import BluetoothTypes
import HCI

/// The links of a host: found in constant time by connection handle, which is what packets name, or by identifier, which is
/// what callers name; walked in the order in which they were made.
///
/// Connection handles have twelve bits (Vol 4, Part E, 5.3.1), so that an array over them stays small.
struct LinkTable {
    /// Links by their handles, as far as handles have been used.
    private var slots: [Link?] = []
    /// All links, the oldest first.
    private(set) var values: [Link] = []

    var count: Int { values.count }
    var isEmpty: Bool { values.isEmpty }

    subscript(handle: ConnectionHandle) -> Link? {
        let index = Int(handle.rawValue)
        return index < slots.count ? slots[index] : nil
    }

    subscript(identifier: LinkIdentifier) -> Link? {
        guard let link = self[identifier.handle], link.identifier == identifier else { return nil }
        return link
    }

    /// Adds a link whose handle no other has.
    mutating func insert(_ link: Link) {
        let index = Int(link.handle.rawValue)
        if index >= slots.count { slots.append(contentsOf: repeatElement(nil, count: index + 1 - slots.count)) }
        slots[index] = link
        values.append(link)
    }

    mutating func remove(_ handle: ConnectionHandle) -> Link? {
        guard let link = self[handle] else { return nil }
        slots[Int(handle.rawValue)] = nil
        values.removeAll { $0 === link }
        return link
    }
}
