import BLEHCI
import BluetoothTypes

/// What the caller of a ``GAPEngine`` does after an input, in this order.
enum GAPEffect: Equatable {
    /// Call ``GAPEngine/runPass(of:_:_:)`` after the jobs that wait on the loop already.
    case schedulePass(GAPPlan)
    /// Call ``BluetoothHost/endInput()``, which sends frames and calls closures of apps. Then send this command. It is
    /// always the last effect.
    case send(PlannedCommand)

    // MARK: Scans

    /// Report to a scan that it has ended. The engine has removed the scan.
    case endScan(ScanIdentifier, HostError)
    /// Report that the scan is restarted after a silence of this length.
    case scanRestarted(afterSilence: Duration)

    // MARK: Synchronizations

    /// Report to a synchronization that the controller receives the train.
    case synchronized(SynchronizationIdentifier, PeriodicTrain)
    /// Report to a synchronization that the train was lost.
    case synchronizationLost(SynchronizationIdentifier)
    /// Report to a synchronization that it has ended. The engine has removed it.
    case endSynchronization(SynchronizationIdentifier, HostError)
    /// Report to a reception that the controller accepts transfers from now on.
    case receptionReady(SyncTransferReceptionIdentifier)
    /// Report a synchronization that a connected device has transferred. If the reception has ended, call
    /// ``GAPEngine/stopSynchronization(_:_:)``.
    case transferred(SyncTransferReceptionIdentifier, TransferredSynchronization)
    /// Report to a reception that a transferred synchronization has failed.
    case transferFailed(SyncTransferReceptionIdentifier, ConnectionHandle, serviceData: UInt16, HCIErrorCode)
    /// Report to a reception that it has ended. The engine has removed it.
    case endReception(SyncTransferReceptionIdentifier, HostError)
    /// Report to a reception that its link has ended. The engine has removed it.
    case receptionLinkEnded(SyncTransferReceptionIdentifier, LinkIdentifier)

    // MARK: Connections

    /// Report that an attempt has led to this link. The engine has removed the attempt.
    case connected(ConnectionAttempt, LinkIdentifier)
    /// Report that an attempt has failed. The engine has removed the attempt.
    case attemptFailed(ConnectionAttempt, HostError)
    /// Find the link to one of these peers: the controller answered that there is one. Two devices have at most one
    /// link (Vol 6, Part B, 4.5). If the link counts as a connection, call
    /// ``GAPEngine/linkCountsAsConnection(_:with:_:)``. Otherwise call ``GAPEngine/retryInitiating(afterEndOf:)``.
    case findLink(Set<DeviceAddress>)
    /// Request these parameters for a new link, unless it has them. The link was initiated with the parameters of an
    /// attempt for another peer.
    case requestParameters(LinkIdentifier, ConnectionParameters)
    /// Read the PHYs of a new link: they may be others than LE 1M.
    case readPHYs(LinkIdentifier)
    /// End a new link that this host has initiated: no attempt waits for it any more.
    case endUnwantedLink(LinkIdentifier)

    // MARK: Advertisements and addresses

    /// Report an event of the subevents of an advertisement's train. After the end, there are no more.
    case subeventEvent(AdvertisementIdentifier, SubeventEvent)
    /// End a call that waited for the start or the end of an advertisement. Nil means success.
    case finish(CallToken, HostError?)
    /// This host has the given address on a link.
    case ownAddressKnown(ConnectionHandle, DeviceAddress)
    /// Publish whether peers may direct advertising to this host's private addresses.
    case setAddressResolution(isSupported: Bool)
    /// Report to the session that the addresses are set up in the controller, or that this has failed.
    case addressesPrepared(CommandFailure?)

    // MARK: The controller

    /// Reset the controller: its scan has been silent for this time, although it was restarted.
    case resetSilentController(Duration)
    case report(GAPReport)
}

/// An event of a ``GAPEngine`` for the log.
enum GAPReport: Equatable {
    /// An advertisement is off because of this failure, and will be tried again.
    case advertisementFailed(CommandFailure)
    case addressRefused(CommandFailure)
    /// The host resolves private addresses by itself, because the controller refused a command.
    case resolvedByHost(CommandFailure)
    /// The controller refused the LE Coded PHY for scanning or initiating. The plan does not use it until the next
    /// reset.
    case codedRefused(CommandFailure)
    /// This failure does not matter.
    case ignored(CommandFailure)
}

extension GAPReport: CustomStringConvertible {
    var description: String {
        switch self {
        case .advertisementFailed(let failure): "an advertisement is off: \(failure); trying again"
        case .addressRefused(let failure): "the controller refused a change of addresses: \(failure)"
        case .resolvedByHost(let failure): "the host resolves private addresses without the controller: \(failure)"
        case .codedRefused(let failure): "the LE Coded PHY is not used until the controller's next reset: \(failure)"
        case .ignored(let failure): "\(failure)"
        }
    }
}
