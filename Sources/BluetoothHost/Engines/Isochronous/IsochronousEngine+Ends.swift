import BLEHCI
import BluetoothTypes

// The ends of connected streams, and of their groups.
extension IsochronousEngine {
    /// Ends a stream.
    mutating func close(_ identifier: IsochronousStreamIdentifier) -> [IsochronousEffect] {
        guard let handle = handle(of: identifier) else { return [] }
        return broadcasts.streams[handle] == nil ? close(handle) : closeBroadcastStream(handle)
    }

    mutating func close(_ handle: ConnectionHandle) -> [IsochronousEffect] {
        guard let phase = streams[handle]?.phase, phase != .idle, phase != .creating, phase != .closing else {
            return []
        }
        streams[handle]?.phase = .closing
        sender.dropUnsent(handle)
        return [
            .send(
                CommandRequest(
                    Disconnect(connectionHandle: handle, reason: .remoteUserTerminatedConnection),
                    .isochronous(.disconnect(handle))
                )
            )
        ]
    }

    mutating func closeStreams(of cigID: UInt8) -> [IsochronousEffect] {
        var effects: [IsochronousEffect] = []
        for handle in groups[cigID]?.handles ?? [] { effects += close(handle) }
        return effects
    }

    /// Handles the end of a stream. Does nothing for a handle that is not one of an established stream.
    mutating func disconnected(_ handle: ConnectionHandle, _ reason: DisconnectionReason) -> [IsochronousEffect] {
        requests[handle] = nil
        endedHandles.removeAll { $0.handle == handle }
        guard let stream = streams[handle], stream.phase != .idle else { return [] }
        sender.close(handle)
        streams[handle]?.phase = .idle
        var effects: [IsochronousEffect] = []
        if stream.isReported, let identifier = stream.information?.identifier {
            effects.append(.ended(identifier, reason))
            endReasons[identifier] = reason
        }
        streams[handle]?.isReported = false
        guard let cigID = stream.cigID else {
            forget(handle)
            return effects + acceptanceFailed(handle, .disconnected(reason))
        }
        if groups[cigID]?.opening != nil {
            return effects + creationFailed(handle, .disconnected(reason))
        }
        return effects + creationEnded(cigID)
    }

    /// Handles the end of an ACL connection: its streams have ended too.
    mutating func linkEnded(
        _ link: LinkIdentifier,
        _ reason: DisconnectionReason,
        at now: Instant
    ) -> [IsochronousEffect] {
        var effects = waiting.filter { $0.links.contains(link) }.map {
            IsochronousEffect.failed($0.number, .disconnected(reason))
        }
        waiting.removeAll { $0.links.contains(link) }
        // The controller has not answered with the handles of this group's streams.
        for (cigID, group) in groups where group.handles.isEmpty && group.failure == nil {
            if group.opening?.links.contains(link) == true { groups[cigID]?.failure = .disconnected(reason) }
        }
        requests.removeAll { $0.value.link == link }
        for (handle, stream) in streams where stream.link == link && stream.phase != .idle {
            effects += disconnected(handle, reason)
            remember(handle, at: now)
        }
        return effects
    }

    /// Removes a group whose streams have all ended, and reports the failure of its opening.
    mutating func settle(_ cigID: UInt8) -> [IsochronousEffect] {
        guard let group = groups[cigID], group.removal == .none,
            group.handles.allSatisfy({ streams[$0]?.phase == .idle })
        else { return [] }
        groups[cigID]?.opening = nil
        let removal = remove(cigID)
        guard let opening = group.opening else { return [removal] }
        return [removal, .failed(opening.number, group.failure ?? .cancelled)]
    }

    mutating func forget(_ handle: ConnectionHandle) {
        sender.close(handle)
        streams[handle] = nil
    }

    /// Records a stream that has ended with its link.
    mutating func remember(_ handle: ConnectionHandle, at now: Instant) {
        endedHandles.removeAll { $0.handle == handle || $0.deadline <= now }
        endedHandles.append(EndedHandle(handle: handle, deadline: now + IsochronousEngine.endedLifetime))
        if endedHandles.count > IsochronousEngine.endedLimit { endedHandles.removeFirst() }
    }
}
