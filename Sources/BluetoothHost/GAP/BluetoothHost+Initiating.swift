import BluetoothTypes
import HCI

// Initiation of connections by the controller.
extension BluetoothHost {
    /// How long the host waits for the end of a cancelled initiation.
    private static let cancellationTimeout = Duration.seconds(2)

    // MARK: State

    /// Changes the host's record of what the controller initiates.
    func setInitiation(_ state: Connector.State) {
        connector.enter(state, at: loop.now)
        timers.cancel(connector.cancellationTimer)
        connector.cancellationTimer = nil
    }

    /// Waits for the event that ends a cancelled initiation (Vol 4, Part E, 7.8.13). If the event does not arrive, the
    /// host assumes that the controller initiates nothing.
    func expectEndOfInitiating() {
        guard connector.state == .cancelling, connector.cancellationTimer == nil else { return }
        connector.cancellationTimer = schedule(.endOfInitiating, after: BluetoothHost.cancellationTimeout)
    }

    func endOfInitiatingTimedOut() {
        guard connector.state == .cancelling else { return }
        setInitiation(.idle)
        reconcileConnections()
        reconcileScan()
    }

    /// Records that the controller was reset and initiates nothing.
    func forgetInitiation() {
        setInitiation(.idle)
        connector.forgetController()
    }

    // MARK: Commands

    /// Makes the controller initiate connections.
    func initiate(_ initiation: Connector.Initiation) async throws(CommandFailure) {
        guard let information, let first = initiation.addresses.inOrder.first else { return }
        let usesAcceptList = initiation.addresses.count > 1
        if usesAcceptList {
            try await perform(LEClearFilterAcceptList())
            for address in initiation.addresses.inOrder {
                try await perform(LEAddDeviceToFilterAcceptList(address: PeerAddress(address)))
            }
        }
        let parameters = initiation.parameters
        let policy: InitiatorFilterPolicy = usesAcceptList ? .filterAcceptList : .peerAddress
        if information.usesExtendedCommands {
            try await perform(
                LEExtendedCreateConnection(
                    initiatorFilterPolicy: policy,
                    ownAddressType: ownAddressType,
                    peerAddress: usesAcceptList ? DeviceAddress(0, isRandom: false) : first,
                    le1M: .init(
                        scanInterval: 0x60,
                        scanWindow: 0x60,
                        connectionIntervalMin: parameters.intervalMinimum,
                        connectionIntervalMax: parameters.intervalMaximum,
                        maxLatency: parameters.latency,
                        supervisionTimeout: parameters.timeout
                    )
                )
            )
        } else {
            try await perform(
                LECreateConnection(
                    leScanInterval: 0x60,
                    leScanWindow: 0x60,
                    initiatorFilterPolicy: policy,
                    peerAddress: usesAcceptList
                        ? PeerAddress(DeviceAddress(0, isRandom: false)) : initiatorPeer(first, information),
                    ownAddressType: ownAddressType,
                    connectionIntervalMin: parameters.intervalMinimum,
                    connectionIntervalMax: parameters.intervalMaximum,
                    maxLatency: parameters.latency,
                    supervisionTimeout: parameters.timeout
                )
            )
        }
    }

    /// The peer's address and its type for initiating. On controllers without privacy modes, a separate address type
    /// says that the peer uses private addresses (Vol 4, Part E, 7.8.12).
    private func initiatorPeer(_ address: DeviceAddress, _ information: ControllerInformation) -> PeerAddress {
        guard privacy.list?.resolves(address) == true, !information.commands.contains(LESetPrivacyMode.self) else {
            return PeerAddress(address)
        }
        return PeerAddress(type: address.isRandom ? .randomIdentity : .publicIdentity, value: address.value)
    }
}
