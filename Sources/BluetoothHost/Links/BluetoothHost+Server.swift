import BLEATT
import BLEByteCoding
import BLEGATT
import BLEHCI
import BLESMP
import BluetoothTypes

/// An event of the server role, caused by a client.
public enum ServerRoleEvent: Sendable {
    /// A client has connected. Its address is not verified yet.
    case connected(LinkIdentifier, DeviceAddress)
    /// A client has disconnected.
    case disconnected(LinkIdentifier, DisconnectionReason)
    /// The ATT_MTU of a client has changed, in bytes.
    case mtuChanged(LinkIdentifier, Int)
    /// A client has read or written a value, or has changed a subscription.
    case access(LinkIdentifier, BLEGATT.ServerEvent)
}

/// Receives a client's access to a value that an app provides. The app answers with
/// ``BluetoothHost/answer(_:on:with:)``.
package typealias AccessHandler = @Sendable (LinkIdentifier, AccessRequest) -> Void

/// Receives the question whether a client is authorized for an access. The app answers with
/// ``BluetoothHost/authorize(_:on:isAuthorized:)``.
package typealias Authorizer = @Sendable (LinkIdentifier, AuthorizationRequest) -> Void

// The services of the host, and the accesses that apps answer.
extension BluetoothHost {
    /// Performs an action of a link's server session, after the session's effects.
    func perform(_ action: ServerAction, _ buffer: consuming PacketBuffer, on link: Link) {
        switch action {
        case .respond:
            send(consume buffer, .reply, on: .attribute, of: link)
        case .nothing:
            sender.recycle(buffer)
        case .access(let request):
            sender.recycle(buffer)
            ask(request, on: link)
        case .authorize(let request):
            sender.recycle(buffer)
            if services.authorizer != nil { deliver(.authorization(link.identifier, request)) }
        case .verify(let write):
            sender.recycle(buffer)
            verify(write, on: link)
        }
    }

    // MARK: The app's values

    private func ask(_ request: AccessRequest, on link: Link) {
        let handler =
            switch request.kind {
            case .read(let handle, _): services.accessHandler(of: handle)
            case .write(let write, _): services.accessHandler(of: write.handle)
            case .execute(let writes): services.accessHandler(of: writes.map(\.handle))
            }
        guard let handler else {
            return answer(request.identifier, on: link.identifier, with: .failure(.unlikelyError))
        }
        deliverWhileReceiving(.access(handler, link.identifier, request))
    }

    /// Sends an app's answer to a client. Does nothing if the client has disconnected or no longer waits.
    package func answer(
        _ request: UInt64,
        on identifier: LinkIdentifier,
        with result: Result<[UInt8], ATTErrorCode>
    ) {
        submit(.access(request, result), on: identifier)
    }

    /// Sends an app's answer to a client, from any thread; see ``answer(_:on:with:)``.
    package nonisolated func submitAnswer(
        _ request: UInt64,
        on identifier: LinkIdentifier,
        with result: Result<[UInt8], ATTErrorCode>
    ) {
        call(.answer, AccessAnswer(request: request, link: identifier, result: result))
    }

    /// Sends an app's answer after the values that the app sent before it.
    private func submit(_ answer: AnswerCall, on identifier: LinkIdentifier) {
        guard let link = links[identifier] else { return }
        if answerOnEnhancedBearer(answer, of: link) { return endInput() }
        if link.att.lanes.server.isEmpty {
            send(answer, on: link)
        } else {
            submit(.answer(answer), on: link)
        }
        endInput()
    }

    private func send(_ answer: AnswerCall, on link: Link) {
        var buffer = sender.takeBuffer()
        let action = link.att.answer(answer, into: &buffer)
        performServerEffects(of: link)
        perform(action, consume buffer, on: link)
    }

    /// Sets the closure that decides on accesses that need authorization; it answers with
    /// ``BluetoothHost/authorize(_:on:isAuthorized:)``. Nil refuses all such accesses, also those that wait for a
    /// decision.
    ///
    /// The closure does not decide on accesses that wait already: those wait for the decision of the previous one. A
    /// closed host does not keep it.
    package func setAuthorizer(_ authorizer: Authorizer?) {
        guard !calls.hasEnded else { return }
        let previous = services.setAuthorizer(authorizer)
        for link in links.values { link.session.asksForAuthorization = authorizer != nil }
        if authorizer == nil { refuseAuthorizations() }
        withExtendedLifetime(previous) {}
    }

    /// Refuses the accesses that wait for the app's decision. A later decision about them has no effect.
    private func refuseAuthorizations() {
        for link in links.values {
            link.att.enhanced?.removeAuthorizationsOfOrphans()
            let bearers = link.att.enhanced?.bearers ?? []
            let requests = [link.session.awaitedAuthorization] + bearers.map { $0.serverState.awaitedAuthorization }
            for request in requests.compactMap(\.self) {
                authorize(request, on: link.identifier, isAuthorized: false)
            }
        }
    }

    /// Applies the app's decision about an access, which stays valid until the client's link ends. Does nothing if the
    /// client no longer waits.
    package func authorize(_ request: UInt64, on identifier: LinkIdentifier, isAuthorized: Bool) {
        submit(.authorization(request, isAuthorized: isAuthorized), on: identifier)
    }

    /// Publishes services.
    ///
    /// - Parameters:
    ///   - owner: the object that receives the accesses, if it publishes services by several calls. Only then can a
    ///     client write values of several calls together.
    ///   - handler: receives the accesses to values that the app provides.
    package func publish(
        _ definitions: [ServiceDefinition],
        owner: ObjectIdentifier? = nil,
        handler: AccessHandler? = nil
    ) throws(DatabaseError) -> [PublishedService] {
        let published = try services.server.publish(definitions)
        submissions.properties.add(published, definitions)
        services.setAccessHandler(handler, of: published, owner: owner)
        if !links.isEmpty {
            // The caller knows the handles then.
            loop.execute { [weak self] in self?.assumeIsolated { $0.restoreConfigurations() } }
        }
        if let start = published.map(\.handle).min(), let end = published.map(\.endHandle).max() {
            servicesChanged(HandleRange(start: start, end: end))
        }
        return published
    }

    /// Restores the configurations of bonded clients that have waited for services.
    private func restoreConfigurations() {
        for link in links.values {
            link.session.servicesPublished()
            performServerEffects(of: link)
        }
        endInput()
    }

    /// Removes a service. Does nothing if it was removed before, also if another service has its handles.
    package func remove(_ service: PublishedService) {
        if services.server.isPublished(service) { removeService(at: service.handle) }
    }

    package func removeService(at handle: AttributeHandle) {
        guard let changed = services.server.changedRange(removingServiceAt: handle),
            let range = services.server.remove(serviceAt: handle)
        else { return }
        submissions.properties.remove(range)
        let removed = services.removeAccessHandlers(in: range)
        for link in links.values {
            link.session.servicesRemoved(in: range)
            performServerEffects(of: link)
            dropValues(in: range, of: link)
        }
        servicesChanged(changed)
        refuseAccesses(in: range)
        withExtendedLifetime(removed) {}
    }

    /// Drops the values of a removed service that wait to be sent. Their calls end as if the client had unsubscribed.
    private func dropValues(in range: HandleRange, of link: Link) {
        guard range.isValid else { return }
        let calls = link.att.removeValues(in: range.start...range.end)
        guard !calls.isEmpty else { return }
        for call in calls { end(call.caller, .success(())) }
        // The next call may not have to wait.
        pumpLanes(of: link)
    }

    /// Answers the requests that wait for an app whose service was removed. Otherwise the client would wait until its
    /// transaction times out, and then end the link (Vol 3, Part F, 3.3.3).
    private func refuseAccesses(in range: HandleRange) {
        for link in links.values {
            let bearers = link.att.enhanced?.bearers ?? []
            let requests =
                [link.session.awaitedAnswer(in: range)] + bearers.map { $0.serverState.awaitedAnswer(in: range) }
            for request in requests.compactMap(\.self) {
                answer(request, on: link.identifier, with: .failure(.unlikelyError))
            }
        }
    }

    package func value(of handle: AttributeHandle) -> [UInt8]? {
        services.server.value(of: handle)
    }

    /// Sets a value that the server stores.
    ///
    /// - Returns: false if there is no such value, or the new one is too long.
    package func setValue(_ value: [UInt8], of handle: AttributeHandle) -> Bool {
        services.server.setValue(value, of: handle)
    }

    /// Enables events of the link's server session only while there is an observer.
    func reportServerEvents(of link: Link) {
        link.session.reportsEvents = !observers.server.isEmpty
    }
}

/// An app's answer to an access.
private struct AccessAnswer: Sendable {
    let request: UInt64
    let link: LinkIdentifier
    let result: Result<[UInt8], ATTErrorCode>
}

extension LoopFunction<AccessAnswer> {
    fileprivate static let answer = LoopFunction { $0.answer($1.request, on: $1.link, with: $1.result) }
}
