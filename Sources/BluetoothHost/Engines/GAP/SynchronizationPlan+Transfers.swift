import BLEHCI
import BluetoothTypes

// The transfer of synchronizations between connected devices (Vol 6, Part B, 5.1.13).
extension SynchronizationPlan {
    /// The handle with which the controller reports a train; nil if it does not receive the train.
    func handle(of train: PeriodicTrainRequest.Train) -> UInt16? {
        for entry in entries where entry.request.train == train {
            if case .established(let handle) = entry.state { return handle }
        }
        return nil
    }

    /// Handles a synchronization that a connected device has transferred, or the failure to synchronize (Vol 4, Part E,
    /// 7.7.65.24). If an app waits for this train already, its own synchronization receives it, unless the train was
    /// transferred without the subevents that the app wants: then the search continues.
    ///
    /// - Parameter identifier: the identifier of the synchronization, if it becomes one of its own.
    mutating func transferReceived(
        _ event: LEPeriodicAdvertisingSyncTransferReceivedV2,
        as identifier: SynchronizationIdentifier
    ) -> [SynchronizationEffect] {
        let receiver = reception.receiver(for: event.connectionHandle)
        guard event.status == .success else {
            return receiver.map { [failed(event, event.status, $0)] } ?? []
        }
        // A controller must not give the same handle to two trains.
        let isKnown = entries.contains { $0.state == .established(event.syncHandle) }
        guard !isKnown else { return [] }
        let train = PeriodicTrain(event)
        guard let address = event.advertiserAddress.deviceAddress, event.advertisingSID <= 0x0F else {
            terminate(event.syncHandle)
            return []
        }
        let request = PeriodicTrainRequest(
            address: address,
            sid: event.advertisingSID,
            skip: receiver?.parameters.skip ?? 0,
            timeout: receiver?.parameters.timeout ?? .seconds(10),
            subevents: receiver?.parameters.subevents ?? [],
            respondsWithTXPower: receiver?.parameters.respondsWithTXPower ?? false
        )
        if let index = entries.firstIndex(where: { $0.request.train == request.train }) {
            return completed(index, event.syncHandle, train)
        }
        guard let receiver, entries.count < Self.limit else {
            terminate(event.syncHandle)
            return receiver.map { [failed(event, .memoryCapacityExceeded, $0)] } ?? []
        }
        entries.append(Entry(identifier: identifier, request: request, isTransferred: true))
        if established(entries.count - 1, event.syncHandle, train) != [.synchronized(identifier, train)] {
            return [failed(event, .unsupportedFeatureOrParameterValue, receiver)]
        }
        let transferred = TransferredSynchronization(
            identifier: identifier,
            link: event.connectionHandle,
            serviceData: event.serviceData,
            request: request,
            train: train
        )
        return [.transferred(receiver.identifier, transferred)]
    }

    /// Gives a transferred train to the synchronization of an app that waits for it.
    private mutating func completed(
        _ index: Int,
        _ handle: UInt16,
        _ train: PeriodicTrain
    ) -> [SynchronizationEffect] {
        guard entries[index].request.problem(with: train) == nil else {
            terminate(handle)
            return []
        }
        switch entries[index].state {
        case .established:
            terminate(handle)
            return []
        case .creating: abandonCreation(of: entries[index].identifier)
        case .waiting: break
        }
        return established(index, handle, train)
    }

    private func failed(
        _ event: LEPeriodicAdvertisingSyncTransferReceivedV2,
        _ status: HCIErrorCode,
        _ receiver: SyncTransferReception.Receiver
    ) -> SynchronizationEffect {
        .transferFailed(receiver.identifier, event.connectionHandle, serviceData: event.serviceData, status)
    }
}

extension GAPCommand {
    /// The command that tells the controller what to do with transfers.
    init(_ setting: SyncTransferReception.Setting) {
        switch setting {
        case .ofLaterLinks(let parameters):
            self.init(
                LESetDefaultPeriodicAdvertisingSyncTransferParameters(
                    mode: parameters == nil ? .ignore : .reportingEnabled,
                    skip: parameters?.skip ?? 0,
                    syncTimeout: (parameters ?? .init()).timeout.inUnits(of: .milliseconds(10))
                )
            )
        case .ofLink(let link, let parameters):
            self.init(
                LESetPeriodicAdvertisingSyncTransferParameters(
                    connectionHandle: link,
                    mode: parameters == nil ? .ignore : .reportingEnabled,
                    skip: parameters?.skip ?? 0,
                    syncTimeout: (parameters ?? .init()).timeout.inUnits(of: .milliseconds(10))
                )
            )
        }
    }
}
