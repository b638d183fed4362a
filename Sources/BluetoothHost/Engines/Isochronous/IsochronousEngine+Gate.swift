import BLEHCI
import BluetoothTypes

// The gates of links to bonded peers, whose identity must be verified. See ``LinkSecurityEngine`` for the terms.
extension IsochronousEngine {
    /// Whether an opening waits for the gate of a link.
    func awaitsGate(of link: LinkIdentifier) -> Bool {
        waiting.contains { $0.gatedLinks.contains(link) }
    }

    /// Handles that the gate of a link has opened, for which openings may wait.
    mutating func gateOpened(on link: LinkIdentifier) -> [IsochronousEffect] {
        guard awaitsGate(of: link) else { return [] }
        for index in waiting.indices { waiting[index].gatedLinks.remove(link) }
        return startNext()
    }

    /// Handles that the gate of a link is closed. Openings with this link that have not begun wait for it.
    mutating func gateClosed(on link: LinkIdentifier) {
        for index in waiting.indices where waiting[index].links.contains(link) {
            waiting[index].gatedLinks.insert(link)
        }
    }

    /// Ends the openings that wait for the gate of a link, because the peer's identity could not be verified.
    mutating func verificationFailed(_ error: HostError, on link: LinkIdentifier) -> [IsochronousEffect] {
        let failed = waiting.filter { $0.gatedLinks.contains(link) }
        waiting.removeAll { $0.gatedLinks.contains(link) }
        return failed.map { .failed($0.number, error) }
    }

    /// Ends the streams of a link whose peer's identity is no longer verified, and rejects the peer's requests.
    /// Openings with this link that have begun fail.
    mutating func peerIsUnverified(on link: LinkIdentifier) -> [IsochronousEffect] {
        let reason = DisconnectionReason.controller(.authenticationFailure)
        var effects: [IsochronousEffect] = []
        for (handle, request) in requests where request.link == link {
            effects.append(rejection(of: handle, .connectionRejectedDueToSecurityReasons))
        }
        requests.removeAll { $0.value.link == link }
        for (cigID, group) in groups {
            guard let opening = group.opening, opening.links.contains(link) else { continue }
            groups[cigID]?.opening = nil
            groups[cigID]?.failure = .disconnected(reason)
            effects += [.failed(opening.number, .disconnected(reason))] + closeStreams(of: cigID)
        }
        for (handle, stream) in streams where stream.link == link { effects += endUnverified(handle, stream, reason) }
        return effects
    }

    /// Ends a stream, and reports its end at once. A stream of a peripheral that is being created ends when it is
    /// established.
    private mutating func endUnverified(
        _ handle: ConnectionHandle,
        _ stream: Stream,
        _ reason: DisconnectionReason
    ) -> [IsochronousEffect] {
        switch stream.phase {
        case .idle, .closing: return []
        case .creating:
            if stream.cigID == nil { streams[handle]?.failure = .disconnected(reason) }
            return []
        case .settingUpPaths, .open: break
        }
        var effects = close(handle)
        if stream.isReported, let identifier = stream.information?.identifier {
            streams[handle]?.isReported = false
            endReasons[identifier] = reason
            effects.append(.ended(identifier, reason))
        }
        return stream.cigID == nil ? effects + acceptanceFailed(handle, .disconnected(reason)) : effects
    }
}
