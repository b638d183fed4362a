import ATT
import BluetoothTypes
import ByteCoding
import GATT

/// A server with an attribute of every kind, to whose one client each packet of a script belongs. The app answers at once,
/// late or not at all, as the packet's choice says.
func fuzzServer(_ input: [UInt8]) {
    let server = Server()
    guard (try? server.publish(services)) != nil else { return }
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
        if packet.choice & 0xC0 == 0xC0 { _ = server.remove(serviceAt: AttributeHandle(rawValue: 0x0010)) }
    }
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
        require(buffer.count <= session.mtu, "a response of \(buffer.count) octets with an ATT_MTU of \(session.mtu)")
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

/// A client whose procedures are answered by the packets of a script, one after the other: whatever comes, each procedure
/// ends, and never asks more of a server than that gives.
func fuzzClient(_ input: [UInt8]) {
    let client = GATT.Client()
    var bearer = Bearer()
    var buffer = PacketBuffer(capacity: 1024)
    let now = Instant(nanoseconds: 0)
    let handle = AttributeHandle(rawValue: 3)
    let range = HandleRange(start: handle, end: AttributeHandle(rawValue: 0xFFFF))
    var unfinished = 0
    func perform(_ procedure: some ClientProcedure) {
        unfinished += 1
        client.perform(procedure) { _ in unfinished -= 1 }
    }
    perform(DiscoverAll())
    perform(DiscoverServicesByUUID(uuid: "180F"))
    perform(FindIncludedServices(range: range))
    perform(DiscoverCharacteristics(range: range))
    perform(DiscoverDescriptors(range: range))
    perform(ReadLongValue(handle: handle))
    perform(ReadUsingUUID(uuid: "2A00"))
    perform(ReadMultipleValues(handles: [handle, handle]))
    perform(ReadMultipleVariableValues(handles: [handle, handle]))
    perform(PreparedWrites([.init(handle: handle, value: [UInt8](repeating: 1, count: 60))]))
    perform(WriteWholeValue(handle: handle, value: [UInt8](repeating: 1, count: 60)))

    func send(_ opcode: Opcode?) {
        guard let opcode else { return }
        require(buffer.count <= bearer.mtu, "a request of \(buffer.count) octets with an ATT_MTU of \(bearer.mtu)")
        try? bearer.requestWillBeSent(opcode, at: now)
    }
    send(client.nextRequest(mtu: bearer.mtu, into: &buffer))
    for packet in Script(input).packets {
        guard case .response = bearer.receive(packet.octets.rawSpan) else { continue }
        buffer.reset()
        send(client.receive(packet.octets.rawSpan, mtu: bearer.mtu, into: &buffer))
    }
    client.close()
    require(unfinished == 0, "\(unfinished) procedures of a client that is closed are not at their end")
}
