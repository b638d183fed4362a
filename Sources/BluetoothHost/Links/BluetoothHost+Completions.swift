import BluetoothTypes
import GATT

/// Names one attempt to connect.
package struct ConnectionAttemptIdentifier: Hashable, Sendable {
    let value: UInt64
}

/// The link to a peer.
package struct PeerLink: Hashable, Sendable {
    package let identifier: LinkIdentifier
    /// Whether this host has made it, as the central.
    package let isOurs: Bool
    /// Whether it is about to end.
    package let isEnding: Bool
}

// What a face asks for whose own calls return at once: outcomes are told by closures, on the loop, in the order in which they
// happen.
extension BluetoothHost {
    /// Whether the controller is up.
    package var isPoweredOn: Bool { power == .on }

    /// Runs `action` after `delay`, on the loop.
    package func run(after delay: Duration, _ action: @escaping @Sendable () -> Void) {
        _ = schedule(.action(action), after: delay)
    }

    /// The link to a peer, where there is one, whichever side has made it; not one whose peer only claims to be bonded.
    package func link(to address: DeviceAddress) -> PeerLink? {
        links.values.first { $0.isWith(anyOf: [address]) && $0.countsAsConnection }
            .map { PeerLink(identifier: $0.identifier, isOurs: $0.role == .central, isEnding: $0.isEnding) }
    }

    /// Begins to connect to a peripheral that is not connected, however long it takes. The attempt outlives a recovery of the
    /// controller.
    package func beginConnecting(
        to address: DeviceAddress,
        parameters: ConnectionParameters = ConnectionParameters(),
        completion: @escaping @Sendable (Result<LinkIdentifier, HostError>) -> Void
    ) -> ConnectionAttemptIdentifier {
        let identifier = makeIdentifier()
        if power == .closed {
            deliver(.connection(completion, .failure(.closed)))
        } else {
            begin(identifier, [address], parameters, nil, for: .callback(completion))
        }
        endInput()
        return ConnectionAttemptIdentifier(value: identifier)
    }

    /// Gives an attempt up, which then fails with ``HostError/cancelled``; nothing happens where it is over.
    package func cancelConnecting(_ attempt: ConnectionAttemptIdentifier) {
        giveUp(attempt.value, .cancelled)
        endInput()
    }

    /// Begins to end a link; nothing happens if it is ending already. Values that are not sent yet are lost.
    package func beginDisconnecting(_ identifier: LinkIdentifier) {
        // Earlier calls are sent first.
        endInput()
        guard let link = links[identifier] else { return }
        giveUp(link, .controller(.connectionTerminatedByLocalHost))
        endInput()
    }

    /// Calls `observer` once when a link ends, or immediately if the link has already ended.
    ///
    /// - Returns: the observer's identifier, for ``removeEndObserver(_:of:)``.
    @discardableResult
    package func observeEnd(
        of identifier: LinkIdentifier,
        _ observer: @escaping @Sendable (DisconnectionReason) -> Void
    ) -> UInt64 {
        let observerIdentifier = makeIdentifier()
        if let link = links[identifier] {
            link.endObservers[observerIdentifier] = .app(observer)
        } else {
            deliver(.linkEnd(observer, endedLinks[identifier] ?? .adapterClosed))
            endInput()
        }
        return observerIdentifier
    }

    /// Removes an observer that ``observeEnd(of:_:)`` added; does nothing if the link has ended.
    package func removeEndObserver(_ observer: UInt64, of identifier: LinkIdentifier) {
        links[identifier]?.endObservers[observer] = nil
    }

    /// What a procedure's failure is to the host's callers.
    ///
    /// - Parameter elevationFailure: why the link could not be made as secure as the server wants it.
    package func hostError(
        _ error: ClientError,
        on identifier: LinkIdentifier,
        _ elevationFailure: HostError? = nil
    ) -> HostError {
        if case .attribute = error, let failure = elevationFailure ?? links[identifier]?.att.elevationFailure {
            return failure
        }
        return switch error {
        case .bearerClosed:
            // The bearer ends before its link, when a transaction has taken too long.
            .disconnected(
                links[identifier].map { $0.ownReason ?? .attributeTransactionTimeout }
                    ?? endedLinks[identifier] ?? .adapterClosed
            )
        case .cancelled: .cancelled
        default: .client(error)
        }
    }
}
