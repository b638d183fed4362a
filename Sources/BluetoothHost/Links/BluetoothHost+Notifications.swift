import ATT
import BluetoothTypes
import ByteCoding
import GATT
import HCI

// What the server sends by itself.
extension BluetoothHost {
    /// The clients that want to be sent the characteristic whose value has this handle, and may be: where it asks for a
    /// secure link, theirs is one now.
    package func subscribers(of handle: AttributeHandle, _ configuration: ClientConfiguration) -> [LinkIdentifier] {
        subscriptions.links(configuring: handle, among: links.values, server)
            .filter { $0.session.sendable(of: handle).contains(configuration) }
            .map(\.identifier)
    }

    /// Notifies those clients that want it and whose links are what the characteristic asks for: at once where there is room,
    /// else as soon as there is, each for itself, so that a slow one holds no other up. One that goes away meanwhile is sent
    /// nothing. From other threads than the loop's, some notifications may be posted, and the call returns before they are
    /// sent.
    ///
    /// - Parameter clients: nil for all.
    package nonisolated(nonsending) func notify(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to clients: [LinkIdentifier]? = nil
    ) async {
        var notification = Notification(value: value, handle: handle, clients: clients, caller: nil)
        if !isOnLoop, post(notification) { return }
        await withUnsafeContinuation { continuation in
            notification.caller = continuation
            call(.beginNotifying, notification)
        }
    }

    func begin(_ notification: borrowing Notification) {
        var crowded: [Link] = []
        for link in subscriptions.links(configuring: notification.handle, among: links.values, server)
        where notification.clients?.contains(link.identifier) ?? true {
            if hasRoom(on: link) {
                notify(notification.value, of: notification.handle, on: link)
            } else {
                crowded.append(link)
            }
        }
        if crowded.isEmpty {
            end(notification)
        } else {
            notifyInTime(copy notification, crowded)
        }
        sendPending()
    }

    /// All clients have been sent the notification that are to be.
    private func end(_ notification: borrowing Notification) {
        if let caller = notification.caller { caller.resume() } else { postbox.sentNotification() }
    }

    private func notifyInTime(_ notification: Notification, _ crowded: [Link]) {
        let countdown = Countdown(crowded.count)
        for link in crowded {
            let identifier = link.identifier
            link.addRoomWaiter(isPosted: notification.caller == nil) { host in
                if let link = host.links[identifier] {
                    host.notify(notification.value, of: notification.handle, on: link)
                }
                if countdown.countOne() { host.end(notification) }
            }
        }
    }

    private func notify(_ value: [UInt8], of handle: AttributeHandle, on link: Link) {
        guard link.session.sendable(of: handle).contains(.notification) else { return }
        var buffer = pool.take()
        link.session.notify(value.rawSpan, of: handle, into: &buffer)
        send(consume buffer, on: .attribute, of: link)
    }

    /// Indicates to one client and waits for its confirmation; nothing is sent where it does not want to be indicated to, or
    /// its link is not what the characteristic asks for.
    package func indicate(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to identifier: LinkIdentifier
    ) async throws(HostError) {
        // What was posted before is sent before.
        if try link(identifier).waitingPosts > 0 { try await write(on: identifier, awaitsProof: false) { _, _ in } }
        try await outcome { (completion: @escaping Completion<Void>) throws(HostError) in
            let link = try link(identifier)
            guard link.session.sendable(of: handle).contains(.indication) else { return completion(.success(())) }
            queueIndication(value, of: handle, on: link, completion: completion)
            sendPending()
        }.get()
    }

    /// Indicates to those clients that want it and waits for all of them to confirm; a slow one holds no other up. One that
    /// goes away meanwhile is no error.
    ///
    /// - Parameter clients: nil for all.
    package func indicate(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to clients: [LinkIdentifier]?
    ) async throws(HostError) {
        let receivers = subscribers(of: handle, .indication).filter { clients?.contains($0) ?? true }
        let failure = await withTaskGroup(of: HostError?.self) { group in
            for receiver in receivers {
                group.addTask { await self.failureOfIndicating(value, of: handle, to: receiver) }
            }
            var failure: HostError?
            for await other in group { failure = failure ?? other }
            return failure
        }
        if let failure { throw failure }
    }

    private func failureOfIndicating(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to identifier: LinkIdentifier
    ) async -> HostError? {
        do throws(HostError) {
            try await indicate(value, of: handle, to: identifier)
            return nil
        } catch .disconnected {
            return nil
        } catch {
            return error
        }
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
        guard !link.isIndicationSent, let next = firstSendableIndication(of: link) else { return }
        do throws(BearerError) {
            try link.bearer.indicationWillBeSent(at: loop.now)
        } catch {
            return
        }
        link.isIndicationSent = true
        var buffer = pool.take()
        link.session.indicate(next.value.rawSpan, of: next.handle, into: &buffer)
        send(consume buffer, on: .attribute, of: link)
        armTimer(of: link)
    }

    /// The next indication to send. What the client may no longer be sent, though it could when it was queued, is done with.
    private func firstSendableIndication(of link: Link) -> Link.Indication? {
        while let next = link.indications.first {
            if link.session.sendable(of: next.handle).contains(.indication) { return next }
            link.indications.removeFirst()
            next.completion(.success(()))
        }
        return nil
    }

    func indicationConfirmed(on link: Link) {
        guard link.isIndicationSent, let done = link.indications.popFirst() else { return }
        link.isIndicationSent = false
        done.completion(.success(()))
        sendNextIndication(on: link)
    }

    // MARK: Service Changed

    /// Tells the clients that want to know that the services in a range are others (Vol 3, Part G, 7.1).
    func servicesChanged(_ range: HandleRange) {
        for link in links.values { indicateServiceChanged(range, to: link) }
        sendPending()
    }

    func indicateServiceChanged(_ range: HandleRange, to link: Link) {
        guard let handle = server.serviceChanged, link.session.sendable(of: handle).contains(.indication) else {
            return
        }
        let value = PacketBuffer.bytes {
            $0.append(range.start.rawValue)
            $0.append(range.end.rawValue)
        }
        queueIndication(value, of: handle, on: link) { [weak link] result in
            if case .success = result { link?.session.serviceChangedConfirmed() }
        }
    }
}

/// A value that an app wants clients to be sent.
struct Notification: Sendable {
    let value: [UInt8]
    let handle: AttributeHandle
    let clients: [LinkIdentifier]?
    /// Nil where it was posted: nobody waits for it.
    var caller: UnsafeContinuation<Void, Never>?
}

extension LoopFunction<Notification> {
    fileprivate static let beginNotifying = LoopFunction { $0.begin($1) }
}

/// Counts down to the last of several. Used on the loop only.
private final class Countdown: @unchecked Sendable {
    private var left: Int

    init(_ count: Int) {
        left = count
    }

    /// Whether it was the last.
    func countOne() -> Bool {
        left -= 1
        return left == 0
    }
}
