import BluetoothTypes
import GATT

/// Remembers which links' clients have configured a characteristic, so that sending its value does not ask all links.
struct SubscriptionIndex {
    private var linksByHandle: [AttributeHandle: [Link]] = [:]
    private var configurationRevision: UInt64 = 0

    /// The links, in the order in which they were made, whose clients have ever asked to be sent the characteristic whose
    /// value has this handle; each is still to be asked whether it may be sent.
    mutating func links(configuring handle: AttributeHandle, among links: [Link], _ server: GATT.Server) -> [Link] {
        if configurationRevision != server.configurationRevision {
            removeAll()
            configurationRevision = server.configurationRevision
        }
        if let found = linksByHandle[handle] { return found }
        let found = links.filter { !$0.session.configuration(of: handle).isEmpty }
        linksByHandle[handle] = found
        return found
    }

    /// Forgets them all: one of them has ended.
    mutating func removeAll() {
        linksByHandle.removeAll(keepingCapacity: true)
    }
}
