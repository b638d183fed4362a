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
        let command = LEExtendedCreateConnection(
            initiatorFilterPolicy: policy,
            ownAddressType: context.ownAddressType,
            peerAddress: address,
            le1M: phy,
            leCoded: usesCodedPHY ? phy : nil
        )
        guard let subevent else { return GAPCommand(command) }
        return GAPCommand(
            LEExtendedCreateConnectionV2(
                advertisingHandle: subevent.advertisingHandle,
                subevent: subevent.subevent,
                connection: command
            )
        )
    }
}
