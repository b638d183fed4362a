import BLEHCI
import BluetoothTypes

// The events of synchronizations.
extension SynchronizationPlan {
    /// Handles the end of a creation: the controller receives the train, or has given up (Vol 4, Part E, 7.7.65.14).
    mutating func established(_ event: LEPeriodicAdvertisingSyncEstablishedV2) -> [SynchronizationEffect] {
        // The late end of an earlier creation that was cancelled.
        if event.status == .operationCancelledByHost, creation?.endDeadline == nil { return [] }
        guard event.status == .success else {
            endCreation()
            return []
        }
        guard let index = takeCreated(event) else {
            terminate(event.syncHandle)
            return []
        }
        return established(index, event.syncHandle, PeriodicTrain(event))
    }

    /// Records that the controller receives the train of a synchronization.
    mutating func established(_ index: Int, _ handle: UInt16, _ train: PeriodicTrain) -> [SynchronizationEffect] {
        let entry = entries[index]
        if let problem = entry.request.problem(with: train) {
            entries.remove(at: index)
            terminate(handle)
            return [.endUnusable(entry.identifier, problem)]
        }
        entries[index].state = .established(handle)
        entries[index].needsSubevents = !entry.request.subevents.isEmpty
        entries[index].partial = nil
        entries[index].fragmentLifetime = FragmentLifetime.of(interval: train.interval)
        return [.synchronized(entry.identifier, train)]
    }

    /// Has the controller end a synchronization that no app wants. A controller that does not report trains has none:
    /// the event is from before its reset.
    mutating func terminate(_ handle: UInt16) {
        let isWanted = entries.contains { $0.state == .established(handle) }
        guard reportsTrains, !isWanted, !unwantedHandles.contains(handle) else { return }
        unwantedHandles.append(handle)
    }

    /// Handles the loss of a train (Vol 4, Part E, 7.7.65.16).
    mutating func lost(_ handle: UInt16) -> [SynchronizationEffect] {
        unwantedHandles.removeAll { $0 == handle }
        guard let index = entries.firstIndex(where: { $0.state == .established(handle) }) else { return [] }
        let identifier = entries[index].identifier
        guard !entries[index].isTransferred else {
            entries.remove(at: index)
            return [.endTransferred(identifier)]
        }
        waitForNextTurn(at: index)
        return [.lost(identifier)]
    }

    // MARK: Refused events

    /// Ends what needs events that the controller refuses to report. If some of them are for subevents, ends only what
    /// needs those, so that the plan requests the other events next.
    ///
    /// - Parameter missing: the refused events that are not enabled.
    mutating func endUsers(of missing: LEEventMask, _ failure: CommandFailure) -> [SynchronizationEffect] {
        let lacksTrains = !missing.isDisjoint(with: Self.trainEvents)
        let lacksSubevents = !missing.isDisjoint(with: Self.subeventEvents)
        let ended: [SynchronizationIdentifier]
        let receptions: [SyncTransferReceptionIdentifier]
        if lacksSubevents || missing.contains(.periodicAdvertisingSyncTransferReceivedV2) {
            ended = entries.filter { lacksSubevents && !$0.request.subevents.isEmpty }.map(\.identifier)
            receptions = reception.removeAllWithSubevents()
        } else {
            // Receptions need the events of trains too.
            ended = entries.filter { lacksTrains && $0.state == .waiting }.map(\.identifier)
            receptions = reception.removeAll()
        }
        for identifier in ended { stop(identifier) }
        let effects =
            ended.map { SynchronizationEffect.end($0, failure) }
            + receptions.map { SynchronizationEffect.endReception($0, failure) }
        return effects.isEmpty ? [.ignore(failure)] : effects
    }

    // MARK: Subevents

    /// The handle with which the controller reports the train of a synchronization; nil if it does not receive the
    /// train.
    func handle(of identifier: SynchronizationIdentifier) -> UInt16? {
        guard let index = index(of: identifier) else { return nil }
        return if case .established(let handle) = entries[index].state { handle } else { nil }
    }

    /// Records that the controller knows which subevents the app wants.
    mutating func subeventsChosen(_ identifier: SynchronizationIdentifier, _ handle: UInt16) {
        // The train may have been lost, and found again, in the meantime.
        guard let index = index(of: identifier), entries[index].state == .established(handle) else { return }
        entries[index].needsSubevents = false
    }

    /// Handles the refusal of the subevents that the app wants. If the controller has lost the train, that is reported
    /// by an event.
    mutating func subeventsRefused(
        _ identifier: SynchronizationIdentifier,
        _ handle: UInt16,
        _ failure: CommandFailure
    ) -> [SynchronizationEffect] {
        guard let index = index(of: identifier), entries[index].state == .established(handle) else {
            return [.ignore(failure)]
        }
        if case .status(.unknownAdvertisingIdentifier, _) = failure {
            entries[index].needsSubevents = false
            return [.ignore(failure)]
        }
        entries.remove(at: index)
        terminate(handle)
        return [.end(identifier, failure)]
    }
}

extension SynchronizationPlan.Entry {
    /// Has the train found again.
    mutating func wait() {
        state = .waiting
        needsSubevents = false
        partial = nil
    }
}

extension PeriodicTrainRequest {
    /// Why a train cannot be received as requested; nil if it can.
    func problem(with train: PeriodicTrain) -> HostError? {
        guard let last = subevents.max() else { return nil }
        let name = "the train of \(address) with SID \(sid)"
        guard let count = train.subevents?.count else { return .invalidArgument("\(name) has no subevents") }
        return last < count ? nil : .invalidArgument("\(name) has subevents 0 to \(count - 1), not \(last)")
    }
}

extension GAPCommand {
    /// The command that chooses the subevents of a request (Vol 4, Part E, 7.8.127).
    init(chooseSubevents request: PeriodicTrainRequest, _ handle: UInt16) {
        self.init(
            LESetPeriodicSyncSubevent(
                syncHandle: handle,
                periodicAdvertisingProperties: request.respondsWithTXPower ? .includeTXPower : [],
                subevents: request.subevents
            )
        )
    }
}

extension PeriodicTrain {
    fileprivate init(_ event: LEPeriodicAdvertisingSyncEstablishedV2) {
        self.init(
            interval: .microseconds(1250 * Int(event.periodicAdvertisingInterval)),
            phy: event.advertiserPHY,
            subevents: PeriodicSubeventTiming(
                count: event.numSubevents,
                interval: event.subeventInterval,
                responseSlotDelay: event.responseSlotDelay,
                responseSlotSpacing: event.responseSlotSpacing
            )
        )
    }

    init(_ event: LEPeriodicAdvertisingSyncTransferReceivedV2) {
        self.init(
            interval: .microseconds(1250 * Int(event.periodicAdvertisingInterval)),
            phy: event.advertiserPHY,
            subevents: PeriodicSubeventTiming(
                count: event.numSubevents,
                interval: event.subeventInterval,
                responseSlotDelay: event.responseSlotDelay,
                responseSlotSpacing: event.responseSlotSpacing
            )
        )
    }
}
