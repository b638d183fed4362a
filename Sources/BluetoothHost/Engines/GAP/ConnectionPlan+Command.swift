import BLEHCI
import BluetoothTypes

extension ConnectionPlan.Initiation {
    /// The command with which the controller begins the initiation.
    func command(_ context: ConnectionPlan.Context) -> GAPCommand {
        // With the accept list, the controller ignores the peer's address.
        let single = addresses.count == 1 ? addresses.first : nil
        let policy: InitiatorFilterPolicy = single == nil ? .filterAcceptList : .peerAddress
        let address = single ?? DeviceAddress(0, isRandom: false)
        guard context.usesExtendedCommands else {
            return GAPCommand(
                LECreateConnection(
                    leScanInterval: 0x60,
                    leScanWindow: 0x60,
                    initiatorFilterPolicy: policy,
                    peerAddress: context.peersWithIdentityTypes.contains(address)
                        ? PeerAddress(type: address.isRandom ? .randomIdentity : .publicIdentity, value: address.value)
                        : PeerAddress(address),
                    ownAddressType: context.ownAddressType,
                    connectionIntervalMin: parameters.intervalMinimum,
                    connectionIntervalMax: parameters.intervalMaximum,
                    maxLatency: parameters.latencyInEvents,
                    supervisionTimeout: parameters.timeout
                )
            )
        }
        let phy = LEExtendedCreateConnection.PHYParameters(
            scanInterval: 0x60,
            scanWindow: 0x60,
            connectionIntervalMin: parameters.intervalMinimum,
            connectionIntervalMax: parameters.intervalMaximum,
            maxLatency: parameters.latencyInEvents,
            supervisionTimeout: parameters.timeout
        )
        var command = LEExtendedCreateConnection(
            initiatorFilterPolicy: policy,
            ownAddressType: context.ownAddressType,
            peerAddress: address,
            le1M: phy,
            leCoded: usesCodedPHY ? phy : nil
        )
        guard let subevent, let train else { return GAPCommand(command) }
        // The connection is made on the PHY of the train, and only its parameters are given.
        command.le1M = train.phy == .le1M ? phy : nil
        command.le2M = train.phy == .le2M ? phy : nil
        command.leCoded = train.phy == .leCoded ? phy : nil
        return GAPCommand(
            LEExtendedCreateConnectionV2(
                advertisingHandle: train.advertisingHandle,
                subevent: subevent.number,
                connection: command
            )
        )
    }
}
