import BLEATT
import BLEGATT
import BluetoothHost
import BluetoothTypes
import Foundation

// Notifications and indications of connected peripherals.
//
// All users of a link share the Client Characteristic Configuration of a value at the server. A call that subscribes
// always writes it. A call that unsubscribes writes it only if no other user wants the value at the time of the call.
// The writes leave in the order of the calls, so the last one has the final configuration.
extension HostCentral {
    /// A value of a connected peripheral, and the handles of its descriptors.
    private struct RemoteValue {
        let peripheral: UUID
        let link: LinkIdentifier
        let handle: AttributeHandle
        let descriptors: HandleRange

        /// The handles of the value and of its descriptors.
        var handles: HandleRange { HandleRange(start: handle, end: descriptors.end) }
    }

    func setConfiguration(
        _ configuration: ClientConfiguration,
        of characteristic: DiscoveredCharacteristic,
        on peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Void>
    ) {
        let end = characteristic.descriptorRange?.end ?? characteristic.valueHandle
        let handles = HandleRange(start: characteristic.valueHandle, end: end)
        onLink(of: peripheral, using: handles, completion) { host, link in
            guard let descriptors = characteristic.descriptorRange else {
                let error = BackendError.attribute(.attributeNotFound)
                return self.completeInOrder(.failure(error), on: link, host, completion)
            }
            let value = RemoteValue(
                peripheral: peripheral.identifier,
                link: link,
                handle: characteristic.valueHandle,
                descriptors: descriptors
            )
            if configuration.isEmpty {
                self.unsubscribe(from: value, on: host, completion)
            } else {
                self.subscribe(configuration, to: value, on: host, completion)
            }
        }
    }

    // MARK: Subscribing

    private func subscribe(
        _ configuration: ClientConfiguration,
        to value: RemoteValue,
        on host: isolated BluetoothHost,
        _ completion: @escaping Completion<Void>
    ) {
        let peripheral = value.peripheral
        if subscription(to: value) != nil {
            noteCall(of: value)
        } else if let subscriber = try? open?.links.addSubscriber(
            of: value.handle,
            on: value.link,
            host,
            deliver: { [weak self] in self?.valueReceived($0, from: peripheral) }
        ) {
            // The subscriber exists before the request, because the first value may arrive together with the response.
            let subscription = Subscription(subscriber: subscriber, handles: value.handles)
            state.connections[peripheral]?.subscriptions[value.handle] = subscription
        }
        let before = subscription(to: value)
        setWanted(true, value)
        write(configuration, of: value, on: host, completion) { isSuccess in
            guard let now = self.subscription(to: value), now.subscriber == before?.subscriber else { return }
            if isSuccess {
                self.setEstablished(true, value)
            } else if !now.isEstablished, now.callCount == before?.callCount {
                self.setWanted(false, value)
                self.removeSubscription(to: value)
            }
        }
    }

    /// Passes a value to the manager. Called on the loop.
    private func valueReceived(_ value: HandleValue, from peripheral: UUID) {
        guard !deliver(.valueReceived(peripheral, value.handle, value.value)), let open else { return }
        let droppedBefore = state.connections[peripheral]?.droppedValues ?? 0
        state.connections[peripheral]?.droppedValues += 1
        open.host.valueWasDropped(droppedBefore: droppedBefore)
    }

    // MARK: Unsubscribing

    private func unsubscribe(
        from value: RemoteValue,
        on host: isolated BluetoothHost,
        _ completion: @escaping Completion<Void>
    ) {
        noteCall(of: value)
        let before = subscription(to: value)
        setWanted(false, value)
        // Another manager, or the BLE module, may want the values.
        if open?.links.isWanted(value.handle, on: value.link, host) == true {
            removeSubscription(to: value)
            return completeInOrder(.success(()), on: value.link, host, completion)
        }
        host.configurationWillBeCleared(of: value.handle, on: value.link)
        write([], of: value, on: host, completion) { isSuccess in
            guard let now = self.subscription(to: value), now.subscriber == before?.subscriber else { return }
            if isSuccess { self.setEstablished(false, value) }
            // A later call of the app decides otherwise.
            guard now.callCount == before?.callCount else { return }
            if isSuccess || !now.isEstablished {
                self.removeSubscription(to: value)
            } else {
                // The server continues to send the values.
                self.setWanted(true, value)
            }
        }
    }

    /// Ends the subscriptions to values in a range of handles, because the server has changed its attributes: it may
    /// send values of other attributes under these handles. Nothing is written to the server. Called on the loop.
    func endSubscriptions(
        in range: HandleRange,
        of peripheral: UUID,
        on link: LinkIdentifier,
        _ host: isolated BluetoothHost
    ) {
        let subscriptions = state.connections[peripheral]?.subscriptions ?? [:]
        for (handle, subscription) in subscriptions where subscription.handles.overlaps(range) {
            state.connections[peripheral]?.subscriptions[handle] = nil
            open?.links.removeSubscriber(subscription.subscriber, of: handle, on: link, host)
        }
    }

    // MARK: The configuration

    /// Writes the configuration of a value.
    ///
    /// - Parameter ended: called on the loop with whether the server has agreed, before `completion`.
    private func write(
        _ configuration: ClientConfiguration,
        of value: RemoteValue,
        on host: isolated BluetoothHost,
        _ completion: @escaping Completion<Void>,
        ended: @escaping @Sendable (Bool) -> Void
    ) {
        let procedure = SetClientConfiguration(configuration, inDescriptors: value.descriptors)
        host.begin(procedure, on: value.link, endingOnChangeOf: value.handles) { result in
            let isSuccess = if case .success = result { true } else { false }
            ended(isSuccess)
            self.answer(result, completion)
        }
    }

    // MARK: State

    private func subscription(to value: RemoteValue) -> Subscription? {
        state.connections[value.peripheral]?.subscriptions[value.handle]
    }

    /// Counts a call of the app that configures a value.
    private func noteCall(of value: RemoteValue) {
        state.connections[value.peripheral]?.subscriptions[value.handle]?.callCount += 1
    }

    private func setEstablished(_ isEstablished: Bool, _ value: RemoteValue) {
        state.connections[value.peripheral]?.subscriptions[value.handle]?.isEstablished = isEstablished
    }

    /// Notes for all users of the link whether this connection wants a value.
    private func setWanted(_ isWanted: Bool, _ value: RemoteValue) {
        let user = LinkUser(central: self, peripheral: value.peripheral)
        if isWanted {
            open?.links.subscribe(user, to: value.handle, descriptors: value.descriptors, on: value.link)
        } else {
            open?.links.unsubscribe(user, from: value.handle, on: value.link)
        }
    }

    /// Stops the delivery of a value to the manager. Called on the loop.
    private func removeSubscription(to value: RemoteValue) {
        guard let open,
            let subscription = state.connections[value.peripheral]?.subscriptions.removeValue(forKey: value.handle)
        else { return }
        open.host.assumeIsolated { host in
            open.links.removeSubscriber(subscription.subscriber, of: value.handle, on: value.link, host)
        }
    }
}
