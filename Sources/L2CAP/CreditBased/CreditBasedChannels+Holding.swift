// Requests for channels that are sent in the order of other calls: the owner holds them until their turn.
extension CreditBasedChannels {
    /// Lets the request for a channel be sent, with all channels that it asks for. Does nothing if the request is not held.
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

    /// Removes the held request for a channel that is given up, if none of its channels is wanted any more.
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
