import BLEHCI
import BluetoothTypes

extension CommandTable {
    /// Adds periodic advertising with responses (Vol 4, Part E, 7.8.61 and 7.8.125 to 7.8.127).
    mutating func addPeriodicResponses() {
        answer(
            LESetPeriodicAdvertisingParametersV2.self,
            of: .extended,
            needs: [.periodicAdvertising, .periodicAdvertisingWithResponsesAdvertiser]
        ) { controller, command in
            let status = controller.setPeriodicAdvertisingParameters(PeriodicParameters(command))
            return status == .success
                ? .success(.init(advertisingHandle: command.advertisingHandle)) : .failure(status)
        }
        answer(
            LESetPeriodicAdvertisingSubeventData.self,
            of: .extended,
            needs: [.periodicAdvertising, .periodicAdvertisingWithResponsesAdvertiser]
        ) { controller, command in
            let status = controller.setSubeventData(command)
            return status == .success
                ? .success(.init(advertisingHandle: command.advertisingHandle)) : .failure(status)
        }
        answer(
            LESetPeriodicSyncSubevent.self,
            needs: [.periodicAdvertising, .periodicAdvertisingWithResponsesScanner]
        ) { controller, command in
            let status = controller.chooseSubevents(command)
            return status == .success ? .success(.init(syncHandle: command.syncHandle)) : .failure(status)
        }
        answer(
            LESetPeriodicAdvertisingResponseData.self,
            needs: [.periodicAdvertising, .periodicAdvertisingWithResponsesScanner]
        ) { controller, command in
            let status = controller.setResponseData(command)
            return status == .success ? .success(.init(syncHandle: command.syncHandle)) : .failure(status)
        }
    }
}

extension VirtualController {
    // MARK: The advertiser

    fileprivate func setSubeventData(_ command: LESetPeriodicAdvertisingSubeventData) -> HCIErrorCode {
        withSet(command.advertisingHandle) { set in
            guard let train = set.train, let subevents = train.subevents else { return .commandDisallowed }
            guard !command.subevents.isEmpty else { return .invalidHCICommandParameters }
            let room = subevents.responseSlotCount == 0 ? subevents.intervalDuration : subevents.start(ofSlot: 0)
            for content in command.subevents {
                guard content.subevent < subevents.count,
                    Int(content.responseSlotStart) + Int(content.responseSlotCount) <= Int(subevents.responseSlotCount)
                else { return .invalidHCICommandParameters }
                let octets = content.data.bytes.count + 10
                let time = AirTime.microseconds(byteCount: octets, phy: set.parameters.secondaryPHY, isEncrypted: false)
                guard .microseconds(time) <= room else { return .packetTooLong }
            }
            for content in command.subevents { train.subeventData[content.subevent] = content }
            return .success
        }
    }

    // MARK: The responder

    /// Whether the controller can receive a train: one with subevents needs a feature.
    func canReceive(_ train: PeriodicTrain) -> Bool {
        train.subevents == nil || configuration.features.contains(.periodicAdvertisingWithResponsesScanner)
    }

    /// Finds the synchronization with a handle, and its train, which must have subevents.
    private func syncWithSubevents(
        _ handle: UInt16
    ) -> Result<(PeriodicSync, PeriodicTrain, SubeventTiming), HCIErrorCode> {
        guard handle <= 0x0EFF else { return .failure(.invalidHCICommandParameters) }
        guard let sync = synchronizer.syncs.first(where: { $0.handle == handle }), let train = sync.train else {
            return .failure(.unknownAdvertisingIdentifier)
        }
        guard let subevents = train.subevents else { return .failure(.commandDisallowed) }
        return .success((sync, train, subevents))
    }

    fileprivate func chooseSubevents(_ command: LESetPeriodicSyncSubevent) -> HCIErrorCode {
        switch syncWithSubevents(command.syncHandle) {
        case .failure(let error): return error
        case .success((let sync, let train, let subevents)):
            guard !command.subevents.isEmpty, command.subevents.allSatisfy({ $0 < subevents.count }),
                Set(command.subevents).count == command.subevents.count,
                PeriodicAdvertisingProperties.includeTXPower.isSuperset(of: command.periodicAdvertisingProperties)
            else { return .invalidHCICommandParameters }
            sync.responseProperties = command.periodicAdvertisingProperties
            train.choose(command.subevents, for: sync)
            return .success
        }
    }

    fileprivate func setResponseData(_ command: LESetPeriodicAdvertisingResponseData) -> HCIErrorCode {
        switch syncWithSubevents(command.syncHandle) {
        case .failure(let error): return error
        case .success((let sync, let train, let subevents)):
            guard command.requestSubevent < subevents.count, command.responseSubevent < subevents.count,
                command.responseSlot < subevents.responseSlotCount
            else { return .invalidHCICommandParameters }
            let octets = command.responseData.bytes.count + 10
            let time = AirTime.microseconds(byteCount: octets, phy: .le2M, isEncrypted: false)
            guard time <= 125 * Int(subevents.responseSlotSpacing) else {
                return .packetTooLong
            }
            // An earlier subevent is one of the next event.
            let isNext = command.responseSubevent < command.requestSubevent
            let event = command.requestEvent &+ (isNext ? 1 : 0)
            let distance = Int(Int16(bitPattern: event &- train.eventCounter))
            guard distance <= 1 else { return .invalidHCICommandParameters }
            let start =
                train.eventStart + train.intervalDuration * distance + subevents.start(of: command.responseSubevent)
                + subevents.start(ofSlot: command.responseSlot)
            guard start > air.now else { return .tooLate }
            train.responses[command.responseSubevent, default: []].removeAll { $0.sync === sync && $0.event == event }
            train.responses[command.responseSubevent, default: []].append(
                SubeventResponse(
                    sync: sync,
                    event: event,
                    slot: command.responseSlot,
                    data: command.responseData.bytes
                )
            )
            return .success
        }
    }
}

extension PeriodicSync {
    /// The subevents that the controller listens to. Before the host has chosen some, the first one keeps the timing.
    var heardSubevents: [UInt8] { subevents ?? [0] }

    /// Receives a subevent of the train, as far as it gets through.
    func hear(_ packet: PeriodicPacket, from sender: VirtualController, _ parameters: AdvertisingSet.Parameters) {
        guard let receiver else { return }
        var packet = packet
        if receiver.understands(packet.phy), receiver.receives(from: sender, parameters, phy: packet.phy) {
            lastHeard = receiver.air.now
            packet.received = packet.data.count
            packet.rssi = receiver.rssi(from: sender, parameters)
        } else {
            packet.data = []
            packet.power = 127
        }
        deliver(packet, from: sender)
    }
}
