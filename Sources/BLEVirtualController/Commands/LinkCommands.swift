import BLEHCI
import BluetoothTypes

extension CommandTable {
    /// Adds the commands for a link (Vol 4, Part E, 7.1, 7.5 and 7.8).
    mutating func addLinks() {
        begin(Disconnect.self) { controller, command in
            let stream = controller.isochronous.streams[command.connectionHandle]
            let end = controller.end(command.connectionHandle)
            guard stream != nil || end != nil else { return .refused(.unknownConnectionIdentifier) }
            guard CommandTable.disconnectReasons.contains(command.reason) else {
                return .refused(.invalidHCICommandParameters)
            }
            if let stream {
                switch stream.phase {
                case .established: return .begun { stream.terminate(command.reason) }
                case .creating where stream.isCentral: return .begun { stream.cancel() }
                case .creating, .idle: return .refused(.commandDisallowed)
                }
            }
            guard let end, end.terminationReason == nil else { return .refused(.commandDisallowed) }
            return .begun { end.terminate(command.reason) }
        }
        begin(ReadRemoteVersionInformation.self) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .refused(.unknownConnectionIdentifier)
            }
            return end.answer(beginning: .version)
        }
        begin(LEReadRemoteFeatures.self) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .refused(.unknownConnectionIdentifier)
            }
            return end.answer(beginning: .features)
        }
        answer(ReadRSSI.self) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            return .success(
                .init(
                    connectionHandle: command.connectionHandle,
                    rssi: end.link.rssi(at: end)
                )
            )
        }
        answer(LEReadChannelMap.self) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            return .success(.init(connectionHandle: command.connectionHandle, channelMap: end.link.channelMap))
        }
        carryOut(LESetHostChannelClassification.self) { controller, command in
            let map = command.channelMap
            // At least two channels are required (7.8.19).
            guard map.rawValue.nonzeroBitCount >= 2 else { return .invalidHCICommandParameters }
            let ends = controller.links.compactMap { $0?.end }.filter { $0.role == .central }
            guard ends.allSatisfy(\.canBegin) else { return .controllerBusy }
            controller.linkDefaults.channelMap = map
            for end in ends { end.begin(.channelMap(map)) }
            return .success
        }
    }

    /// The reasons with which a host may end a link or a stream (7.1.6).
    private static let disconnectReasons: Set<HCIErrorCode> = [
        .authenticationFailure, .remoteUserTerminatedConnection, .remoteDeviceTerminatedConnectionDueToLowResources,
        .remoteDeviceTerminatedConnectionDueToPowerOff, .unsupportedRemoteFeature, .pairingWithUnitKeyNotSupported,
        .unacceptableConnectionParameters,
    ]

    /// Adds the commands that start Link Layer control procedures (Vol 4, Part E, 7.8).
    mutating func addLinkProcedures() {
        addConnectionParameters()
        addDataLength()
        addPHYs()
    }

    private mutating func addConnectionParameters() {
        begin(LEConnectionUpdate.self) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .refused(.unknownConnectionIdentifier)
            }
            let wanted = ConnectionParameters(
                intervalMin: command.connectionIntervalMin,
                intervalMax: command.connectionIntervalMax,
                latency: command.maxLatency,
                supervisionTimeout: command.supervisionTimeout
            )
            guard wanted.areValid, wanted.fit(subrateFactor: end.link.subrate.factor),
                command.minCELength <= command.maxCELength
            else {
                return .refused(.invalidHCICommandParameters)
            }
            let hasProcedure = controller.configuration.features.contains(.connectionParametersRequestProcedure)
            guard end.role == .central || hasProcedure else { return .refused(.unsupportedRemoteFeature) }
            return end.answer(beginning: .connectionUpdate(wanted, isWantedByHost: true))
        }
        answer(
            LERemoteConnectionParameterRequestReply.self,
            needs: .connectionParametersRequestProcedure
        ) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard end.askedParameters != nil else { return .failure(.commandDisallowed) }
            let agreed = ConnectionParameters(
                intervalMin: command.intervalMin,
                intervalMax: command.intervalMax,
                latency: command.maxLatency,
                supervisionTimeout: command.timeout
            )
            guard agreed.areValid, command.minCELength <= command.maxCELength else {
                return .failure(.invalidHCICommandParameters)
            }
            end.answer(agreed)
            return .success(.init(connectionHandle: command.connectionHandle))
        }
        answer(
            LERemoteConnectionParameterRequestNegativeReply.self,
            needs: .connectionParametersRequestProcedure
        ) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard end.askedParameters != nil else { return .failure(.commandDisallowed) }
            end.refuseParameters(command.reason)
            return .success(.init(connectionHandle: command.connectionHandle))
        }
    }

    private mutating func addDataLength() {
        answer(LESetDataLength.self, needs: .dataPacketLengthExtension) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard CommandTable.isDataLength(octets: command.txOctets, time: command.txTime) else {
                return .failure(.invalidHCICommandParameters)
            }
            guard end.canBegin else { return .failure(.controllerBusy) }
            let maximum = controller.configuration.maximumDataLength
            end.transmitLength.maxTXOctets = min(command.txOctets, maximum.maxTXOctets)
            end.transmitLength.maxTXTime = min(command.txTime, maximum.maxTXTime)
            end.begin(.dataLength)
            return .success(.init(connectionHandle: command.connectionHandle))
        }
        answer(LEReadSuggestedDefaultDataLength.self, needs: .dataPacketLengthExtension) { controller, _ in
            .success(
                .init(
                    suggestedMaxTXOctets: controller.linkDefaults.suggestedTXOctets,
                    suggestedMaxTXTime: controller.linkDefaults.suggestedTXTime
                )
            )
        }
        carryOut(LEWriteSuggestedDefaultDataLength.self, needs: .dataPacketLengthExtension) { controller, command in
            guard CommandTable.isDataLength(octets: command.suggestedMaxTXOctets, time: command.suggestedMaxTXTime)
            else {
                return .invalidHCICommandParameters
            }
            controller.linkDefaults.suggestedTXOctets = command.suggestedMaxTXOctets
            controller.linkDefaults.suggestedTXTime = command.suggestedMaxTXTime
            return .success
        }
        answer(LEReadMaximumDataLength.self, needs: .dataPacketLengthExtension) { controller, _ in
            let maximum = controller.configuration.maximumDataLength
            return .success(
                .init(
                    supportedMaxTXOctets: maximum.maxTXOctets,
                    supportedMaxTXTime: maximum.maxTXTime,
                    supportedMaxRXOctets: maximum.maxRXOctets,
                    supportedMaxRXTime: maximum.maxRXTime
                )
            )
        }
    }

    /// Whether the values are in the ranges of 7.8.33.
    private static func isDataLength(octets: UInt16, time: UInt16) -> Bool {
        (0x001B...0x00FB).contains(octets) && (0x0148...0x4290).contains(time)
    }

    private mutating func addPHYs() {
        answer(LEReadPHY.self, needs: .le2MPHY) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            return .success(
                .init(
                    connectionHandle: command.connectionHandle,
                    txPHY: end.link.phy(from: end),
                    rxPHY: end.link.phy(from: end.other)
                )
            )
        }
        carryOut(LESetDefaultPHY.self, needs: .le2MPHY) { controller, command in
            switch PHYChoice.make(command.allPHYs, command.txPHYs, command.rxPHYs, of: controller.configuration) {
            case .success(let choice):
                controller.linkDefaults.phys = choice
                return .success
            case .failure(let error): return error
            }
        }
        begin(LESetPHY.self, needs: .le2MPHY) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .refused(.unknownConnectionIdentifier)
            }
            switch PHYChoice.make(command.allPHYs, command.txPHYs, command.rxPHYs, of: controller.configuration) {
            case .success(let choice):
                guard end.canBegin else { return .refused(.controllerBusy) }
                return .begun {
                    end.prefersS2Coding = command.phyOptions == .preferS2Coding
                    end.preferredPHYs = choice
                    end.begin(.phys(choice, isWantedByHost: true))
                }
            case .failure(let error): return .refused(error)
            }
        }
    }
}

extension ConnectionParameters {
    /// Whether the supervision timeout is long enough for a link with this subrate factor. The present factor counts,
    /// although another interval ends subrating (Vol 4, Part E, 7.8.18).
    fileprivate func fit(subrateFactor: UInt16) -> Bool {
        Int(supervisionTimeout) * 4 > (1 + Int(latency)) * Int(subrateFactor) * Int(intervalMax)
    }
}

extension PHYChoice {
    /// Returns the preference of a host (Vol 4, Part E, 7.8.48). PHYs that the controller lacks are an error, and so is
    /// an empty set.
    fileprivate static func make(
        _ preference: PHYPreference,
        _ transmit: PHYSet,
        _ receive: PHYSet,
        of configuration: VirtualController.Configuration
    ) -> Result<PHYChoice, HCIErrorCode> {
        let all = configuration.phys
        let choice = PHYChoice(
            transmit: preference.contains(.anyTransmitter) ? all : transmit,
            receive: preference.contains(.anyReceiver) ? all : receive
        )
        guard all.isSuperset(of: choice.transmit), all.isSuperset(of: choice.receive) else {
            return .failure(.unsupportedFeatureOrParameterValue)
        }
        return choice.transmit.isEmpty || choice.receive.isEmpty
            ? .failure(.invalidHCICommandParameters) : .success(choice)
    }
}
