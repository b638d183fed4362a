import BLEGATT
import BluetoothTypes

/// An index of the links whose clients have configured a characteristic, so that sending its value does not examine all
/// links.
struct SubscriptionIndex {
    private var linksByHandle = HandleTable<[Link]>()
    private var configurationRevision: UInt64 = 0

    /// The number of links in the index, once for each characteristic.
    var count: Int { linksByHandle.values.reduce(0) { $0 + $1.count } }

    /// The links whose clients have configured the characteristic with this value handle, in the order in which they
    /// were made. The caller still checks whether each link is secure enough.
    mutating func links(configuring handle: AttributeHandle, among links: [Link], _ server: BLEGATT.Server) -> [Link] {
        if configurationRevision != server.configurationRevision {
            removeAll()
            configurationRevision = server.configurationRevision
        }
        if let found = linksByHandle[handle] { return found }
        let found = links.filter { !$0.session.configuration(of: handle).isEmpty }
        linksByHandle[handle] = found
        return found
    }

    /// Empties the index, because a link has ended.
    mutating func removeAll() {
        linksByHandle.removeAll()
    }
}
