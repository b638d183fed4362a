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

/// Takes a question whether a client may have what needs authorization; answered through
/// ``BluetoothHost/authorize(_:on:isAuthorized:)``.
package typealias Authorizer = @Sendable (LinkIdentifier, AuthorizationRequest) -> Void

// What the host serves, and what its apps answer for.
extension BluetoothHost {
    /// The server with its two services, and the handle of Central Address Resolution.
    static func makeServer(_ configuration: Configuration) -> (GATT.Server, addressResolution: AttributeHandle?) {
        let server = GATT.Server(minimumKeySize: configuration.security.minimumKeySize) { key, message in
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
        let services = try? server.publish([
            .genericAccess(
                deviceName: configuration.deviceName,
                appearance: configuration.appearance,
                preferredParameters: (minimum: 12, maximum: 24, latency: 0, timeout: 400),
                supportsAddressResolution: false
            ),
            .genericAttribute,
        ])
        let addressResolution = services?.first?.characteristics.first { $0.uuid == .centralAddressResolution }
        return (server, addressResolution?.valueHandle)
    }

    /// Performs what a link's server session has decided, after its effects.
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
            if authorizer != nil { deliver(.authorization(link.identifier, request)) }
        case .verify(let write):
            sender.recycle(buffer)
            verify(write, on: link)
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
        deliverWhileReceiving(.access(handler, link.identifier, request))
    }

    /// Gives a client the app's answer. Nothing happens where the client is gone or waits no more.
    package func answer(
        _ request: UInt64,
        on identifier: LinkIdentifier,
        with result: Result<[UInt8], ATT.ErrorCode>
    ) {
        submit(.access(request, result), on: identifier)
    }

    /// Gives a client the app's answer, from any thread; see ``answer(_:on:with:)``.
    package nonisolated func submitAnswer(
        _ request: UInt64,
        on identifier: LinkIdentifier,
        with result: Result<[UInt8], ATT.ErrorCode>
    ) {
        call(.answer, AccessAnswer(request: request, link: identifier, result: result))
    }

    /// Sends an app's answer behind the values that the app sent before it.
    private func submit(_ answer: AnswerCall, on identifier: LinkIdentifier) {
        guard let link = links[identifier] else { return }
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

    /// Says who decides whether a client may have what needs authorization; answered through
    /// ``BluetoothHost/authorize(_:on:isAuthorized:)``. Where it is nil, what needs authorization is refused.
    package func setAuthorizer(_ authorizer: Authorizer?) {
        self.authorizer = authorizer
        for link in links.values { link.session.asksForAuthorization = authorizer != nil }
    }

    /// Gives a client the app's decision, which holds until its link ends. Nothing happens where it waits no more.
    package func authorize(_ request: UInt64, on identifier: LinkIdentifier, isAuthorized: Bool) {
        submit(.authorization(request, isAuthorized: isAuthorized), on: identifier)
    }

    /// Publishes services; accesses to their values that are the app's go to `handler`.
    package func publish(
        _ definitions: [ServiceDefinition],
        handler: AccessHandler? = nil
    ) throws(DatabaseError) -> [PublishedService] {
        let published = try server.publish(definitions)
        publishedProperties.add(published, definitions)
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
        publishedProperties.remove(range)
        for handle in accessHandlers.keys where handle >= range.start && handle <= range.end {
            accessHandlers[handle] = nil
        }
        for link in links.values {
            link.session.servicesRemoved(in: range)
            performServerEffects(of: link)
        }
        servicesChanged(range)
    }

    package func value(of handle: AttributeHandle) -> [UInt8]? {
        server.value(of: handle)
    }

    /// Sets a value that the server keeps; false where there is none, or it is too long.
    package func setValue(_ value: [UInt8], of handle: AttributeHandle) -> Bool {
        server.setValue(value, of: handle)
    }

    /// Makes the session of a link put out events only while there is an observer.
    func reportServerEvents(of link: Link) {
        link.session.reportsEvents = !serverObservers.isEmpty
    }
}

/// An app's answer to an access.
private struct AccessAnswer: Sendable {
    let request: UInt64
    let link: LinkIdentifier
    let result: Result<[UInt8], ATT.ErrorCode>
}

extension LoopFunction<AccessAnswer> {
    fileprivate static let answer = LoopFunction { $0.answer($1.request, on: $1.link, with: $1.result) }
}
