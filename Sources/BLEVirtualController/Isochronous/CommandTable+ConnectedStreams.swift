import BLEHCI
import BluetoothTypes

extension CommandTable {
    /// Adds the commands of connected isochronous streams (Vol 4, Part E, 7.8.96 to 7.8.110).
    mutating func addConnectedStreams() {
        addGroups()
        addRequests()
        addDataPaths()
    }

    private mutating func addGroups() {
        answer(LESetCIGParameters.self, needs: .connectedIsochronousStreamCentral) { controller, command in
            let intervals = 0x0000FF...0x0FFFFF as ClosedRange<UInt32>
            let latencies = 0x0005...0x0FA0 as ClosedRange<UInt16>
            guard command.cigID <= 0xEF,
                intervals.contains(command.sduIntervalCToP), intervals.contains(command.sduIntervalPToC),
                latencies.contains(command.maxTransportLatencyCToP),
                latencies.contains(command.maxTransportLatencyPToC),
                Set(command.streams.map(\.cisID)).count == command.streams.count,
                command.streams.allSatisfy({
                    $0.cisID <= 0xEF && max($0.maxSDUCToP, $0.maxSDUPToC) <= ISODataLoadHeader.maximumSDULength
                })
            else { return .failure(.invalidHCICommandParameters) }
            let phys = controller.configuration.phys
            guard
                command.streams.allSatisfy({
                    !$0.phyCToP.isDisjoint(with: phys) && !$0.phyPToC.isDisjoint(with: phys)
                })
            else { return .failure(.unsupportedFeatureOrParameterValue) }
            return controller.configureGroup(command)
        }
        begin(LECreateCIS.self, needs: .connectedIsochronousStreamCentral) { controller, command in
            guard !command.streams.isEmpty,
                Set(command.streams.map(\.cisConnectionHandle)).count == command.streams.count
            else { return .refused(.invalidHCICommandParameters) }
            var pairs: [(StreamEnd, LinkEnd)] = []
            for pair in command.streams {
                guard let stream = controller.isochronous.streams[pair.cisConnectionHandle],
                    let link = controller.end(pair.aclConnectionHandle), link.role == .central
                else { return .refused(.unknownConnectionIdentifier) }
                guard stream.phase == .idle else { return .refused(.connectionAlreadyExists) }
                pairs.append((stream, link))
            }
            guard controller.hostFeatures.contains(.connectedIsochronousStreamHostSupport),
                !controller.isochronous.streams.values.contains(where: { $0.phase == .creating && $0.isCentral })
            else { return .refused(.commandDisallowed) }
            return .begun {
                for (stream, link) in pairs {
                    controller.isochronous.groups[stream.parameters.cigID]?.isConfigurable = false
                    controller.create(stream, on: link)
                }
            }
        }
        answer(LERemoveCIG.self, needs: .connectedIsochronousStreamCentral) { controller, command in
            guard let handles = controller.isochronous.groups[command.cigID]?.handles else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard handles.allSatisfy({ controller.isochronous.streams[$0]?.phase == .idle }) else {
                return .failure(.commandDisallowed)
            }
            controller.isochronous.groups[command.cigID] = nil
            for handle in handles { controller.isochronous.streams[handle] = nil }
            return .success(.init(cigID: command.cigID))
        }
    }

    private mutating func addRequests() {
        begin(LEAcceptCISRequest.self, needs: .connectedIsochronousStreamPeripheral) { controller, command in
            guard let stream = controller.isochronous.streams[command.connectionHandle] else {
                return .refused(.unknownConnectionIdentifier)
            }
            guard stream.phase == .creating, !stream.isCentral, !stream.isAccepted else {
                return .refused(.commandDisallowed)
            }
            return .begun { controller.accept(stream) }
        }
        answer(LERejectCISRequest.self, needs: .connectedIsochronousStreamPeripheral) { controller, command in
            guard let stream = controller.isochronous.streams[command.connectionHandle] else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard stream.phase == .creating, !stream.isCentral, !stream.isAccepted else {
                return .failure(.commandDisallowed)
            }
            controller.reject(stream, command.reason)
            return .success(.init(connectionHandle: command.connectionHandle))
        }
    }

    private mutating func addDataPaths() {
        answer(LESetupISODataPath.self, needsAnyOf: .streams) { controller, command in
            guard let stream = controller.isochronous.endpoint(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard command.dataPathID == LESetupISODataPath.hci, command.codecID == .transparent else {
                return .failure(.unsupportedFeatureOrParameterValue)
            }
            let path: ISODataPathDirections = command.dataPathDirection == .input ? .input : .output
            guard stream.takesPaths, stream.possiblePaths.contains(path), !stream.paths.contains(path) else {
                return .failure(.commandDisallowed)
            }
            stream.paths.insert(path)
            return .success(.init(connectionHandle: command.connectionHandle))
        }
        answer(LERemoveISODataPath.self, needsAnyOf: .streams) { controller, command in
            guard let stream = controller.isochronous.endpoint(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard stream.paths.isSuperset(of: command.dataPathDirection) else { return .failure(.commandDisallowed) }
            stream.paths.subtract(command.dataPathDirection)
            if !stream.paths.contains(.input) { controller.discardPartialSDU(of: stream) }
            return .success(.init(connectionHandle: command.connectionHandle))
        }
        answer(LEReadISOTXSync.self, needsAnyOf: .sentStreams) { controller, command in
            guard let stream = controller.isochronous.endpoint(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard let last = stream.lastSent else { return .failure(.commandDisallowed) }
            return .success(
                .init(
                    connectionHandle: command.connectionHandle,
                    packetSequenceNumber: last.number,
                    txTimeStamp: controller.timeStamp(last.time),
                    timeOffset: 0
                )
            )
        }
    }
}

extension VirtualController {
    /// Creates a group, or changes one that is configurable. Known streams keep their handles, and those that the
    /// command does not name keep their own parameters (Vol 4, Part E, 7.8.97).
    fileprivate func configureGroup(
        _ command: LESetCIGParameters
    ) -> Result<LESetCIGParameters.ReturnParameters, HCIErrorCode> {
        var group = isochronous.groups[command.cigID] ?? IsochronousState.Group()
        guard group.isConfigurable else { return .failure(.commandDisallowed) }
        var configurations = group.handles.compactMap { isochronous.streams[$0]?.parameters.cis }
        var places: [Int] = []
        for stream in command.streams {
            if let place = configurations.firstIndex(where: { $0.cisID == stream.cisID }) {
                configurations[place] = stream
                places.append(place)
            } else {
                places.append(configurations.count)
                configurations.append(stream)
            }
        }
        guard let parameters = StreamParameters.all(of: command, configurations) else {
            return .failure(.unsupportedFeatureOrParameterValue)
        }
        guard configurations.count <= IsochronousState.maximumStreamsInGroup,
            let added = isochronous.freeHandles(configurations.count - group.handles.count)
        else { return .failure(.connectionRejectedDueToLimitedResources) }
        group.handles += added
        isochronous.groups[command.cigID] = group
        for (handle, parameters) in zip(group.handles, parameters) {
            if let stream = isochronous.streams[handle] {
                stream.parameters = parameters
            } else {
                isochronous.streams[handle] = StreamEnd(controller: self, handle: handle, parameters: parameters)
            }
        }
        return .success(.init(cigID: command.cigID, connectionHandles: places.map { group.handles[$0] }))
    }
}
