import BLEHCI
import BluetoothTypes

// What broadcast isochronous groups need to know of the trains that announce them.

extension AdvertisingPlan {
    /// The advertising handle of an advertisement whose periodic train runs in the controller.
    ///
    /// - Throws: ``HostError/invalidArgument(_:)`` if the advertisement has ended or has no train, and ``HostError/notReady`` if
    ///   the train does not run yet, or not again after a reset of the controller.
    func handleOfTrain(of identifier: AdvertisementIdentifier) throws(HostError) -> UInt8 {
        guard let entry = entries.first(where: { $0.identifier == identifier && !$0.isEnding }),
            entry.configuration.periodic != nil
        else { throw .invalidArgument("the advertisement has ended, or has no periodic train for the broadcast") }
        guard entry.isPeriodicOn else { throw .notReady }
        return entry.handle
    }
}

extension SynchronizationPlan {
    /// The synchronization that has a handle of the controller.
    func identifier(of handle: UInt16) -> SynchronizationIdentifier? {
        entries.first { $0.state == .established(handle) }?.identifier
    }

    /// The synchronization with a train.
    func identifier(of train: PeriodicTrainRequest.Train) -> SynchronizationIdentifier? {
        entries.first { $0.request.train == train }?.identifier
    }
}
