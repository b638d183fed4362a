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
    /// nothing.
    ///
    /// - Parameter clients: nil for all.
    package nonisolated(nonsending) func notify(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to clients: [LinkIdentifier]? = nil
    ) async {
        await withUnsafeContinuation { continuation in
            let notification = Notification(value: value, handle: handle, clients: clients, continuation: continuation)
            call(.beginNotifying, notification)
        }
    }

    fileprivate func begin(_ notification: borrowing Notification) {
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
            notification.continuation.resume()
        } else {
            notifyInTime(copy notification, crowded)
        }
        sendPending()
    }

    private func notifyInTime(_ notification: Notification, _ crowded: [Link]) {
        let countdown = Countdown(crowded.count, notification.continuation)
        for link in crowded {
            let identifier = link.identifier
            link.roomWaiters.append { $0.notify(notification, on: identifier, countdown) }
        }
    }

    private func notify(_ notification: Notification, on identifier: LinkIdentifier, _ countdown: Countdown) {
        if let link = links[identifier] { notify(notification.value, of: notification.handle, on: link) }
        countdown.countOne()
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

private struct Notification: Sendable {
    let value: [UInt8]
    let handle: AttributeHandle
    let clients: [LinkIdentifier]?
    let continuation: UnsafeContinuation<Void, Never>
}

extension LoopFunction<Notification> {
    fileprivate static let beginNotifying = LoopFunction { $0.begin($1) }
}

/// Resumes a continuation when all of several are done. Used on the loop only.
private final class Countdown: @unchecked Sendable {
    private var left: Int
    private let continuation: UnsafeContinuation<Void, Never>

    init(_ count: Int, _ continuation: UnsafeContinuation<Void, Never>) {
        left = count
        self.continuation = continuation
    }

    func countOne() {
        left -= 1
        if left == 0 { continuation.resume() }
    }
}
