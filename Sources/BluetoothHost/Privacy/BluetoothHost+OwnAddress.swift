import BluetoothTypes
import HCI

// The addresses that this host uses on air.
extension BluetoothHost {
    /// The type of own address for scanning and initiating, and for advertisements without an address of their own.
    var ownAddressType: OwnAddressType { information.map { privacy.ownAddresses($0).type } ?? .public }

    /// This host's address on a new connection.
    func ownAddress(of connection: NewConnection) -> DeviceAddress {
        guard let information else { return DeviceAddress(0, isRandom: false) }
        let address = privacy.addressOfNewLink(information)
        guard connection.role == .peripheral else { return address }
        return advertiser.addressOfNewLink(
            own: address,
            usesExtendedCommands: information.usesExtendedCommands
        )
    }

    // MARK: Rotation

    /// Begins to use private addresses for their time.
    func rotatePrivateAddressLater() {
        privacy.poweredOn(at: loop.now)
        setTimer(of: .addresses, to: privacy.deadline)
    }

    func rotatePrivateAddress() {
        // While the controller is not on, the deadline stays in the past. The timer is set again when it is on.
        guard power == .on else { return }
        let isNew = privacy.advance(to: loop.now, bonds.identity.resolvingKey, &random)
        setTimer(of: .addresses, to: privacy.deadline)
        guard isNew else { return }
        reconcileAddresses()
        reconcileAdvertising()
    }
}
