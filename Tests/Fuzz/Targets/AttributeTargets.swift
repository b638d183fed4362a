import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes

/// Fuzzes a server with an attribute of every kind and one client, which sends the packets of a script. The app answers
/// at once, late or not at all, according to the packet's choice.
func fuzzServer(_ input: [UInt8]) {
    let server = Server()
    _ = setUpAtOnce { try server.publish(services) }
    let session = ServerSession(server: server)
    var bearer = Bearer()
    var buffer = PacketBuffer(capacity: 1024)
    var waiting: [UInt64] = []

    for packet in Script(input).packets {
        session.security.isEncrypted = packet.choice & 1 != 0
        session.security.isAuthenticated = packet.choice & 2 != 0
        session.security.keySize = packet.choice & 4 != 0 ? 16 : 7
        if packet.choice & 8 != 0 { session.mtu = bearer.exchangeMTU(peer: UInt16(packet.delay) * 4) }
        buffer.reset()
        switch bearer.receive(packet.octets.rawSpan) {
        case .request, .command:
            let action = session.receive(packet.octets.rawSpan, into: &buffer)
            settle(action, &buffer, session, &bearer, &waiting)
        default: break
        }
        if packet.choice & 0x10 != 0, let request = waiting.popLast() {
            buffer.reset()
            let isRefused = packet.choice & 0x20 != 0
            let action = session.complete(
                request,
                with: isRefused ? .failure(.unlikelyError) : .success(packet.octets),
                into: &buffer
            )
            settle(action, &buffer, session, &bearer, &waiting)
        }
        if packet.delay & 1 != 0 { notify(packet, session, &buffer) }
        if packet.choice & 0xC0 == 0xC0 { _ = server.remove(serviceAt: AttributeHandle(rawValue: 0x0010)) }
    }
}

/// Changes a value and sends it to the client if it has subscribed. Then the client's stored state may be restored.
private func notify(_ packet: Script.Packet, _ session: ServerSession, _ buffer: inout PacketBuffer) {
    for handle in UInt16(1)...0x20 {
        let handle = AttributeHandle(rawValue: handle)
        let configuration = session.sendable(of: handle)
        buffer.reset()
        if configuration.contains(.notification) { session.notify(packet.octets.rawSpan, of: handle, into: &buffer) }
        require(buffer.count <= session.mtu, "a notification of \(buffer.count) bytes")
        buffer.reset()
        if configuration.contains(.indication) {
            session.indicate(packet.octets.rawSpan, of: handle, into: &buffer)
            if packet.delay & 2 != 0 { session.serviceChangedConfirmed(revision: session.databaseRevision) }
        }
        require(buffer.count <= session.mtu, "an indication of \(buffer.count) bytes")
    }
    if packet.delay & 4 != 0 { session.restore(session.persistentState) }
}

private func settle(
    _ action: ServerAction,
    _ buffer: inout PacketBuffer,
    _ session: ServerSession,
    _ bearer: inout Bearer,
    _ waiting: inout [UInt64]
) {
    switch action {
    case .respond:
        require(buffer.count <= session.mtu, "a response of \(buffer.count) bytes with an ATT_MTU of \(session.mtu)")
        bearer.responseWillBeSent()
    case .access(let request): waiting.append(request.identifier)
    case .authorize(let request):
        buffer.reset()
        let action = session.complete(request.identifier, isAuthorized: true, into: &buffer)
        settle(action, &buffer, session, &bearer, &waiting)
    case .verify(let write):
        settle(session.receiveVerified(write, .unauthenticated), &buffer, session, &bearer, &waiting)
    case .nothing: break
    }
}

private let services = [
    ServiceDefinition.genericAttribute,
    ServiceDefinition(
        uuid: "180F",
        handle: AttributeHandle(rawValue: 0x0010),
        characteristics: [
            CharacteristicDefinition(
                uuid: "2A19",
                properties: [.read, .notify],
                permissions: [.read],
                value: .stored([100])
            )
        ]
    ),
    ServiceDefinition(
        uuid: "B1E00001-5EED-4000-8000-C0FFEE000000",
        characteristics: [
            CharacteristicDefinition(
                uuid: "B1E00002-5EED-4000-8000-C0FFEE000000",
                properties: [.read, .write, .writeWithoutResponse, .indicate],
                permissions: [.read, .write],
                value: .handled
            ),
            CharacteristicDefinition(
                uuid: "FFE1",
                properties: [.read, .write, .notify, .indicate],
                permissions: [.read, .write],
                value: .stored([UInt8](repeating: 7, count: 300))
            ),
            CharacteristicDefinition(
                uuid: "FFE2",
                properties: [.read, .write],
                permissions: [.readEncrypted, .writeAuthenticated],
                value: .stored([])
            ),
        ]
    ),
]
