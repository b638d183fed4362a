import BLEHCI
import BluetoothTypes

// Broadcast isochronous groups: those that this host sends with a periodic train of its own, and those that it receives
// from a train that the controller is synchronized with.
//
// A group opens or fails as a whole. It ends when all its streams are closed, with its advertisement or its
// synchronization, or by an event of the controller.
extension IsochronousEngine {
    // MARK: Opening

    /// Starts to send a group.
    ///
    /// - Parameters:
    ///   - number: names the group in the effects.
    ///   - advertisingHandle: the advertising set whose periodic train announces the group.
    mutating func broadcast(
        _ number: UInt64,
        on advertisement: AdvertisementIdentifier,
        advertisingHandle: UInt8,
        _ parameters: BroadcastGroupParameters
    ) throws(HostError) -> [IsochronousEffect] {
        // Checks the parameters before the group is added.
        _ = try parameters.command(bigHandle: 0, advertisingHandle: advertisingHandle)
        let others = broadcasts.groups.values.filter { $0.advertisement == advertisement }
        guard others.allSatisfy(\.isEnding) else {
            throw .invalidArgument("the advertisement announces a broadcast group already; stop that first")
        }
        let big = try broadcasts.add(
            BroadcastGroups.Group(
                number: number,
                role: .broadcaster(advertisement, parameters),
                phase: .awaitingEnd,
                advertisingHandle: advertisingHandle
            )
        )
        return others.isEmpty ? create(big) : []
    }

    private mutating func create(_ big: UInt8) -> [IsochronousEffect] {
        guard let group = broadcasts.groups[big], case .broadcaster(_, let parameters) = group.role,
            let command = try? parameters.command(bigHandle: big, advertisingHandle: group.advertisingHandle)
        else { return [] }
        broadcasts.groups[big]?.phase = .creating
        return [.send(CommandRequest(command, .isochronous(.broadcast(.create(big)))))]
    }

    /// Starts to receive a group, as soon as a train announces it.
    mutating func receiveBroadcast(
        _ number: UInt64,
        from synchronization: SynchronizationIdentifier,
        _ parameters: BroadcastReceptionParameters
    ) throws(HostError) {
        try parameters.check()
        let isTaken = broadcasts.groups.values.contains {
            $0.synchronization == synchronization && $0.phase != .closing
        }
        guard !isTaken else { throw .invalidArgument("the broadcast of this train is received already") }
        _ = try broadcasts.add(
            BroadcastGroups.Group(
                number: number,
                role: .receiver(synchronization, parameters),
                phase: .awaitingInformation
            )
        )
    }

    /// Cancels a group that is not open. Its caller gets no effect for it any more.
    mutating func cancelBroadcast(_ number: UInt64) -> [IsochronousEffect] {
        guard let big = broadcasts.groups.first(where: { $0.value.number == number && !$0.value.isReported })?.key
        else {
            return []
        }
        broadcasts.groups[big]?.isCancelled = true
        return terminate(big)
    }

    /// Handles the announcement of a group by a train.
    ///
    /// A controller creates one synchronization at a time. Others begin when their trains repeat the announcement. A
    /// creation whose train no longer announces the group is cancelled after ``creationTimeout`` for another one, and
    /// begins again with the next announcement.
    mutating func announced(
        _ event: LEBIGInfoAdvertisingReport,
        on synchronization: SynchronizationIdentifier,
        at now: Instant
    ) -> [IsochronousEffect] {
        guard
            let big = broadcasts.groups.first(where: {
                $0.value.synchronization == synchronization && $0.value.phase == .awaitingInformation
            })?.key,
            case .receiver(_, let parameters)? = broadcasts.groups[big]?.role
        else { return [] }
        let information = BroadcastGroupInformation(event)
        if let error = parameters.obstacle(to: information) {
            broadcasts.groups[big]?.failure = .broadcast(error)
            return finish(big, IsochronousEngine.localEnd)
        }
        if let busy = broadcasts.groups.first(where: { $0.value.isReceptionChanging })?.key {
            guard broadcasts.groups[busy]?.mustYield(at: now) == true else { return [] }
            broadcasts.groups[busy]?.isYielding = true
            return terminate(busy)
        }
        let numbers = parameters.streamNumbers(of: information)
        broadcasts.groups[big]?.beginReception(of: information, streams: numbers, at: now)
        let command = parameters.command(bigHandle: big, syncHandle: event.syncHandle, streams: numbers)
        return [.send(CommandRequest(command, .isochronous(.broadcast(.receive(big)))))]
    }

    // MARK: Establishing

    /// Handles the creation of a group that this host sends, or its failure.
    mutating func created(_ event: LECreateBIGComplete) -> [IsochronousEffect] {
        guard let group = broadcasts.groups[event.bigHandle], case .broadcaster(_, let parameters) = group.role,
            group.phase == .creating || group.phase == .closing && !group.isCreated
        else { return [] }
        guard event.status == .success else {
            return creationFailed(event.bigHandle, .status(event.status, LECreateBIG.opcode))
        }
        broadcasts.groups[event.bigHandle]?.isCreated = true
        // The controller has not answered the command that ends the group.
        guard group.phase == .creating else { return [] }
        broadcasts.groups[event.bigHandle]?.streamNumbers = (0..<parameters.streamCount).map {
            UInt8(truncatingIfNeeded: $0 + 1)
        }
        return established(
            event.bigHandle,
            event.connectionHandles,
            event.timing,
            sduInterval: parameters.sduInterval,
            maximumSDU: min(parameters.maximumSDU, sender.longestSDU)
        )
    }

    /// Handles the start of the reception of a group, or its failure.
    mutating func synchronized(_ event: LEBIGSyncEstablished) -> [IsochronousEffect] {
        guard let group = broadcasts.groups[event.bigHandle], group.synchronization != nil, group.phase == .creating
        else { return [] }
        guard event.status == .success else {
            return creationFailed(event.bigHandle, .status(event.status, LEBIGCreateSync.opcode))
        }
        return established(
            event.bigHandle,
            event.connectionHandles,
            event.timing,
            sduInterval: group.information?.sduInterval ?? .zero,
            maximumSDU: group.information?.maximumSDU ?? 0
        )
    }

    private mutating func creationFailed(_ big: UInt8, _ failure: CommandFailure) -> [IsochronousEffect] {
        if broadcasts.groups[big]?.failure == nil { broadcasts.groups[big]?.failure = .command(failure) }
        if case .status(.connectionTerminatedDueToMICFailure, _) = failure {
            broadcasts.groups[big]?.failure = .broadcast(.wrongCode)
        }
        return finish(big, IsochronousEngine.localEnd)
    }

    /// Sets up the data paths of a group that the controller has.
    private mutating func established(
        _ big: UInt8,
        _ handles: [ConnectionHandle],
        _ timing: BIGTiming,
        sduInterval: Duration,
        maximumSDU: Int
    ) -> [IsochronousEffect] {
        guard let group = broadcasts.groups[big] else { return [] }
        broadcasts.groups[big]?.phase = .settingUpPaths(handles.count)
        guard !group.isCancelled, group.failure == nil else { return terminate(big) }
        let isValid =
            handles.count == group.streamNumbers.count && Set(handles).count == handles.count
            && handles.allSatisfy { streams[$0] == nil && broadcasts.streams[$0] == nil }
        guard isValid else {
            broadcasts.groups[big]?.failure = .controllerFailed("its handles of the streams are invalid")
            return terminate(big)
        }
        let isReceiver = group.synchronization != nil
        broadcasts.groups[big]?.handles = handles
        for (handle, number) in zip(handles, group.streamNumbers) {
            lastIdentifier += 1
            endedHandles.removeAll { $0.handle == handle }
            broadcasts.streams[handle] = BroadcastGroups.Stream(
                bigHandle: big,
                information: IsochronousStreamInformation(
                    identifier: IsochronousStreamIdentifier(value: lastIdentifier),
                    link: nil,
                    broadcast: BroadcastMembership(number: Int(number), information: group.information),
                    canSend: !isReceiver,
                    canReceive: isReceiver,
                    maximumPDU: Int(timing.maxPDU),
                    interval: .microseconds(1250 * Int(timing.isoInterval)),
                    sduInterval: sduInterval,
                    maximumSDU: maximumSDU
                )
            )
        }
        return handles.map {
            .send(
                CommandRequest(
                    LESetupISODataPath(connectionHandle: $0, dataPathDirection: isReceiver ? .output : .input),
                    .isochronous(.broadcast(.setUpPath($0)))
                )
            )
        }
    }

    private mutating func broadcastPathAnswered(
        _ handle: ConnectionHandle,
        _ failure: HostError?
    ) -> [IsochronousEffect] {
        guard let big = broadcasts.streams[handle]?.bigHandle, let group = broadcasts.groups[big],
            case .settingUpPaths(let count) = group.phase
        else { return [] }
        if let failure, group.failure == nil { broadcasts.groups[big]?.failure = failure }
        broadcasts.groups[big]?.phase = .settingUpPaths(count - 1)
        guard count == 1 else { return [] }
        guard broadcasts.groups[big]?.failure == nil else { return terminate(big) }
        broadcasts.groups[big]?.phase = .open
        broadcasts.groups[big]?.isReported = true
        let informations = group.handles.compactMap { broadcasts.streams[$0]?.information }
        for (handle, information) in zip(group.handles, informations) where information.canSend {
            sender.open(handle, sduInterval: information.sduInterval)
        }
        return [.opened(group.number, informations)]
    }

    // MARK: Answers

    /// Handles the success of a command, of which the events that follow matter more.
    mutating func broadcastAnswered(_ step: BroadcastStep) -> [IsochronousEffect] {
        switch step {
        case .create, .receive, .terminate: []
        case .setUpPath(let handle): broadcastPathAnswered(handle, nil)
        case .stopReceiving(let big): receptionStopped(big)
        }
    }

    private mutating func receptionStopped(_ big: UInt8) -> [IsochronousEffect] {
        guard let group = broadcasts.groups[big], group.isYielding, !group.isCancelled, group.failure == nil else {
            return finish(big, IsochronousEngine.localEnd)
        }
        broadcasts.waitAgain(big)
        return []
    }

    mutating func broadcastFailed(_ step: BroadcastStep, _ failure: CommandFailure) -> [IsochronousEffect] {
        switch step {
        case .create(let big), .receive(let big):
            broadcasts.groups[big].map { $0.phase == .creating || $0.phase == .closing } == true
                ? creationFailed(big, failure) : []
        case .setUpPath(let handle): broadcastPathAnswered(handle, .command(failure))
        case .terminate(let big): terminationRefused(big)
        // The controller does not have the group.
        case .stopReceiving(let big): receptionStopped(big)
        }
    }

    /// Handles the refusal to end a group that this host sends. Some controllers refuse it while they create the group,
    /// which then ends as soon as it exists. Otherwise the controller does not have the group.
    private mutating func terminationRefused(_ big: UInt8) -> [IsochronousEffect] {
        guard let group = broadcasts.groups[big], group.phase == .closing else { return [] }
        guard !group.endRefused else { return finish(big, IsochronousEngine.localEnd) }
        broadcasts.groups[big]?.endRefused = true
        broadcasts.groups[big]?.phase = .creating
        return group.isCreated ? terminate(big) : []
    }

    // MARK: Ends

    private static let localEnd = DisconnectionReason.controller(.connectionTerminatedByLocalHost)

    /// Handles the end of a group that this host sent.
    mutating func terminated(_ event: LETerminateBIGComplete) -> [IsochronousEffect] {
        guard let group = broadcasts.groups[event.bigHandle], group.advertisement != nil, group.phase != .creating,
            group.phase != .awaitingEnd
        else { return [] }
        return finish(event.bigHandle, .controller(event.reason))
    }

    /// Handles the end of a group that this host received.
    mutating func lost(_ event: LEBIGSyncLost) -> [IsochronousEffect] {
        guard let group = broadcasts.groups[event.bigHandle], group.synchronization != nil,
            group.phase != .awaitingInformation, group.phase != .creating
        else { return [] }
        if event.reason == .connectionTerminatedDueToMICFailure, group.failure == nil {
            broadcasts.groups[event.bigHandle]?.failure = .broadcast(.wrongCode)
        }
        return finish(event.bigHandle, .controller(event.reason))
    }

    /// Closes one stream. Its group ends with its last stream.
    mutating func closeBroadcastStream(_ handle: ConnectionHandle) -> [IsochronousEffect] {
        guard let stream = broadcasts.streams[handle], !stream.isClosed else { return [] }
        broadcasts.streams[handle]?.isClosed = true
        sender.dropUnsent(handle)
        let identifier = stream.information.identifier
        endReasons[identifier] = IsochronousEngine.localEnd
        let effects = [IsochronousEffect.ended(identifier, IsochronousEngine.localEnd)]
        let isLast = broadcasts.groups[stream.bigHandle]?.handles.allSatisfy {
            broadcasts.streams[$0]?.isClosed == true
        }
        return isLast == true ? effects + terminate(stream.bigHandle) : effects
    }

    /// Ends the group that an advertisement announces, because it is stopped.
    mutating func advertisementEnded(_ advertisement: AdvertisementIdentifier) -> [IsochronousEffect] {
        var effects: [IsochronousEffect] = []
        for (big, group) in broadcasts.groups where group.advertisement == advertisement {
            if group.failure == nil { broadcasts.groups[big]?.failure = .cancelled }
            effects += terminate(big)
        }
        return effects
    }

    /// Ends the reception of a group, because the synchronization with its train has ended.
    mutating func synchronizationEnded(
        _ synchronization: SynchronizationIdentifier,
        _ error: HostError
    ) -> [IsochronousEffect] {
        var effects: [IsochronousEffect] = []
        for (big, group) in broadcasts.groups where group.synchronization == synchronization {
            if group.failure == nil { broadcasts.groups[big]?.failure = error }
            effects += terminate(big)
        }
        return effects
    }

    /// Has the controller end a group.
    private mutating func terminate(_ big: UInt8) -> [IsochronousEffect] {
        guard let group = broadcasts.groups[big], group.phase != .closing else { return [] }
        switch (group.role, group.phase) {
        case (_, .awaitingInformation), (_, .awaitingEnd): return finish(big, IsochronousEngine.localEnd)
        // The group is terminated when it exists.
        case (.broadcaster, .creating) where group.endRefused && !group.isCreated: return []
        default: break
        }
        broadcasts.groups[big]?.phase = .closing
        for handle in group.handles { sender.dropUnsent(handle) }
        guard group.synchronization == nil else {
            return [
                .send(
                    CommandRequest(
                        LEBIGTerminateSync(bigHandle: big),
                        .isochronous(.broadcast(.stopReceiving(big)))
                    )
                )
            ]
        }
        let command = LETerminateBIG(bigHandle: big, reason: .remoteUserTerminatedConnection)
        return [.send(CommandRequest(command, .isochronous(.broadcast(.terminate(big)))))]
    }

    /// Removes a group that the controller does not have, or no longer has.
    private mutating func finish(_ big: UInt8, _ reason: DisconnectionReason) -> [IsochronousEffect] {
        guard let group = broadcasts.remove(big) else { return [] }
        var effects: [IsochronousEffect] = []
        for handle in group.handles {
            sender.close(handle)
            guard let stream = broadcasts.streams.removeValue(forKey: handle), group.isReported, !stream.isClosed else {
                continue
            }
            effects.append(.ended(stream.information.identifier, reason))
            endReasons[stream.information.identifier] = reason
        }
        if !group.isReported, !group.isCancelled {
            effects.append(.failed(group.number, group.failure ?? .disconnected(reason)))
        }
        if let synchronization = group.synchronization,
            !broadcasts.groups.values.contains(where: { $0.synchronization == synchronization })
        {
            effects.append(.receptionEnded(synchronization))
        }
        if let advertisement = group.advertisement,
            let next = broadcasts.groups.first(where: {
                $0.value.advertisement == advertisement && $0.value.phase == .awaitingEnd
            })
        {
            effects += create(next.key)
        }
        return effects
    }

    /// Ends all groups, because the controller was reset or the host is closed.
    mutating func resetBroadcasts(_ error: HostError, _ reason: DisconnectionReason) -> [IsochronousEffect] {
        var effects: [IsochronousEffect] = []
        // A group that waits for the end of another one ends first.
        for (big, group) in broadcasts.groups.reversed() {
            if !group.isReported { broadcasts.groups[big]?.failure = error }
            effects += finish(big, reason)
        }
        return effects
    }
}
