import BLEHCI
import BluetoothTypes

/// A synchronization that a connected device has transferred.
package struct ReceivedSyncTransfer: Sendable {
    /// Its last event is the end with ``HostError/timedOut`` when the train is lost.
    package let synchronization: SynchronizationIdentifier
    /// The device that has transferred it.
    package let peer: DeviceAddress
    package let link: LinkIdentifier
    /// The value that the device's app has chosen.
    package let serviceData: UInt16
    /// The train, by its advertiser and its advertising set.
    package let request: PeriodicTrainRequest
    package let train: PeriodicTrain
}

/// A synchronization that a connected device has transferred, and that failed.
public struct FailedSyncTransfer: Hashable, Sendable {
    /// The device that has transferred the synchronization.
    public let peer: DeviceAddress
    /// The value that the device's app has chosen.
    public let serviceData: UInt16
    /// Why this controller does not receive the train.
    public let status: HCIErrorCode
}

/// An event of a reception of transferred synchronizations.
package enum SyncTransferEvent: Sendable {
    /// The controller accepts transfers from now on.
    case ready
    case received(ReceivedSyncTransfer)
    case failed(FailedSyncTransfer)
    case ended(HostError)
}

/// Handles an event of a reception on the loop. For a received synchronization it returns the closure for its events;
/// nil ends the synchronization.
package typealias SyncTransferObserver =
    @Sendable (SyncTransferEvent) -> (@Sendable (SynchronizationEvent) -> Void)?

/// The train whose synchronization is transferred to a connected device.
package enum TransferredTrainSource: Sendable {
    /// A train that this host receives.
    case synchronization(PeriodicTrainRequest)
    /// The train of an advertisement of this host.
    case advertisement(AdvertisementIdentifier)
}

// The transfer of synchronizations between connected devices (Vol 6, Part B, 5.1.13).
extension BluetoothHost {
    // MARK: Transferring

    /// Transfers the synchronization with a train to the peer of a link.
    ///
    /// A controller transfers nothing to a peer that has not reported the feature (Vol 4, Part E, 7.8.89). So the
    /// peer's features are read first, unless they are known. Cancelling the task ends the wait for them.
    ///
    /// - Parameter serviceData: a value for the peer's app.
    package func transfer(
        _ source: TransferredTrainSource,
        serviceData: UInt16,
        on identifier: LinkIdentifier
    ) async throws(HostError) {
        let information = try usableInformation()
        let isSupported =
            switch source {
            case .synchronization: information.canTransferSynchronizations
            case .advertisement: information.canTransferTrains
            }
        guard isSupported else { throw .notSupported("this controller does not transfer synchronizations") }
        if try link(identifier).control.peerFeatures == nil { try await request(.features, of: identifier) }
        let link = try link(identifier)
        guard link.control.peerFeatures?.contains(.periodicAdvertisingSyncTransferRecipient) == true else {
            throw .notSupported("\(link.peer) does not accept transferred synchronizations")
        }
        switch source {
        case .synchronization(let request):
            guard let handle = gap.synchronizing.handle(of: request.train) else {
                throw .invalidArgument("the train of \(request.address) with SID \(request.sid) is not received now")
            }
            try await transfer(
                LEPeriodicAdvertisingSyncTransfer(
                    connectionHandle: link.handle,
                    serviceData: serviceData,
                    syncHandle: handle
                ),
                on: identifier
            )
        case .advertisement(let advertisement):
            try await transfer(
                LEPeriodicAdvertisingSetInfoTransfer(
                    connectionHandle: link.handle,
                    serviceData: serviceData,
                    advertisingHandle: try gap.advertising.handleOfTrain(of: advertisement)
                ),
                on: identifier
            )
        }
    }

    private func transfer(_ command: some BLEHCI.Command, on identifier: LinkIdentifier) async throws(HostError) {
        do throws(CommandFailure) {
            try await perform(command)
        } catch {
            throw linkError(error, on: identifier)
        }
    }

    // MARK: Receiving

    /// Starts to receive the synchronizations that connected devices transfer, until it is stopped, the link has ended,
    /// or the host is closed.
    ///
    /// - Parameters:
    ///   - identifier: the link whose peer may transfer synchronizations; nil for all links, also later ones.
    ///   - observer: called on the loop with each event.
    package func startReception(
        _ parameters: PeriodicSyncTransferParameters,
        on identifier: LinkIdentifier?,
        observer: @escaping SyncTransferObserver
    ) -> SyncTransferReceptionIdentifier {
        let reception = SyncTransferReceptionIdentifier(value: observers.makeIdentifier())
        do throws(HostError) {
            let information = try latestInformation()
            if let identifier { _ = try link(identifier) }
            let receiver = SyncTransferReception.Receiver(
                identifier: reception,
                link: identifier,
                parameters: parameters
            )
            let handles = links.values.map(\.handle)
            let effects = try gap.startReception(receiver, existing: handles, on: information, gapContext)
            observers.receptions[reception] = observer
            perform(effects)
        } catch {
            deliver(.receptionEnd(observer, error))
        }
        endInput()
        return reception
    }

    package func stopReception(_ reception: SyncTransferReceptionIdentifier) {
        // Code of the app that runs at the release may start or stop a reception.
        let removed = observers.receptions.removeValue(forKey: reception)
        perform(gap.stopReception(reception, gapContext))
        withExtendedLifetime(removed) {}
    }

    func endReception(_ reception: SyncTransferReceptionIdentifier, _ error: HostError) {
        guard let observer = observers.receptions.removeValue(forKey: reception) else { return }
        deliver(.receptionEnd(observer, error))
    }

    func syncTransferReceived(_ event: LEPeriodicAdvertisingSyncTransferReceivedV2) {
        let identifier = SynchronizationIdentifier(value: observers.makeIdentifier())
        perform(gap.transferReceived(event, as: identifier, gapContext))
    }

    func transferred(
        _ synchronization: TransferredSynchronization,
        to reception: SyncTransferReceptionIdentifier
    ) {
        // The reception's observer names the closure for the events. Until then they have none.
        observers.synchronizations[synchronization.identifier] = { _ in }
        // Another device may use the address of a bonded peer.
        guard let link = links[synchronization.link], !link.session.security.isIdentityUnverified else {
            return stopSynchronization(synchronization.identifier)
        }
        let transfer = ReceivedSyncTransfer(
            synchronization: synchronization.identifier,
            peer: link.peer,
            link: link.identifier,
            serviceData: synchronization.serviceData,
            request: synchronization.request,
            train: synchronization.train
        )
        deliver(.transferred(reception, transfer))
    }

    func report(_ transfer: ReceivedSyncTransfer, to reception: SyncTransferReceptionIdentifier) {
        guard observers.synchronizations[transfer.synchronization] != nil else { return }
        guard let deliver = observers.receptions[reception]?(.received(transfer)) else {
            return stopSynchronization(transfer.synchronization)
        }
        guard observers.synchronizations[transfer.synchronization] != nil else { return }
        observers.synchronizations[transfer.synchronization] = deliver
    }

    func transferFailed(
        _ link: ConnectionHandle,
        _ serviceData: UInt16,
        _ status: HCIErrorCode,
        to reception: SyncTransferReceptionIdentifier
    ) {
        guard let link = links[link], !link.session.security.isIdentityUnverified else { return }
        let transfer = FailedSyncTransfer(peer: link.peer, serviceData: serviceData, status: status)
        deliver(.transferFailed(reception, transfer))
    }
}
