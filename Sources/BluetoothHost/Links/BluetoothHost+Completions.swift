import BLEGATT
import BluetoothTypes

/// The identifier of one attempt to connect.
package struct ConnectionAttemptIdentifier: Hashable, Sendable {
    let value: UInt64
}

/// A link to a given peer.
package struct PeerLink: Hashable, Sendable {
    package let identifier: LinkIdentifier
    /// Whether this host is the central, which initiated the link.
    package let isOurs: Bool
    /// Whether the link is about to end.
    package let isEnding: Bool
}

// Operations for APIs whose own calls return immediately. Outcomes are delivered to closures on the loop, in the order
// in which they occur.
extension BluetoothHost {
    /// The timer of an action; see ``run(after:_:)``.
    package struct ActionTimer: Sendable {
        fileprivate let token: TimerQueue.Token
    }

    /// Whether the controller is up.
    package var isPoweredOn: Bool { power == .on }

    /// Calls `action` on the loop after `delay`, unless the timer is cancelled before.
    @discardableResult
    package func run(after delay: Duration, _ action: @escaping @Sendable () -> Void) -> ActionTimer {
        ActionTimer(token: schedule(.action(action), after: delay))
    }

    /// Cancels a timer. Does nothing if its action has run.
    package func cancel(_ timer: ActionTimer) {
        timers.cancel(timer.token)
    }

    /// The link to a peer, whichever side initiated it; nil if there is none. A link on which the peer claims a bond
    /// without having verified its identity does not count.
    package func link(to address: DeviceAddress) -> PeerLink? {
        links.values.first { $0.isWith(anyOf: [address]) && $0.countsAsConnection }
            .map { PeerLink(identifier: $0.identifier, isOurs: $0.role == .central, isEnding: $0.isEnding) }
    }

    /// Starts to connect to a peripheral that is not connected, without a time limit. The attempt continues after a
    /// recovery of the controller.
    package func beginConnecting(
        to address: DeviceAddress,
        parameters: ConnectionParameters = ConnectionParameters(),
        completion: @escaping @Sendable (Result<LinkIdentifier, HostError>) -> Void
    ) -> ConnectionAttemptIdentifier {
        let identifier = observers.makeIdentifier()
        if power == .closed {
            deliver(.connection(completion, .failure(.closed)))
        } else {
            beginAttempt(identifier, [address], parameters, nil, for: .callback(completion))
        }
        endInput()
        return ConnectionAttemptIdentifier(value: identifier)
    }

    /// Cancels an attempt, which then fails with ``HostError/cancelled``. Does nothing if the attempt has ended.
    package func cancelConnecting(_ attempt: ConnectionAttemptIdentifier) {
        endAttempt(attempt.value, .cancelled)
        endInput()
    }

    /// Starts to end a link. Does nothing if it is already ending. Values that are not sent yet are lost.
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
        let observerIdentifier = observers.makeIdentifier()
        if let link = links[identifier] {
            link.observers.ends[observerIdentifier] = .app(observer)
        } else {
            deliver(.linkEnd(observer, endReason(of: identifier)))
            endInput()
        }
        return observerIdentifier
    }

    /// Removes an observer that ``observeEnd(of:_:)`` added; does nothing if the link has ended.
    package func removeEndObserver(_ observer: UInt64, of identifier: LinkIdentifier) {
        // Code of the app that runs at the release may call the host.
        let removed = links[identifier]?.observers.ends.removeValue(forKey: observer)
        withExtendedLifetime(removed) {}
    }

    /// The host's error for the failure of a procedure.
    ///
    /// - Parameter elevationFailure: why the link could not be made as secure as the server requires.
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
            // The bearer closes before its link ends if a transaction has timed out.
            .disconnected(
                links[identifier].map { $0.control.ownReason ?? .attributeTransactionTimeout }
                    ?? endReason(of: identifier)
            )
        case .cancelled: .cancelled
        default: .client(error)
        }
    }
}
