import BLEByteCoding
import BLEHCI
import BluetoothTypes
import DequeModule
import OrderedCollections

/// The isochronous streams of a host: their groups, their data paths and their data. Connected streams are those of Vol
/// 6, Part B, 4.5.13; broadcast streams (``BroadcastGroups``) are those of 4.4.6.
///
/// ## Central
///
/// An opening sets the parameters of a group, creates its streams, and sets up their data paths. It succeeds or fails
/// as a whole: if one stream fails, the others end. A controller creates streams of one command at a time, so openings
/// wait for one another. A group is removed when its last stream has ended.
///
/// ## Peripheral
///
/// The request of a central is reported to the caller, which accepts or rejects it. Without a caller that accepts, it
/// is rejected at once.
///
/// ## Gates
///
/// Streams are only for peers whose identity is verified, or need not be. The caller reports the gates of links: see
/// ``LinkSecurityEngine``. An opening waits until the gates of all its links are open.
///
/// ## Ends
///
/// A stream ends by itself or with its ACL connection. The controller reports the end of a stream by Disconnection
/// Complete with the stream's handle, possibly after that of the connection. So the engine knows the handles of ended
/// streams for a while (``knows(_:at:)``).
///
/// ## Bounds
///
/// At most ``openingLimit`` openings wait, and at most ``requestLimit`` requests are unanswered. Unsent SDUs are
/// bounded by ``IsochronousSender/unitLimit``.
struct IsochronousEngine {
    static let openingLimit = 16
    static let requestLimit = 16
    static let endedLimit = 64
    /// How long after the end of a connection the controller may report the ends of its streams.
    static let endedLifetime = Duration.seconds(5)
    /// How long the controller may synchronize with a broadcast group while others wait for it.
    static let creationTimeout = Duration.seconds(30)

    var streams: OrderedDictionary<ConnectionHandle, Stream> = [:]
    var broadcasts = BroadcastGroups()
    var sender = IsochronousSender()
    var groups: OrderedDictionary<UInt8, Group> = [:]
    var waiting = Deque<Opening>()
    /// The group of the opening that creates streams now.
    var currentGroup: UInt8?
    /// The requests that the app has not answered, by the handles of their streams.
    var requests: OrderedDictionary<ConnectionHandle, IsochronousStreamRequest> = [:]
    /// The requests that were accepted and are not established, by the handles of their streams.
    var accepted: OrderedDictionary<ConnectionHandle, UInt64> = [:]
    var endedHandles = Deque<EndedHandle>()
    var lastIdentifier: UInt64 = 0
    /// Why streams have ended, for callers that use them later; bounded.
    var endReasons = GenerationalTable<IsochronousStreamIdentifier, DisconnectionReason>(limit: 64)
    /// Whether an app accepts requests.
    var acceptsRequests = false

    /// The number of groups that the controller has.
    var groupCount: Int { groups.count }

    /// Why a stream has ended; nil if it has not ended, or too many others have ended since.
    mutating func endReason(of identifier: IsochronousStreamIdentifier) -> DisconnectionReason? {
        endReasons[identifier]
    }

    /// Whether a handle is, or was just, that of a stream.
    func knows(_ handle: ConnectionHandle, at now: Instant) -> Bool {
        streams[handle] != nil || requests[handle] != nil
            || endedHandles.contains { $0.handle == handle && $0.deadline > now }
    }

    /// The properties of a stream; nil if it is not established.
    func information(of handle: ConnectionHandle) -> IsochronousStreamInformation? {
        streams[handle]?.information ?? broadcasts.streams[handle]?.information
    }

    /// The handle of a stream that is open.
    func handle(of identifier: IsochronousStreamIdentifier) -> ConnectionHandle? {
        streams.first { $0.value.phase == .open && $0.value.information?.identifier == identifier }?.key
            ?? broadcasts.handle(of: identifier)
    }

    // MARK: Opening

    /// Starts to open one stream to each of the links, in one group.
    ///
    /// - Parameters:
    ///   - number: names the opening in the effects.
    ///   - gatedLinks: the links whose gates are closed. The opening waits for ``gateOpened(on:)`` of each.
    mutating func open(
        _ number: UInt64,
        to links: [LinkIdentifier],
        _ parameters: ConnectedGroupParameters,
        gatedLinks: Set<LinkIdentifier> = []
    ) throws(HostError) -> [IsochronousEffect] {
        guard (1...LESetCIGParameters.maximumCount).contains(links.count) else {
            throw .invalidArgument("a group has 1 to \(LESetCIGParameters.maximumCount) streams, not \(links.count)")
        }
        guard waiting.count < IsochronousEngine.openingLimit else {
            let limit = IsochronousEngine.openingLimit
            throw .limitReached("\(limit) openings of streams wait, the maximum; await an earlier one")
        }
        _ = try parameters.command(cigID: 0, streamCount: links.count)
        waiting.append(Opening(number: number, links: links, parameters: parameters, gatedLinks: gatedLinks))
        return startNext()
    }

    /// Gives an opening up. Its caller gets no effect for it any more.
    mutating func cancelOpening(_ number: UInt64) -> [IsochronousEffect] {
        if broadcasts.groups.values.contains(where: { $0.number == number }) { return cancelBroadcast(number) }
        waiting.removeAll { $0.number == number }
        guard let cigID = groups.first(where: { $0.value.opening?.number == number })?.key else { return [] }
        groups[cigID]?.failure = .cancelled
        groups[cigID]?.opening = nil
        return closeStreams(of: cigID)
    }

    /// Starts the oldest opening that waits for no gate, unless another one creates streams.
    mutating func startNext() -> [IsochronousEffect] {
        var effects: [IsochronousEffect] = []
        while currentGroup == nil, let index = waiting.firstIndex(where: \.gatedLinks.isEmpty) {
            let opening = waiting.remove(at: index)
            effects += removeRefusedGroups()
            guard let cigID = (0...0xEF as ClosedRange<UInt8>).first(where: { groups[$0] == nil }),
                let command = try? opening.parameters.command(cigID: cigID, streamCount: opening.links.count)
            else {
                let text = "the controller keeps 240 groups of streams, the maximum; try again after one has ended"
                effects.append(.failed(opening.number, .limitReached(text)))
                continue
            }
            groups[cigID] = Group(opening: opening)
            currentGroup = cigID
            effects.append(.send(CommandRequest(command, .isochronous(.setParameters(cigID: cigID)))))
        }
        return effects
    }

    /// Ends the turn of a group that creates streams.
    mutating func endTurn(of cigID: UInt8) -> [IsochronousEffect] {
        guard currentGroup == cigID else { return [] }
        currentGroup = nil
        return startNext()
    }

    private mutating func parametersSet(_ reply: RawSpan, of cigID: UInt8) -> [IsochronousEffect] {
        let result: LESetCIGParameters.ReturnParameters
        do throws(CommandFailure) {
            result = try LESetCIGParameters.decodeReply(reply)
        } catch {
            return failWithoutGroup(cigID, .command(error))
        }
        // The opening was cancelled, or one of its links has ended.
        guard let opening = groups[cigID]?.opening, groups[cigID]?.failure == nil else {
            return settle(cigID) + endTurn(of: cigID)
        }
        let handles = result.connectionHandles
        guard handles.count == opening.links.count, Set(handles).count == handles.count,
            handles.allSatisfy({ streams[$0] == nil && broadcasts.streams[$0] == nil })
        else {
            groups[cigID]?.failure = .controllerFailed("its handles of the streams are invalid")
            return settle(cigID) + endTurn(of: cigID)
        }
        groups[cigID]?.handles = handles
        for (handle, link) in zip(handles, opening.links) {
            streams[handle] = Stream(link: link, cigID: cigID, phase: .creating)
            endedHandles.removeAll { $0.handle == handle }
        }
        let command = LECreateCIS(
            streams: zip(handles, opening.links).map {
                LECreateCIS.CIS(cisConnectionHandle: $0, aclConnectionHandle: $1.handle)
            }
        )
        return [.send(CommandRequest(command, .isochronous(.createStreams(cigID: cigID))))]
    }

    /// Ends an opening whose group the controller does not have.
    private mutating func failWithoutGroup(_ cigID: UInt8, _ error: HostError) -> [IsochronousEffect] {
        let opening = groups.removeValue(forKey: cigID)?.opening
        return (opening.map { [.failed($0.number, error)] } ?? []) + endTurn(of: cigID)
    }

    // MARK: Answers

    /// Handles the answer to a command.
    ///
    /// - Parameter reply: the status and the return parameters that follow it.
    mutating func answered(_ step: IsochronousStep, _ reply: RawSpan, of opcode: HCIOpcode) -> [IsochronousEffect] {
        if let failure = CommandFailure(in: reply, of: opcode) { return failed(step, failure) }
        switch step {
        case .setParameters(let cigID): return parametersSet(reply, of: cigID)
        case .removeGroup(let cigID): return groupRemoved(cigID)
        case .setUpPath(let handle): return pathAnswered(handle, nil)
        case .broadcast(let step): return broadcastAnswered(step)
        case .createStreams, .accept, .disconnect: return []
        }
    }

    /// Handles the failure of a command.
    mutating func failed(_ step: IsochronousStep, _ failure: CommandFailure) -> [IsochronousEffect] {
        switch step {
        case .setParameters(let cigID): return failWithoutGroup(cigID, .command(failure))
        case .createStreams(let cigID):
            for handle in groups[cigID]?.handles ?? [] { streams[handle]?.phase = .idle }
            if groups[cigID]?.failure == nil { groups[cigID]?.failure = .command(failure) }
            return settle(cigID) + endTurn(of: cigID)
        case .removeGroup(let cigID): return removalFailed(cigID, failure)
        case .accept(let handle): return acceptanceFailed(handle, .command(failure))
        case .setUpPath(let handle): return pathAnswered(handle, .command(failure))
        case .broadcast(let step): return broadcastFailed(step, failure)
        case .disconnect(let handle): return disconnected(handle, .controller(.connectionTerminatedByLocalHost))
        }
    }

    private mutating func groupRemoved(_ cigID: UInt8) -> [IsochronousEffect] {
        let group = groups.removeValue(forKey: cigID)
        for handle in group?.handles ?? [] { forget(handle) }
        return []
    }

    /// Keeps a group that the controller still has, so that its identifier and its handles are not used for another
    /// one.
    private mutating func removalFailed(_ cigID: UInt8, _ failure: CommandFailure) -> [IsochronousEffect] {
        if case .status(.unknownConnectionIdentifier, _) = failure { return groupRemoved(cigID) }
        groups[cigID]?.removal = .refused
        return []
    }

    /// Has the controller remove the groups whose removal it has refused before.
    private mutating func removeRefusedGroups() -> [IsochronousEffect] {
        groups.filter { $0.value.removal == .refused }.keys.map { remove($0) }
    }

    mutating func remove(_ cigID: UInt8) -> IsochronousEffect {
        groups[cigID]?.removal = .requested
        return .send(CommandRequest(LERemoveCIG(cigID: cigID), .isochronous(.removeGroup(cigID: cigID))))
    }

    // MARK: Establishing

    /// Handles the establishment of a stream, or its failure.
    mutating func established(_ event: LECISEstablishedV2) -> [IsochronousEffect] {
        let handle = event.connectionHandle
        guard let stream = streams[handle], stream.phase == .creating else {
            // The central has withdrawn its request, or the controller has rejected it because the app took too long.
            if event.status != .success { requests[handle] = nil }
            return []
        }
        guard event.status == .success else {
            let error = HostError.command(.status(event.status, LECreateCIS.opcode))
            return stream.cigID == nil ? acceptanceFailed(handle, error) : creationFailed(handle, error)
        }
        let isCentral = stream.cigID != nil
        let (sends, receives) = isCentral ? (event.bnCToP > 0, event.bnPToC > 0) : (event.bnPToC > 0, event.bnCToP > 0)
        let parameters = stream.cigID.flatMap { groups[$0]?.opening?.parameters }
        lastIdentifier += 1
        streams[handle]?.information = IsochronousStreamInformation(
            identifier: IsochronousStreamIdentifier(value: lastIdentifier),
            link: stream.link,
            canSend: sends,
            canReceive: receives,
            maximumPDU: Int(isCentral ? event.maxPDUCToP : event.maxPDUPToC),
            interval: .microseconds(1250 * Int(event.isoInterval)),
            sduInterval: parameters?.sduInterval ?? event.sduIntervalOfPeripheral,
            maximumSDU: min(
                parameters?.maximumSDUToPeripheral ?? Int(event.maxSDUPToC),
                ISODataLoadHeader.maximumSDULength,
                sender.longestSDU
            )
        )
        if let cigID = stream.cigID, groups[cigID]?.failure != nil {
            streams[handle]?.phase = .settingUpPaths(0)
            return close(handle) + creationEnded(cigID)
        }
        if let failure = stream.failure {
            streams[handle]?.phase = .settingUpPaths(0)
            return close(handle) + acceptanceFailed(handle, failure)
        }
        let directions: [ISODataPathDirection] = (sends ? [.input] : []) + (receives ? [.output] : [])
        streams[handle]?.phase = .settingUpPaths(directions.count)
        guard !directions.isEmpty else { return pathsSetUp(handle) }
        return directions.map {
            .send(
                CommandRequest(
                    LESetupISODataPath(connectionHandle: handle, dataPathDirection: $0),
                    .isochronous(.setUpPath(handle))
                )
            )
        }
    }

    mutating func creationFailed(_ handle: ConnectionHandle, _ error: HostError) -> [IsochronousEffect] {
        guard let cigID = streams[handle]?.cigID else { return [] }
        streams[handle]?.phase = .idle
        if groups[cigID]?.failure == nil { groups[cigID]?.failure = error }
        return closeStreams(of: cigID) + creationEnded(cigID)
    }

    private mutating func pathAnswered(_ handle: ConnectionHandle, _ failure: HostError?) -> [IsochronousEffect] {
        guard case .settingUpPaths(let count)? = streams[handle]?.phase else { return [] }
        if let failure { streams[handle]?.failure = failure }
        streams[handle]?.phase = .settingUpPaths(count - 1)
        return count == 1 ? pathsSetUp(handle) : []
    }

    private mutating func pathsSetUp(_ handle: ConnectionHandle) -> [IsochronousEffect] {
        guard let stream = streams[handle], let information = stream.information else { return [] }
        if let failure = stream.failure {
            if let cigID = stream.cigID {
                if groups[cigID]?.failure == nil { groups[cigID]?.failure = failure }
                return closeStreams(of: cigID) + creationEnded(cigID)
            }
            return close(handle) + acceptanceFailed(handle, failure)
        }
        streams[handle]?.phase = .open
        if information.canSend { sender.open(handle, sduInterval: information.sduInterval) }
        if let cigID = stream.cigID { return creationEnded(cigID) }
        guard let number = accepted.removeValue(forKey: handle) else { return close(handle) }
        streams[handle]?.isReported = true
        return [.opened(number, [information])]
    }

    /// Ends an opening if none of its streams is being created.
    mutating func creationEnded(_ cigID: UInt8) -> [IsochronousEffect] {
        guard let group = groups[cigID] else { return [] }
        let phases = group.handles.compactMap { streams[$0]?.phase }
        let isCreating = phases.contains {
            switch $0 {
            case .creating, .settingUpPaths: true
            case .idle, .open, .closing: false
            }
        }
        guard !isCreating else { return [] }
        guard let opening = group.opening, group.failure == nil else { return settle(cigID) + endTurn(of: cigID) }
        groups[cigID]?.opening = nil
        for handle in group.handles { streams[handle]?.isReported = true }
        let informations = group.handles.compactMap { streams[$0]?.information }
        return [.opened(opening.number, informations)] + endTurn(of: cigID)
    }
}
