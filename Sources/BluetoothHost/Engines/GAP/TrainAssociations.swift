import BLEHCI
import BluetoothTypes

// The trains of this host, and those that it receives, as broadcast groups, transfers and connections use them.

extension AdvertisingPlan {
    /// Whether the controller sends a train.
    var hasTrain: Bool { entries.contains(where: \.isPeriodicOn) }

    /// The advertising handle of an advertisement's train.
    ///
    /// - Throws: ``HostError/closed`` if the advertisement has ended, ``HostError/invalidArgument(_:)`` if it has no
    ///   train, and ``HostError/notReady`` if the controller does not send the train now.
    func handleOfTrain(of identifier: AdvertisementIdentifier) throws(HostError) -> UInt8 {
        guard let entry = entries.first(where: { $0.identifier == identifier }), !entry.isEnding else { throw .closed }
        guard entry.configuration.periodic != nil else {
            throw .invalidArgument("the advertisement has no periodic train")
        }
        guard entry.isPeriodicOn else { throw .notReady }
        return entry.handle
    }

    /// The train of an advertisement that runs in the controller; nil if it does not run now.
    func runningTrain(of identifier: AdvertisementIdentifier) -> RunningTrain? {
        guard let entry = entries.first(where: { $0.identifier == identifier && !$0.isEnding }), entry.isPeriodicOn
        else { return nil }
        return RunningTrain(advertisingHandle: entry.handle, phy: entry.configuration.phys.secondary)
    }

    /// A subevent of an advertisement's train.
    ///
    /// - Throws: ``HostError/invalidArgument(_:)`` if there is no such subevent, and the errors of
    ///   ``handleOfTrain(of:)``.
    func subevent(_ subevent: UInt8, of identifier: AdvertisementIdentifier) throws(HostError) -> SubeventTarget {
        _ = try handleOfTrain(of: identifier)
        let count = entries.first { $0.identifier == identifier }?.configuration.periodic?.subevents?.count ?? 0
        guard subevent < count else {
            throw .invalidArgument("the train has \(count) subevents, so none with number \(subevent)")
        }
        return SubeventTarget(advertisement: identifier, number: subevent)
    }
}

extension SynchronizationPlan {
    /// Whether the controller receives a train.
    var hasTrain: Bool { entries.contains { if case .established = $0.state { true } else { false } } }

    /// The synchronization that has a handle of the controller.
    func identifier(of handle: UInt16) -> SynchronizationIdentifier? {
        entries.first { $0.state == .established(handle) }?.identifier
    }

    /// The synchronization with a train.
    func identifier(of train: PeriodicTrainRequest.Train) -> SynchronizationIdentifier? {
        entries.first { $0.request.train == train }?.identifier
    }
}
