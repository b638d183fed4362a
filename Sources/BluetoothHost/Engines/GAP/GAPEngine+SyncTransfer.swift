import BLEHCI
import BluetoothTypes

extension GAPEngine {
    // MARK: Receptions of apps

    /// Adds a reception of the synchronizations that connected devices transfer.
    ///
    /// - Parameter links: the links of the host.
    mutating func startReception(
        _ receiver: SyncTransferReception.Receiver,
        existing links: some Sequence<ConnectionHandle>,
        on controller: ControllerInformation,
        _ context: GAPContext
    ) throws(HostError) -> [GAPEffect] {
        try receiver.parameters.check()
        guard controller.canReceiveTransfers else {
            throw .notSupported("this controller does not receive transferred synchronizations")
        }
        guard receiver.parameters.subevents.isEmpty || controller.canRespondToTrains else {
            throw .notSupported("this controller does not receive periodic advertising with responses")
        }
        try synchronizing.reception.start(receiver, existing: links)
        reportReadyReceptions()
        requestSynchronizationPass(context)
        return takeEffects()
    }

    /// Ends a reception; nothing is reported. Does nothing if it has ended.
    mutating func stopReception(
        _ identifier: SyncTransferReceptionIdentifier,
        _ context: GAPContext
    ) -> [GAPEffect] {
        synchronizing.reception.stop(identifier)
        reportReadyReceptions()
        requestSynchronizationPass(context)
        return takeEffects()
    }

    // MARK: Events

    /// Handles a transferred synchronization.
    mutating func transferReceived(
        _ event: LEPeriodicAdvertisingSyncTransferReceivedV2,
        as identifier: SynchronizationIdentifier,
        _ context: GAPContext
    ) -> [GAPEffect] {
        perform(synchronizing.transferReceived(event, as: identifier))
        synchronizationsChanged(context)
        return takeEffects()
    }

    /// Reports to receptions that the controller accepts transfers.
    mutating func reportReadyReceptions() {
        for receiver in synchronizing.reception.takeReady() { add(.receptionReady(receiver)) }
    }

    /// Handles a new link, to whose transfers a reception may apply.
    mutating func receptionLinkBegan(_ link: LinkIdentifier, _ context: GAPContext) {
        if synchronizing.reception.linkBegan(link.handle) { requestSynchronizationPass(context) }
    }

    /// Ends the receptions of a link that has ended.
    mutating func receptionLinkEnded(_ link: LinkIdentifier) {
        for receiver in synchronizing.reception.linkEnded(link) { add(.receptionLinkEnded(receiver, link)) }
        // The setting for the link may have been the last one that was missing.
        reportReadyReceptions()
    }
}
