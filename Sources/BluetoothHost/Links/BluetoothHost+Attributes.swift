import ATT
import BluetoothTypes
import ByteCoding
import Cryptography
import GATT
import HCI
import SMP

/// What clients do on this host's server.
public enum ServerRoleEvent: Sendable {
    case connected(LinkIdentifier, DeviceAddress)
    case disconnected(LinkIdentifier, DisconnectionReason)
    case mtuChanged(LinkIdentifier, Int)
    case access(LinkIdentifier, GATT.ServerEvent)
}

/// Takes an access to a value that is the app's; answered through ``BluetoothHost/answer(_:on:with:)``.
package typealias AccessHandler = @Sendable (LinkIdentifier, AccessRequest) -> Void

extension BluetoothHost {
    static func makeServer(_ configuration: Configuration) -> GATT.Server {
        let server = GATT.Server { key, message in
            var code: [UInt8] = []
            code.append(
                mostSignificantFirst: SwiftCryptography().authenticationCode(
                    of: message,
                    key: UInt128(mostSignificantFirst: key)
                )
            )
            return code
        }
        // Two services of fixed form in an empty database: there are handles for them.
        _ = try? server.publish([
            .genericAccess(
                deviceName: configuration.deviceName,
                appearance: configuration.appearance,
                preferredParameters: (minimum: 12, maximum: 24, latency: 0, timeout: 400),
                supportsAddressResolution: false
            ),
            .genericAttribute,
        ])
        return server
    }

    // MARK: PDUs

    func receiveAttributePDU(_ pdu: RawSpan, on link: Link) {
        switch link.bearer.receive(pdu) {
        case .request(.exchangeMTURequest): answerMTURequest(pdu, on: link)
        case .request, .command:
            var buffer = pool.take()
            let action = link.session.receive(pdu, into: &buffer)
            perform(action, buffer, on: link)
        case .unsupportedRequest(let opcode):
            var buffer = pool.take()
            ErrorResponse(requestOpcode: opcode, handle: .invalid, error: .requestNotSupported).encode(into: &buffer)
            send(buffer, on: .attribute, of: link)
        case .response:
            var buffer = pool.take()
            let next = link.client.receive(pdu, mtu: link.bearer.mtu, into: &buffer)
            sendRequest(next, buffer, on: link)
        case .notification(let opcode): receiveNotification(opcode, pdu, on: link)
        case .indication: receiveIndication(pdu, on: link)
        case .confirmation: indicationConfirmed(on: link)
        case .violation(let violation):
            metrics.malformed.increment()
            logger.debug("ATT PDU from \(link.peer) dropped: \(violation)")
        case .ignoredCommand, .dead: break
        }
    }

    private func answerMTURequest(_ pdu: RawSpan, on link: Link) {
        var buffer = pool.take()
        link.bearer.responseWillBeSent()
        if let request = try? ExchangeMTURequest(decoding: pdu) {
            ExchangeMTUResponse(serverReceiveMTU: UInt16(link.bearer.offeredMTU)).encode(into: &buffer)
            setMTU(peer: request.clientReceiveMTU, of: link)
        } else {
            ErrorResponse(requestOpcode: ATT.Opcode.exchangeMTURequest.rawValue, handle: .invalid, error: .invalidPDU)
                .encode(into: &buffer)
        }
        send(buffer, on: .attribute, of: link)
    }

    private func perform(_ action: ServerAction, _ buffer: consuming PacketBuffer, on link: Link) {
        switch action {
        case .respond:
            link.bearer.responseWillBeSent()
            send(buffer, on: .attribute, of: link)
        case .nothing:
            pool.giveBack(buffer)
        case .access(let request):
            pool.giveBack(buffer)
            ask(request, on: link)
        }
    }

    // MARK: The app's values

    private func ask(_ request: AccessRequest, on link: Link) {
        let handle =
            switch request.kind {
            case .read(let handle, _): handle
            case .write(let write, _): write.handle
            case .execute(let writes): writes.first?.handle ?? .invalid
            }
        guard let handler = accessHandlers[handle] else {
            return answer(request.identifier, on: link.identifier, with: .failure(.unlikelyError))
        }
        handler(link.identifier, request)
    }

    /// Gives a client the app's answer. Nothing happens where the client is gone or waits no more.
    package func answer(
        _ request: UInt64,
        on identifier: LinkIdentifier,
        with result: Result<[UInt8], ATT.ErrorCode>
    ) {
        guard let link = linksByIdentifier[identifier] else { return }
        var buffer = pool.take()
        let action = link.session.complete(request, with: result, into: &buffer)
        perform(action, buffer, on: link)
        sendPending()
    }

    /// Publishes services; accesses to their values that are the app's go to `handler`.
    package func publish(
        _ definitions: [ServiceDefinition],
        handler: AccessHandler? = nil
    ) throws(DatabaseError) -> [PublishedService] {
        let published = try server.publish(definitions)
        for service in published {
            for characteristic in service.characteristics {
                accessHandlers[characteristic.valueHandle] = handler
                for descriptor in characteristic.descriptorHandles { accessHandlers[descriptor] = handler }
            }
        }
        if let start = published.map(\.handle).min(), let end = published.map(\.endHandle).max() {
            servicesChanged(HandleRange(start: start, end: end))
        }
        return published
    }

    package func removeService(at handle: AttributeHandle) {
        guard let range = server.remove(serviceAt: handle) else { return }
        for handle in accessHandlers.keys where handle >= range.start && handle <= range.end {
            accessHandlers[handle] = nil
        }
        servicesChanged(range)
    }

    /// Tells the clients that want to know (Vol 3, Part G, 7.1).
    private func servicesChanged(_ range: HandleRange) {
        guard let handle = server.serviceChanged else { return }
        let value = PacketBuffer.bytes {
            $0.append(range.start.rawValue)
            $0.append(range.end.rawValue)
        }
        for link in links.values where link.session.configuration(of: handle).contains(.indication) {
            queueIndication(value, of: handle, on: link) { [weak link] result in
                if case .success = result { link?.session.serviceChangedConfirmed() }
            }
        }
        sendPending()
    }

    package func value(of handle: AttributeHandle) -> [UInt8]? {
        server.value(of: handle)
    }

    /// Sets a value that the server keeps; false where there is none, or it is too long.
    package func setValue(_ value: [UInt8], of handle: AttributeHandle) -> Bool {
        server.setValue(value, of: handle)
    }

    func serverEvent(_ event: GATT.ServerEvent, on identifier: LinkIdentifier) {
        emit(.access(identifier, event))
    }

    // MARK: Notifications and indications to clients

    /// The clients that want to be sent the characteristic whose value has this handle.
    package func subscribers(of handle: AttributeHandle, _ configuration: ClientConfiguration) -> [LinkIdentifier] {
        links.values.filter { $0.session.configuration(of: handle).contains(configuration) }
            .map(\.identifier).sorted { $0.value < $1.value }
    }

    /// Notifies one client, once there is room; nothing is sent where it does not want to be notified.
    package func notify(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to identifier: LinkIdentifier
    ) async throws(HostError) {
        try await waitForRoom(on: identifier)
        let link = try link(identifier)
        guard link.session.configuration(of: handle).contains(.notification) else { return }
        var buffer = pool.take()
        link.session.notify(value.rawSpan, of: handle, into: &buffer)
        send(buffer, on: .attribute, of: link)
        sendPending()
    }

    /// Indicates to one client and waits for its confirmation; nothing is sent where it does not want to be indicated to.
    package func indicate(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to identifier: LinkIdentifier
    ) async throws(HostError) {
        let link = try link(identifier)
        guard link.session.configuration(of: handle).contains(.indication) else { return }
        try await withCheckedContinuation { (continuation: CheckedContinuation<Result<Void, HostError>, Never>) in
            queueIndication(value, of: handle, on: link) { continuation.resume(returning: $0) }
            sendPending()
        }.get()
    }

    private func queueIndication(
        _ value: [UInt8],
        of handle: AttributeHandle,
        on link: Link,
        completion: @escaping (Result<Void, HostError>) -> Void
    ) {
        link.indications.append(Link.Indication(handle: handle, value: value, completion: completion))
        sendNextIndication(on: link)
    }

    private func sendNextIndication(on link: Link) {
        guard !link.isIndicationSent, let next = link.indications.first else { return }
        do throws(BearerError) {
            try link.bearer.indicationWillBeSent(at: loop.now)
        } catch {
            return
        }
        link.isIndicationSent = true
        var buffer = pool.take()
        link.session.indicate(next.value.rawSpan, of: next.handle, into: &buffer)
        send(buffer, on: .attribute, of: link)
        armTimer(of: link)
    }

    private func indicationConfirmed(on link: Link) {
        guard link.isIndicationSent, let done = link.indications.popFirst() else { return }
        link.isIndicationSent = false
        done.completion(.success(()))
        sendNextIndication(on: link)
    }

    // MARK: Client

    /// Runs a client's procedure; cancelling the task gives it up.
    package func perform<P: ClientProcedure>(
        _ procedure: P,
        on identifier: LinkIdentifier
    ) async throws(HostError) -> P.Output {
        let link = try link(identifier)
        let cancellation = Cancellation()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Result<P.Output, ClientError>, Never>) in
                cancellation.procedure = link.client.perform(procedure) { continuation.resume(returning: $0) }
                pumpClient(of: link)
                sendPending()
                if Task.isCancelled { cancelProcedure(cancellation, on: identifier) }
            }
        } onCancel: {
            spawn { $0.cancelProcedure(cancellation, on: identifier) }
        }
        switch result {
        case .success(let output): return output
        case .failure(let error): throw hostError(error, on: identifier)
        }
    }

    /// Carries a procedure's name to where it is cancelled; used on the loop only.
    private final class Cancellation: @unchecked Sendable {
        var procedure: ProcedureIdentifier?
    }

    private func cancelProcedure(_ cancellation: Cancellation, on identifier: LinkIdentifier) {
        guard let procedure = cancellation.procedure else { return }
        linksByIdentifier[identifier]?.client.cancel(procedure)
    }

    func pumpClient(of link: Link) {
        guard link.bearer.awaitedRequest == nil, !link.bearer.isDead else { return }
        var buffer = pool.take()
        let opcode = link.client.nextRequest(mtu: link.bearer.mtu, into: &buffer)
        sendRequest(opcode, buffer, on: link)
    }

    private func sendRequest(_ opcode: ATT.Opcode?, _ buffer: consuming PacketBuffer, on link: Link) {
        guard let opcode else { return pool.giveBack(buffer) }
        do throws(BearerError) {
            try link.bearer.requestWillBeSent(opcode, at: loop.now)
            send(buffer, on: .attribute, of: link)
            armTimer(of: link)
        } catch {
            pool.giveBack(buffer)
            link.client.close()
        }
    }

    /// Writes without a response, once there is room (Vol 3, Part G, 4.9.1).
    package func writeWithoutResponse(
        _ value: [UInt8],
        to handle: AttributeHandle,
        on identifier: LinkIdentifier
    ) async throws(HostError) {
        try await waitForRoom(on: identifier)
        let link = try link(identifier)
        guard value.count <= link.bearer.mtu - 3 else {
            throw .invalidArgument(
                "a write without response carries at most \(link.bearer.mtu - 3) octets on this link, not \(value.count)"
            )
        }
        var buffer = pool.take()
        WriteCommand(handle: handle, value: value.rawSpan).encode(into: &buffer)
        send(buffer, on: .attribute, of: link)
        sendPending()
    }

    /// Waits until less than the configured number of frames wait on a link.
    private func waitForRoom(on identifier: LinkIdentifier) async throws(HostError) {
        let link = try link(identifier)
        guard
            link.outbound.fixedChannelFrameCount >= configuration.outboundFrameLimit || !link.roomWaiters.isEmpty
        else { return }
        await withCheckedContinuation { continuation in
            link.roomWaiters.append { continuation.resume() }
        }
    }

    /// Waits until all that was written on a link has been sent by the controller.
    package func flush(_ identifier: LinkIdentifier) async {
        guard let link = linksByIdentifier[identifier], !link.outbound.isDrained else { return }
        await withCheckedContinuation { continuation in
            link.drainWaiters.append { continuation.resume() }
        }
    }

    // MARK: Notifications and indications from servers

    /// Calls `deliver` on the loop with each value that the server sends of an attribute, until
    /// ``removeSubscriber(_:of:on:)`` or the link's end.
    package func addSubscriber(
        of handle: AttributeHandle,
        on identifier: LinkIdentifier,
        deliver: @escaping @Sendable (HandleValue) -> Void
    ) throws(HostError) -> UInt64 {
        let link = try link(identifier)
        let subscriber = makeIdentifier()
        link.subscribers[handle, default: [:]][subscriber] = deliver
        return subscriber
    }

    package func removeSubscriber(_ subscriber: UInt64, of handle: AttributeHandle, on identifier: LinkIdentifier) {
        guard let link = linksByIdentifier[identifier] else { return }
        link.subscribers[handle]?[subscriber] = nil
        if link.subscribers[handle]?.isEmpty == true { link.subscribers[handle] = nil }
    }

    private func receiveNotification(_ opcode: ATT.Opcode, _ pdu: RawSpan, on link: Link) {
        do throws(PacketDecodingError) {
            if opcode == .multipleHandleValueNotification {
                let notification = try MultipleHandleValueNotification(decoding: pdu)
                var entries = notification.entries
                while let entry = entries.next() {
                    deliver(entry.value, of: entry.handle, isIndication: false, on: link)
                }
            } else {
                let notification = try HandleValueNotification(decoding: pdu)
                deliver(notification.value, of: notification.handle, isIndication: false, on: link)
            }
        } catch {
            countMalformed("notification", error)
        }
    }

    /// An indication is confirmed once it has been delivered (Vol 3, Part G, 4.11).
    private func receiveIndication(_ pdu: RawSpan, on link: Link) {
        if let indication = try? HandleValueIndication(decoding: pdu) {
            deliver(indication.value, of: indication.handle, isIndication: true, on: link)
        }
        link.bearer.confirmationWillBeSent()
        var buffer = pool.take()
        HandleValueConfirmation().encode(into: &buffer)
        send(buffer, on: .attribute, of: link)
    }

    private func deliver(_ value: RawSpan, of handle: AttributeHandle, isIndication: Bool, on link: Link) {
        guard let subscribers = link.subscribers[handle] else { return }
        let value = HandleValue(
            handle: handle,
            value: [UInt8](copying: value),
            isIndication: isIndication,
            time: loop.now
        )
        for deliver in subscribers.values { deliver(value) }
    }
}
