import BLEHCI
import BluetoothTypes

// Synchronizations with periodic advertising trains (Vol 3, Part C, 9.5).
extension BluetoothHost {
    /// Starts to receive a periodic advertising train. It is found again after it was lost, and after recoveries of the
    /// controller, until it is stopped or the host is closed.
    ///
    /// - Parameter deliver: called on the loop with each event.
    package func startSynchronization(
        _ request: PeriodicTrainRequest,
        deliver: @escaping @Sendable (SynchronizationEvent) -> Void
    ) -> SynchronizationIdentifier {
        let identifier = SynchronizationIdentifier(value: observers.makeIdentifier())
        do throws(HostError) {
            let information = try latestInformation()
            let effects = try gap.startSynchronization(identifier, request, on: information, gapContext)
            observers.synchronizations[identifier] = deliver
            perform(effects)
        } catch {
            self.deliver(.synchronizationEnd(deliver, error))
            endInput()
        }
        return identifier
    }

    package func stopSynchronization(_ identifier: SynchronizationIdentifier) {
        // Code of the app that runs at the release may start or stop a synchronization.
        let removed = observers.synchronizations.removeValue(forKey: identifier)
        broadcastSynchronizationEnded(identifier, .disconnected(.controller(.connectionTerminatedByLocalHost)))
        perform(gap.stopSynchronization(identifier, gapContext))
        withExtendedLifetime(removed) {}
    }

    func endSynchronization(_ identifier: SynchronizationIdentifier, _ error: HostError) {
        broadcastSynchronizationEnded(identifier, error)
        guard let observer = observers.synchronizations.removeValue(forKey: identifier) else { return }
        deliver(.synchronizationEnd(observer, error))
    }

    func receive(_ event: borrowing LEPeriodicAdvertisingReport) {
        guard let received = gap.synchronizing.receive(event, at: loop.now) else { return }
        deliver(received, rssi: event.rssi, txPower: event.txPower, place: nil)
    }

    func receive(_ event: borrowing LEPeriodicAdvertisingReportV2) {
        let place = event.place
        guard event.dataStatus != .failedToReceive else {
            guard place.subevent != nil, let identifier = gap.synchronizing.synchronization(event.syncHandle) else {
                return
            }
            return deliver(.synchronizationEvent(identifier, .missed(place)))
        }
        guard let received = gap.synchronizing.receive(event, at: loop.now) else { return }
        deliver(received, rssi: event.rssi, txPower: event.txPower, place: place)
    }

    private func deliver(_ received: ReceivedTrainData, rssi: Int8, txPower: Int8, place: PeriodicPlace?) {
        let advertisement = PeriodicAdvertisement(
            data: AdvertisingData(decoding: received.data),
            rssi: rssi == 127 ? nil : Int(rssi),
            txPower: txPower == 127 ? nil : Int(txPower),
            isTruncated: received.isTruncated,
            time: loop.now,
            place: place,
            synchronization: received.identifier
        )
        deliver(.synchronizationEvent(received.identifier, .report(advertisement)))
    }
}
