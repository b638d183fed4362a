import BLEHCI
import BluetoothTypes

// Broadcast isochronous streams (Vol 6, Part B, 4.4.6).
extension BluetoothHost {
    // MARK: Sending

    /// Starts to send a broadcast isochronous group, which the periodic train of an advertisement announces.
    ///
    /// - Returns: the number of the opening, for ``cancelStreamOpening(_:)``.
    package func startBroadcast(
        on advertisement: AdvertisementIdentifier,
        _ parameters: BroadcastGroupParameters,
        observe: @escaping StreamObserverMaker,
        completion: @escaping StreamOpeningCompletion
    ) -> UInt64 {
        let number = observers.makeIdentifier()
        do throws(HostError) {
            guard try usableInformation().canBroadcastStreams else {
                throw .notSupported("this controller sends no broadcast isochronous streams")
            }
            let handle = try gap.advertising.handleOfTrain(of: advertisement)
            enableEvents([.createBIGComplete, .terminateBIGComplete])
            let effects = try isochronous.broadcast(number, on: advertisement, advertisingHandle: handle, parameters)
            observers.streamOpenings[number] = StreamOpening(observe: observe, completion: completion)
            perform(effects)
        } catch {
            deliver(.action { completion(.failure(error)) })
        }
        endInput()
        return number
    }

    // MARK: Receiving

    /// Starts to receive the broadcast isochronous group that a train announces, as soon as the train is received and
    /// announces it.
    ///
    /// The host uses the synchronization of an app with the train, if there is one. Otherwise it synchronizes itself,
    /// until the group has ended.
    ///
    /// - Returns: the number of the opening, for ``cancelStreamOpening(_:)``.
    package func receiveBroadcast(
        of request: PeriodicTrainRequest,
        _ parameters: BroadcastReceptionParameters,
        observe: @escaping StreamObserverMaker,
        completion: @escaping StreamOpeningCompletion
    ) -> UInt64 {
        let number = observers.makeIdentifier()
        do throws(HostError) {
            let information = try usableInformation()
            guard information.canReceiveBroadcastStreams else {
                throw .notSupported("this controller receives no broadcast isochronous streams")
            }
            try request.check()
            try parameters.check()
            let existing = gap.synchronizing.identifier(of: request.train)
            let synchronization = existing ?? SynchronizationIdentifier(value: observers.makeIdentifier())
            try isochronous.receiveBroadcast(number, from: synchronization, parameters)
            observers.streamOpenings[number] = StreamOpening(observe: observe, completion: completion)
            enableEvents([.bigInfoAdvertisingReport, .bigSyncEstablished, .bigSyncLost])
            if existing == nil { synchronize(synchronization, request, information) }
        } catch {
            deliver(.action { completion(.failure(error)) })
        }
        endInput()
        return number
    }

    /// Starts a synchronization that only a broadcast group needs.
    private func synchronize(
        _ synchronization: SynchronizationIdentifier,
        _ request: PeriodicTrainRequest,
        _ information: ControllerInformation
    ) {
        observers.broadcastSynchronizations.insert(synchronization)
        do throws(HostError) {
            perform(try gap.startSynchronization(synchronization, request, on: information, gapContext))
        } catch {
            perform(isochronous.synchronizationEnded(synchronization, error))
        }
    }

    func receive(_ event: LEBIGInfoAdvertisingReport) {
        guard let synchronization = gap.synchronizing.identifier(of: event.syncHandle) else { return }
        perform(isochronous.announced(event, on: synchronization, at: loop.now))
    }

    /// Handles the end of a synchronization that the controller or an app has ended.
    func broadcastSynchronizationEnded(_ synchronization: SynchronizationIdentifier, _ error: HostError) {
        observers.broadcastSynchronizations.remove(synchronization)
        perform(isochronous.synchronizationEnded(synchronization, error))
    }

    /// Ends a synchronization that only a broadcast group has used.
    func releaseSynchronization(_ synchronization: SynchronizationIdentifier) {
        guard observers.broadcastSynchronizations.remove(synchronization) != nil else { return }
        perform(gap.stopSynchronization(synchronization, gapContext))
    }
}
