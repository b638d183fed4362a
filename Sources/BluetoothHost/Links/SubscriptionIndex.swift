import BluetoothTypes
import GATT

/// Remembers which links' clients have configured a characteristic, so that sending its value does not ask all links.
struct SubscriptionIndex {
    private var linksByHandle: [AttributeHandle: [Link]] = [:]
    private var linkRevision: UInt64 = 0
    private var configurationRevision: UInt64 = 0

    /// The links, in the order in which they were made, whose clients have ever asked to be sent the characteristic whose
    /// value has this handle; each is still to be asked whether it may be sent.
    mutating func links(configuring handle: AttributeHandle, among links: LinkTable, _ server: GATT.Server) -> [Link] {
        if linkRevision != links.revision || configurationRevision != server.configurationRevision {
            linksByHandle.removeAll(keepingCapacity: true)
            linkRevision = links.revision
            configurationRevision = server.configurationRevision
        }
        if let found = linksByHandle[handle] { return found }
        let found = links.values.filter { !$0.session.configuration(of: handle).isEmpty }
        linksByHandle[handle] = found
        return found
    }
}
