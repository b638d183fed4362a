import BLEATT
import BLEGATT
import BluetoothTypes

/// A subscription to the values of one remote attribute.
///
/// Its constants are set at initialization; its variables are used on the loop only.
package final class ValueSubscription: @unchecked Sendable {
    // @unchecked: its variables are used on the loop only.

    fileprivate let link: LinkIdentifier
    fileprivate let handle: AttributeHandle
    fileprivate let configuration: AttributeHandle
    fileprivate let wanted: ClientConfiguration
    fileprivate let isServiceChanged: Bool
    fileprivate let deliver: @Sendable (HandleValue) -> Void
    fileprivate let ended: @Sendable (DisconnectionReason) -> Void
    fileprivate var subscriber: UInt64 = 0
    fileprivate var endObserver: UInt64 = 0

    /// - Parameters:
    ///   - handle: the handle of the attribute, on `link`.
    ///   - configuration: the handle of the attribute's Client Characteristic Configuration.
    ///   - wanted: the value to write to the configuration.
    ///   - isServiceChanged: whether the attribute is the server's Service Changed. If so, the host recognizes its
    ///     indications, even if it has not learned the server's database.
    ///   - deliver: called on the loop with each value, until ``BluetoothHost/unsubscribe(_:)`` or the end of the link.
    ///   - ended: called on the loop when the link ends before ``BluetoothHost/unsubscribe(_:)``.
    package init(
        to handle: AttributeHandle,
        on link: LinkIdentifier,
        configuration: AttributeHandle,
        wanted: ClientConfiguration,
        isServiceChanged: Bool = false,
        deliver: @escaping @Sendable (HandleValue) -> Void,
        ended: @escaping @Sendable (DisconnectionReason) -> Void
    ) {
        self.link = link
        self.handle = handle
        self.configuration = configuration
        self.wanted = wanted
        self.isServiceChanged = isServiceChanged
        self.deliver = deliver
        self.ended = ended
    }
}

// Subscriptions to one attribute share its Client Characteristic Configuration at the peer (Vol 3, Part G, 3.3.3.3). It
// is written when a subscription starts, and cleared when the last subscriber of the attribute is removed. Both writes
// are queued in the same turn of the loop as the change that causes them. So the peer receives them in the order of the
// changes, and a subscription that starts while the configuration is being cleared ends up subscribed.
//
// An API of the host may have subscribers that are no subscriptions, and write the configuration for them. If one of
// them outlives the last subscription, the configuration is cleared when it is removed, unless that API clears it
// itself.
//
// Two configurations are never cleared. One is that of an attribute which the server has reported as changed since:
// another attribute may have its handle now. The other is that of Service Changed, if the host's cache needs its
// indications.
extension BluetoothHost {
    /// Starts a subscription, and waits until the peer has confirmed the write of the configuration.
    ///
    /// - Throws: ``HostError/cancelled`` immediately if the task is cancelled. After an error, the subscription has
    ///   ended.
    package func subscribe(_ subscription: ValueSubscription) async throws(HostError) {
        do throws(HostError) {
            try await wait { host, call in host.begin(subscription, call) }
        } catch {
            if case .cancelled = error { spawn { $0.abandon(subscription) } }
            throw error
        }
    }

    private func begin(_ subscription: ValueSubscription, _ call: CallToken) {
        let (handle, link) = (subscription.handle, subscription.link)
        do throws(HostError) {
            subscription.subscriber = try addSubscriber(of: handle, on: link, deliver: subscription.deliver)
        } catch {
            return end(call, .failure(error))
        }
        if subscription.isServiceChanged { links[link]?.att.subscribers.serviceChanged = handle }
        subscription.endObserver = observeEnd(of: link, subscription.ended)
        write(subscription.wanted, to: subscription.configuration, on: link) { [weak self] result in
            self?.assumeIsolated { $0.configured(subscription, call, result) }
        }
    }

    /// Handles the result of the write that starts a subscription.
    private func configured(
        _ subscription: ValueSubscription,
        _ call: CallToken,
        _ result: Result<Void, HostError>
    ) {
        guard calls.isWaiting(call) else { return }
        switch result {
        case .success: setConfigured(subscription)
        case .failure(.client(.attribute)), .failure(.security): beginUnsubscribing(subscription)
        case .failure: abandon(subscription)
        }
        end(call, result)
    }

    /// Ends a subscription without knowing whether the peer has confirmed it.
    private func abandon(_ subscription: ValueSubscription) {
        guard subscription.subscriber != 0 else { return }
        setConfigured(subscription)
        beginUnsubscribing(subscription)
    }

    private func setConfigured(_ subscription: ValueSubscription) {
        links[subscription.link]?.att.subscribers.setConfigured(subscription.handle, by: subscription.configuration)
    }

    /// Ends a subscription. If it was the last one of its attribute, clears the configuration at the peer and waits for
    /// the response. If the task is cancelled, returns at once; the configuration is cleared nevertheless.
    package func unsubscribe(_ subscription: ValueSubscription) async {
        do throws(HostError) {
            try await wait { host, call in
                host.beginUnsubscribing(subscription) { [calls = host.calls] in calls.end(call, CallOutcome($0)) }
            }
        } catch {
            // The code of a cancelled call may not have begun. Ending a subscription twice does nothing.
            spawn { $0.beginUnsubscribing(subscription) }
        }
    }

    /// Ends a subscription without waiting for the peer. Does nothing if the subscription or its link has already
    /// ended.
    ///
    /// - Parameter completion: called once the peer has responded, or immediately if no request is sent to it.
    package func beginUnsubscribing(
        _ subscription: ValueSubscription,
        completion: @escaping @Sendable (Result<Void, HostError>) -> Void = { _ in }
    ) {
        let (identifier, handle) = (subscription.link, subscription.handle)
        dropSubscriber(subscription.subscriber, of: handle, on: identifier)
        removeEndObserver(subscription.endObserver, of: identifier)
        guard let configuration = takeUnusedConfiguration(of: handle, on: identifier) else {
            deliver(.callback(completion, .success(())))
            return endInput()
        }
        write([], to: configuration, on: identifier, completion: completion)
    }

    /// Removes a subscriber that ``addSubscriber(of:on:deliver:)`` has added. Does nothing if it was removed before.
    ///
    /// If it was the last subscriber of the attribute, and a ``ValueSubscription`` has configured the peer to send the
    /// attribute's values, clears the configuration at the peer.
    package func removeSubscriber(_ subscriber: UInt64, of handle: AttributeHandle, on identifier: LinkIdentifier) {
        dropSubscriber(subscriber, of: handle, on: identifier)
        guard let configuration = takeUnusedConfiguration(of: handle, on: identifier) else { return }
        write([], to: configuration, on: identifier) { _ in }
    }

    /// Records that the caller clears the configuration of an attribute itself. So the end of the attribute's last
    /// subscriber does not clear it again. Has no effect on subscriptions that start later.
    ///
    /// Call this in the turn in which that write is queued, and only if no subscription wants the values.
    package func configurationWillBeCleared(of handle: AttributeHandle, on identifier: LinkIdentifier) {
        links[identifier]?.att.subscribers.forgetConfiguration(of: handle)
    }

    /// Records that the server has changed its attributes. For a caller that receives Service Changed without a
    /// ``ValueSubscription``: the link's client may not know the handle. Other attributes may have the handles of the
    /// range now (Vol 3, Part G, 2.5.2):
    ///
    /// - The configurations in the range are not cleared.
    /// - The procedures that end on a change of these handles fail with ``ClientError/attributesChanged``; see
    ///   ``begin(_:on:characteristic:endingOnChangeOf:completion:)``. If a request was sent, its response is ignored.
    /// - The writes without response that end on such a change fail with the same error, unless they were sent.
    package func attributesChanged(in range: HandleRange, on identifier: LinkIdentifier) {
        guard let link = links[identifier] else { return }
        link.att.subscribers.forgetConfigurations(in: range)
        endCalls(of: link, changedIn: range)
        endInput()
    }

    private func dropSubscriber(_ subscriber: UInt64, of handle: AttributeHandle, on identifier: LinkIdentifier) {
        // Code of the app that runs at the release may call the host.
        let before = links[identifier]?.att.subscribers.remove(subscriber, of: handle)
        withExtendedLifetime(before) {}
    }

    /// Returns the configuration of an attribute that is to be cleared at the peer. A subscription has set it, no
    /// subscriber is left, and the host's client does not need the values.
    private func takeUnusedConfiguration(
        of handle: AttributeHandle,
        on identifier: LinkIdentifier
    ) -> AttributeHandle? {
        guard let link = links[identifier], !link.control.isDisconnecting else { return nil }
        let configuration = link.att.subscribers.removeConfiguration(of: handle)
        return link.att.client.isServiceChanged(handle) ? nil : configuration
    }

    private func write(
        _ value: ClientConfiguration,
        to configuration: AttributeHandle,
        on identifier: LinkIdentifier,
        completion: @escaping @Sendable (Result<Void, HostError>) -> Void
    ) {
        let bytes = [UInt8(truncatingIfNeeded: value.rawValue), UInt8(truncatingIfNeeded: value.rawValue >> 8)]
        begin(WriteWholeValue(handle: configuration, value: bytes), on: identifier, completion: completion)
    }
}
