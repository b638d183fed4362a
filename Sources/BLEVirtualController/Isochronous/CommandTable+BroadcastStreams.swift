import BLEHCI
import BluetoothTypes

extension CommandTable {
    /// Adds the commands of broadcast isochronous groups (Vol 4, Part E, 7.8.103 to 7.8.107).
    mutating func addBroadcastStreams() {
        begin(LECreateBIG.self, needs: .isochronousBroadcaster) { $0.createBroadcast($1) }
        begin(LETerminateBIG.self, needs: .isochronousBroadcaster) { controller, command in
            guard let group = controller.isochronous.broadcasts[command.bigHandle], !group.isEnding else {
                return .refused(.unknownAdvertisingIdentifier)
            }
            return .begun { group.terminate() }
        }
        begin(LEBIGCreateSync.self, needs: .synchronizedReceiver) { $0.receiveBroadcast($1) }
        answer(LEBIGTerminateSync.self, needs: .synchronizedReceiver) { controller, command in
            guard let reception = controller.isochronous.receptions[command.bigHandle], !reception.isOver else {
                return .failure(.unknownAdvertisingIdentifier)
            }
            reception.cancel()
            return .success(.init(bigHandle: command.bigHandle))
        }
    }
}

extension VirtualController {
    fileprivate func createBroadcast(_ command: LECreateBIG) -> CommandTable.Beginning {
        guard command.bigHandle <= 0xEF, (1...31).contains(command.numBIS),
            (0x0000FF...0x0FFFFF).contains(command.sduInterval),
            (1...UInt16(ISODataLoadHeader.maximumSDULength)).contains(command.maxSDU),
            (0x0005...0x0FA0).contains(command.maxTransportLatency), command.rtn <= 30, !command.phy.isEmpty
        else { return .refused(.invalidHCICommandParameters) }
        guard let index = advertiser.index(of: command.advertisingHandle), let train = advertiser.sets[index].train
        else {
            return .refused(.unknownAdvertisingIdentifier)
        }
        guard isochronous.broadcasts[command.bigHandle] == nil, isochronous.receptions[command.bigHandle] == nil,
            train.broadcast == nil
        else { return .refused(.commandDisallowed) }
        let phys = command.phy.intersection(configuration.phys)
        let sdus = SDUTiming(command.sduInterval, command.maxSDU, isFramed: command.framing != .unframed)
        guard !phys.isEmpty, let timing = BroadcastGroup.timing(for: command, sdus) else {
            return .refused(.unsupportedFeatureOrParameterValue)
        }
        guard let handles = isochronous.freeHandles(Int(command.numBIS)) else {
            return .refused(.connectionRejectedDueToLimitedResources)
        }
        let group = BroadcastGroup(
            command,
            timing,
            sdus,
            phy: PHYChoice.fastest(of: phys),
            controller: self,
            handles: handles
        )
        isochronous.broadcasts[command.bigHandle] = group
        for stream in group.streams { isochronous.broadcastStreams[stream.handle] = stream }
        train.broadcast = group
        return .begun { [self] in schedule(after: group.interval) { [weak group] _ in group?.begin() } }
    }

    fileprivate func receiveBroadcast(_ command: LEBIGCreateSync) -> CommandTable.Beginning {
        guard command.bigHandle <= 0xEF, !command.streams.isEmpty,
            command.streams.allSatisfy({ (1...31).contains($0) }),
            zip(command.streams, command.streams.dropFirst()).allSatisfy({ $0 < $1 }), command.mse <= 31,
            (0x000A...0x4000).contains(command.bigSyncTimeout)
        else { return .refused(.invalidHCICommandParameters) }
        guard let sync = synchronizer.syncs.first(where: { $0.handle == command.syncHandle }) else {
            return .refused(.unknownAdvertisingIdentifier)
        }
        guard isochronous.broadcasts[command.bigHandle] == nil, isochronous.receptions[command.bigHandle] == nil,
            !isochronous.receptions.values.contains(where: \.isPending)
        else { return .refused(.commandDisallowed) }
        let reception = BroadcastReception(command, on: sync, controller: self)
        isochronous.receptions[command.bigHandle] = reception
        return .begun { reception.search() }
    }

    /// Ends all broadcast groups without a report, because the controller is reset.
    func abandonBroadcasts() {
        for group in isochronous.broadcasts.values { group.abandon() }
        for reception in isochronous.receptions.values { reception.abandon() }
    }
}
