import BLEHCI
import BluetoothTypes

/// What the host has chosen for the synchronizations that a peer transfers (Vol 4, Part E, 7.8.91).
struct SyncTransferSettings {
    var mode = PeriodicAdvertisingSyncTransferMode.ignore
    /// In units of 10 ms.
    var syncTimeout: UInt16 = 0x000A
}

/// A synchronization in an LL_PERIODIC_SYNC_IND PDU (Vol 6, Part B, 2.4.2).
struct SyncTransfer: Hashable {
    let serviceData: UInt16
    /// The advertiser's address on the air.
    let address: DeviceAddress
    let sid: UInt8
    /// The timing of the train.
    let train: PeriodicTrain
}

/// A synchronization that a peer has transferred, until the first event of its train is received.
struct IncomingTransfer {
    let sync: PeriodicSync
    let handle: ConnectionHandle
    let serviceData: UInt16
}

extension CommandTable {
    /// Adds the transfer of synchronizations (Vol 4, Part E, 7.8.89 to 7.8.92).
    mutating func addSyncTransfer() {
        answer(
            LEPeriodicAdvertisingSyncTransfer.self,
            needs: .periodicAdvertisingSyncTransferSender
        ) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard command.syncHandle <= 0x0EFF else { return .failure(.invalidHCICommandParameters) }
            guard let sync = controller.synchronizer.syncs.first(where: { $0.handle == command.syncHandle }),
                let train = sync.train
            else { return .failure(.unknownAdvertisingIdentifier) }
            let transfer = SyncTransfer(
                serviceData: command.serviceData,
                address: sync.address,
                sid: sync.sid,
                train: train
            )
            return end.transfer(transfer).map { .init(connectionHandle: command.connectionHandle) }
        }
        answer(
            LEPeriodicAdvertisingSetInfoTransfer.self,
            needs: .periodicAdvertisingSyncTransferSender
        ) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard let index = controller.advertiser.index(of: command.advertisingHandle) else {
                return .failure(.unknownAdvertisingIdentifier)
            }
            let set = controller.advertiser.sets[index]
            guard let train = set.train, train.isRunning, let address = controller.ownAddress(of: set) else {
                return .failure(.commandDisallowed)
            }
            let transfer = SyncTransfer(
                serviceData: command.serviceData,
                address: address.address,
                sid: set.parameters.sid,
                train: train
            )
            return end.transfer(transfer).map { .init(connectionHandle: command.connectionHandle) }
        }
        answer(
            LESetPeriodicAdvertisingSyncTransferParameters.self,
            needs: .periodicAdvertisingSyncTransferRecipient
        ) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            switch CommandTable.settings(command.mode, skip: command.skip, command.syncTimeout) {
            case .success(let settings):
                end.syncTransfer = settings
                return .success(.init(connectionHandle: command.connectionHandle))
            case .failure(let error): return .failure(error)
            }
        }
        carryOut(
            LESetDefaultPeriodicAdvertisingSyncTransferParameters.self,
            needs: .periodicAdvertisingSyncTransferRecipient
        ) { controller, command in
            switch CommandTable.settings(command.mode, skip: command.skip, command.syncTimeout) {
            case .success(let settings):
                controller.linkDefaults.syncTransfer = settings
                return .success
            case .failure(let error): return error
            }
        }
    }

    private static func settings(
        _ mode: PeriodicAdvertisingSyncTransferMode,
        skip: UInt16,
        _ timeout: UInt16
    ) -> Result<SyncTransferSettings, HCIErrorCode> {
        guard skip <= 0x01F3, (0x000A...0x4000).contains(timeout) else { return .failure(.invalidHCICommandParameters) }
        // Trains have no ADI field.
        guard mode != .duplicateFiltering else { return .failure(.unsupportedFeatureOrParameterValue) }
        return .success(SyncTransferSettings(mode: mode, syncTimeout: timeout))
    }
}

extension LinkEnd {
    /// Sends the peer a synchronization. The peer must have reported that it accepts some (Vol 4, Part E, 7.8.89).
    fileprivate func transfer(_ transfer: SyncTransfer) -> Result<Void, HCIErrorCode> {
        guard peerFeatures?.contains(.periodicAdvertisingSyncTransferRecipient) == true else {
            return .failure(.unsupportedRemoteFeature)
        }
        guard canBegin else { return .failure(.controllerBusy) }
        begin(.message(.periodicSync(transfer)))
        return .success(())
    }

    /// Handles a synchronization of the peer (Vol 6, Part B, 5.1.13). One with a train that the controller already
    /// receives is ignored.
    func receive(_ transfer: SyncTransfer) {
        guard controller.configuration.features.contains(.periodicAdvertisingSyncTransferRecipient),
            syncTransfer.mode != .ignore, controller.canReceive(transfer.train),
            let identity = controller.identify(transfer.address),
            !controller.synchronizer.isSynchronized(with: identity.address.deviceAddress, transfer.sid),
            let syncHandle = controller.synchronizer.freeHandle
        else { return }
        let sync = PeriodicSync(
            handle: syncHandle,
            advertiser: identity.address,
            address: transfer.address,
            sid: transfer.sid,
            isReporting: syncTransfer.mode != .reportingDisabled,
            timeout: .milliseconds(10 * Int(syncTransfer.syncTimeout)),
            receiver: controller,
            train: transfer.train
        )
        controller.acquire(IncomingTransfer(sync: sync, handle: handle, serviceData: transfer.serviceData))
    }
}

extension VirtualController {
    /// Waits for an event of a transferred train. Synchronization fails if none of six is received (Vol 6, Part B,
    /// 4.4.5).
    fileprivate func acquire(_ transfer: IncomingTransfer) {
        guard let train = transfer.sync.train else { return }
        synchronizer.transfers.append(transfer)
        train.add(transfer.sync)
        schedule(after: train.intervalDuration * 6 + .milliseconds(1)) { controller in
            guard let transfer = controller.takeTransfer(transfer.sync) else { return }
            transfer.sync.leaveTrain()
            controller.tellTransferred(transfer, nil)
        }
    }

    /// Removes a synchronization from those of which no event has been received.
    func takeTransfer(_ sync: PeriodicSync) -> IncomingTransfer? {
        synchronizer.transfers.firstIndex { $0.sync === sync }.map { synchronizer.transfers.remove(at: $0) }
    }

    /// Reports a transferred synchronization, or that it has failed, in the newest version of the event that the host
    /// wants.
    ///
    /// - Parameter packet: the first received event of the train; nil if none was received.
    func tellTransferred(_ transfer: IncomingTransfer, _ packet: PeriodicPacket?) {
        let status = packet == nil ? HCIErrorCode.connectionFailedToBeEstablished : .success
        guard host.wants(subevent: LEPeriodicAdvertisingSyncTransferReceivedV2.subeventCode) else {
            return tellLE(
                LEPeriodicAdvertisingSyncTransferReceived(
                    status: status,
                    connectionHandle: transfer.handle,
                    serviceData: transfer.serviceData,
                    syncHandle: transfer.sync.handle,
                    advertisingSID: transfer.sync.sid,
                    advertiserAddress: transfer.sync.advertiser,
                    advertiserPHY: packet?.phy ?? .le1M,
                    periodicAdvertisingInterval: packet?.interval ?? 0,
                    advertiserClockAccuracy: 0
                )
            )
        }
        tellLE(
            LEPeriodicAdvertisingSyncTransferReceivedV2(
                status: status,
                connectionHandle: transfer.handle,
                serviceData: transfer.serviceData,
                syncHandle: transfer.sync.handle,
                advertisingSID: transfer.sync.sid,
                advertiserAddress: transfer.sync.advertiser,
                advertiserPHY: packet?.phy ?? .le1M,
                periodicAdvertisingInterval: packet?.interval ?? 0,
                advertiserClockAccuracy: 0,
                numSubevents: packet?.subevents?.count ?? 0,
                subeventInterval: packet?.subevents?.interval ?? 0,
                responseSlotDelay: packet?.subevents?.responseSlotDelay ?? 0,
                responseSlotSpacing: packet?.subevents?.responseSlotSpacing ?? 0
            )
        )
    }
}
