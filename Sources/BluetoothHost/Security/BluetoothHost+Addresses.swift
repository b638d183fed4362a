import BluetoothTypes
import HCI

// Which addresses a link was made with: they go into the confirm values of a pairing.
extension BluetoothHost {
    /// The address that this host has told its controller to use for a connection; the controller itself may have used a
    /// private one.
    func ownAddress(of connection: NewConnection) -> DeviceAddress {
        let identity = information?.identityAddress ?? bonds.identity.staticAddress
        guard connection.role == .peripheral, information?.usesExtendedCommands == false else { return identity }
        // There is one legacy advertisement, and it has ended with the connection.
        return advertiser.connectable?.configuration.address ?? identity
    }

    /// An advertising set of extended advertising has ended with a connection: its address is the link's.
    func advertisementLed(to event: LEAdvertisingSetTerminated) {
        guard event.status == .success, let link = links[event.connectionHandle], link.role == .peripheral,
            let address = advertiser.entries.first(where: { $0.handle == event.advertisingHandle })?.configuration
                .address
        else { return }
        link.ownAddress = address
    }
}
