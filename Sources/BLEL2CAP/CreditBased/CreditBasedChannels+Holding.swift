// Requests for channels whose order must match other calls: the owner holds them until they may be sent.
extension CreditBasedChannels {
    /// Allows the request for a channel to be sent, with all channels that it asks for. Has no effect if it is not
    /// held.
    public mutating func release(_ identifier: ChannelIdentifier) {
        guard let index = heldRequest(for: identifier) else { return }
        outgoing.append(.request(heldRequests.remove(at: index)))
    }

    /// Whether the request for a channel is held.
    public func isHeld(_ identifier: ChannelIdentifier) -> Bool {
        heldRequest(for: identifier) != nil
    }

    private func heldRequest(for identifier: ChannelIdentifier) -> Int? {
        heldRequests.firstIndex { $0.sources.contains(identifier) }
    }

    /// Removes the held request for a canceled channel, if all its channels are canceled.
    mutating func removeHeldRequest(for identifier: ChannelIdentifier) {
        guard let held = heldRequest(for: identifier) else { return }
        let sources = heldRequests[held].sources
        guard sources.allSatisfy({ self[$0]?.phase == .abandoned }) else { return }
        heldRequests.remove(at: held)
        channels.removeAll { sources.contains($0.identifier) }
    }
}

extension CreditBasedChannels.Request {
    /// The channels that the request asks for.
    fileprivate var sources: ChannelIdentifierList {
        var sources = ChannelIdentifierList()
        switch self {
        case .leConnection(let request): sources.append(request.source)
        case .connection(let request): sources = request.sources
        case .reconfigure, .disconnection: break
        }
        return sources
    }
}
