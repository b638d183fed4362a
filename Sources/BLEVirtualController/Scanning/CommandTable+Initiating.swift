import BLEHCI
import BluetoothTypes

extension CommandTable {
    /// Adds the commands for making connections (Vol 4, Part E, 7.8.12, 7.8.13 and 7.8.66).
    mutating func addInitiating() {
        begin(LECreateConnection.self, of: .legacy) { controller, command in
            let isByList = command.initiatorFilterPolicy == .filterAcceptList
            guard isByList || command.peerAddress.type.rawValue <= 0x03 else {
                return .refused(.invalidHCICommandParameters)
            }
            let parameters = Initiation.PHYParameters(command)
            guard parameters.areValid(scanIntervalUpTo: 0x4000) else { return .refused(.invalidHCICommandParameters) }
            return controller.initiate(
                Initiation(
                    isExtended: false,
                    filterPolicy: command.initiatorFilterPolicy,
                    ownAddressType: command.ownAddressType,
                    peer: command.peerAddress.deviceAddress ?? DeviceAddress(0, isRandom: false),
                    le1M: parameters,
                    le2M: nil,
                    leCoded: nil,
                    start: controller.air.now
                )
            )
        }
        carryOut(LECreateConnectionCancel.self) { controller, _ in
            guard controller.initiator != nil else { return .commandDisallowed }
            controller.initiator = nil
            controller.updateListening()
            // The answer to the command is sent first.
            controller.schedule { $0.tellNotConnected(.unknownConnectionIdentifier, role: .central) }
            return .success
        }
        begin(LEExtendedCreateConnection.self, of: .extended) { controller, command in
            controller.initiate(command, inSubevent: nil)
        }
        begin(
            LEExtendedCreateConnectionV2.self,
            of: .extended,
            needs: [.periodicAdvertising, .periodicAdvertisingWithResponsesAdvertiser]
        ) { controller, command in
            let none = LEExtendedCreateConnectionV2.none
            guard command.advertisingHandle != none || command.subevent != none else {
                return controller.initiate(command.connection, inSubevent: nil)
            }
            guard command.advertisingHandle != none, command.subevent != none else {
                return .refused(.invalidHCICommandParameters)
            }
            guard let index = controller.advertiser.index(of: command.advertisingHandle) else {
                return .refused(.unknownAdvertisingIdentifier)
            }
            guard let train = controller.advertiser.sets[index].train, train.isRunning, let subevents = train.subevents
            else { return .refused(.commandDisallowed) }
            guard command.subevent < subevents.count else { return .refused(.invalidHCICommandParameters) }
            let place = Initiation.SubeventPlace(
                advertisingHandle: command.advertisingHandle,
                subevent: command.subevent
            )
            return controller.initiate(command.connection, inSubevent: place)
        }
    }
}

extension Initiation.PHYParameters {
    fileprivate init(_ command: LECreateConnection) {
        self.init(
            scanInterval: command.leScanInterval,
            scanWindow: command.leScanWindow,
            connectionIntervalMin: command.connectionIntervalMin,
            connectionIntervalMax: command.connectionIntervalMax,
            maxLatency: command.maxLatency,
            supervisionTimeout: command.supervisionTimeout,
            minCELength: command.minCELength,
            maxCELength: command.maxCELength
        )
    }
}

extension VirtualController {
    fileprivate func initiate(
        _ command: LEExtendedCreateConnection,
        inSubevent subevent: Initiation.SubeventPlace?
    ) -> CommandTable.Beginning {
        // The parameters of scanning and the filter policy are ignored for a request in a subevent.
        let parameters = [command.le1M, command.le2M, command.leCoded].compactMap(\.self)
        let areValid = parameters.allSatisfy {
            subevent == nil ? $0.areValid(scanIntervalUpTo: 0xFFFF) : $0.areValidForConnection
        }
        guard areValid else { return .refused(.invalidHCICommandParameters) }
        guard subevent != nil || command.le1M != nil || command.leCoded != nil else {
            return .refused(.invalidHCICommandParameters)
        }
        guard command.le2M == nil || understands(.le2M), command.leCoded == nil || understands(.leCoded) else {
            return .refused(.unsupportedFeatureOrParameterValue)
        }
        return initiate(
            Initiation(
                isExtended: true,
                filterPolicy: subevent == nil ? command.initiatorFilterPolicy : .peerAddress,
                ownAddressType: command.ownAddressType,
                peer: command.peerAddress,
                le1M: command.le1M,
                le2M: command.le2M,
                leCoded: command.leCoded,
                start: air.now,
                subevent: subevent
            )
        )
    }

    fileprivate func initiate(_ initiation: Initiation) -> CommandTable.Beginning {
        guard initiator == nil else { return .refused(.commandDisallowed) }
        let isByList = initiation.filterPolicy == .filterAcceptList
        // The controller does not support decision PDUs.
        guard isByList || initiation.filterPolicy == .peerAddress else {
            return .refused(.unsupportedFeatureOrParameterValue)
        }
        let entry = isByList ? nil : resolvingList.index(of: initiation.peer)
        guard ownAddress(initiation.ownAddressType, random: randomAddress, towards: entry) != nil else {
            return .refused(.invalidHCICommandParameters)
        }
        if !isByList {
            let identity = PeerAddress(resolved: initiation.peer)
            guard !isConnected(to: PeerAddress(initiation.peer)), !isConnected(to: identity) else {
                return .refused(.connectionAlreadyExists)
            }
        }
        guard links.contains(where: { $0 == nil }) else { return .refused(.connectionLimitExceeded) }
        initiator = initiation
        updateListening()
        return .begun {}
    }
}
