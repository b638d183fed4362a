import BLEHCI
import BluetoothTypes

// What the plan knows of a new link that a peer has initiated.
extension AdvertisingPlan {
    /// This host's address on a new link that the peer has initiated.
    ///
    /// - Parameter own: the host's own address. If there are several advertising sets, a separate event reports which
    ///   one led to the connection.
    func addressOfNewLink(own: DeviceAddress, usesExtendedCommands: Bool) -> DeviceAddress {
        guard let entry = entries.first(where: { $0.configuration.isConnectable && $0.isOn }) else { return own }
        return (usesExtendedCommands ? entry.address : entry.configuration.address) ?? own
    }

    /// Whether such a link may have another PHY than LE 1M: that of an advertisement's secondary channels.
    var mayConnectOnOtherPHY: Bool {
        entries.contains { $0.configuration.isConnectable && $0.configuration.phys.secondary != .le1M }
    }
}
