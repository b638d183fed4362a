import BLEHCI
import BluetoothTypes

extension GAPEngine {
    // MARK: Synchronizations of apps

    /// Adds a synchronization with a periodic advertising train.
    mutating func startSynchronization(
        _ identifier: SynchronizationIdentifier,
        _ request: PeriodicTrainRequest,
        on controller: ControllerInformation,
        _ context: GAPContext
    ) throws(HostError) -> [GAPEffect] {
        try request.check()
        guard controller.canSynchronize else {
            throw .notSupported("this controller does not receive periodic advertising")
        }
        guard request.subevents.isEmpty || controller.canRespondToTrains else {
            throw .notSupported("this controller does not receive periodic advertising with responses")
        }
        let usesCodedPHY = scanning.scans.wasReceivedOnCodedPHY([request.address])
        try synchronizing.start(identifier, request, usesCodedPHY: usesCodedPHY)
        synchronizationsChanged(context)
        return takeEffects()
    }

    /// Ends a synchronization; nothing is reported. Does nothing if it has ended.
    mutating func stopSynchronization(_ identifier: SynchronizationIdentifier, _ context: GAPContext) -> [GAPEffect] {
        synchronizing.stop(identifier)
        synchronizationsChanged(context)
        return takeEffects()
    }

    // MARK: Events

    /// Handles the end of the creation of a synchronization.
    mutating func synchronizationEstablished(
        _ event: LEPeriodicAdvertisingSyncEstablishedV2,
        _ context: GAPContext
    ) -> [GAPEffect] {
        perform(synchronizing.established(event))
        synchronizationsChanged(context)
        return takeEffects()
    }

    /// Handles the loss of a train.
    mutating func synchronizationLost(_ handle: UInt16, _ context: GAPContext) -> [GAPEffect] {
        perform(synchronizing.lost(handle))
        synchronizationsChanged(context)
        return takeEffects()
    }

    // MARK: Passes

    /// Has the synchronizations and the scan that they need brought up to date.
    mutating func synchronizationsChanged(_ context: GAPContext) {
        scanning.isSynchronizing = synchronizing.isSearching
        requestScanPass(context)
        requestSynchronizationPass(context)
        continueWithAddressesIfAtRest(context)
    }

    /// Handles the passing of time for the synchronizations.
    mutating func advanceSynchronizations(_ context: GAPContext) {
        guard context.isOn, synchronizing.advance(to: context.now) else { return }
        synchronizationsChanged(context)
    }

    /// Requests a pass of the synchronization plan.
    mutating func requestSynchronizationPass(_ context: GAPContext) {
        if context.isOn, synchronizing.requestRun() { add(.schedulePass(.synchronization)) }
    }

    mutating func synchronizationPass(_ context: GAPContext) {
        guard let controller = context.controller else { return }
        let isHeld = addresses.hold == .everything
        if let next = synchronizing.nextCommand(controller, isHeld: isHeld, at: context.now) {
            add(.send(next))
        } else {
            continueWithAddressesIfAtRest(context)
        }
    }

    mutating func synchronizationCommandEnded(
        _ step: GAPStep,
        _ failure: CommandFailure?,
        _ context: GAPContext
    ) {
        if let failure {
            perform(synchronizing.failed(step, failure))
        } else {
            perform(synchronizing.finished(step))
        }
        reportReadyReceptions()
        scanning.isSynchronizing = synchronizing.isSearching
        requestScanPass(context)
    }

    mutating func perform(_ effects: [SynchronizationEffect]) {
        for effect in effects {
            switch effect {
            case .synchronized(let identifier, let train): add(.synchronized(identifier, train))
            case .lost(let identifier): add(.synchronizationLost(identifier))
            case .end(let identifier, let failure): add(.endSynchronization(identifier, .command(failure)))
            case .endUnusable(let identifier, let error): add(.endSynchronization(identifier, error))
            case .endTransferred(let identifier): add(.endSynchronization(identifier, .timedOut))
            case .transferred(let receiver, let synchronization): add(.transferred(receiver, synchronization))
            case .transferFailed(let receiver, let link, let serviceData, let status):
                add(.transferFailed(receiver, link, serviceData: serviceData, status))
            case .endReception(let receiver, let failure): add(.endReception(receiver, .command(failure)))
            case .ignore(let failure): add(.report(.ignored(failure)))
            }
        }
    }
}
