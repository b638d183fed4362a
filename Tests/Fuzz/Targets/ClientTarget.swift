import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes

/// Fuzzes a client: the packets of a script answer its procedures, one after the other. Whatever arrives, each
/// procedure ends, sends no request longer than ATT_MTU, and waits only while a request is open.
///
/// The first packet's choice selects the first procedure, and its delay whether the client validates a cache.
func fuzzClient(_ input: [UInt8]) {
    let script = Script(input)
    var fuzzed = FuzzedClient()
    if let first = script.packets.first, first.delay & 1 != 0 { fuzzed.validate(first.delay) }
    fuzzed.performAll(beginningWith: script.packets.first?.choice ?? 0)
    for packet in script.packets { fuzzed.take(packet) }
    fuzzed.close()
}

private struct FuzzedClient {
    private let client = BLEGATT.Client()
    private var bearer = Bearer()
    private var buffer = PacketBuffer(capacity: 1024)
    /// The number of procedures that have not ended.
    private var unfinished = 0
    private var elevationCount = 0
    private let now = Instant(nanoseconds: 0)

    /// Makes the client discover the database, or validate a cache that may be outdated.
    func validate(_ choice: UInt8) {
        let service = DiscoveredService(
            uuid: "180F",
            isPrimary: true,
            handle: AttributeHandle(rawValue: 1),
            endHandle: AttributeHandle(rawValue: 5)
        )
        client.validate(choice & 2 == 0 ? nil : DatabaseCache(hash: choice & 4 == 0 ? nil : 1, services: [service]))
    }

    private mutating func perform(_ procedure: some ClientProcedure) {
        unfinished += 1
        client.perform(procedure)
    }

    mutating func performAll(beginningWith first: UInt8) {
        client.elevatesSecurity = true
        let count = 13
        for number in 0..<count { perform(number: (number + Int(first)) % count) }
        send(client.nextRequest(mtu: bearer.mtu, into: &buffer))
        takeOutputs(isElevated: true)
    }

    private mutating func perform(number: Int) {
        let handle = AttributeHandle(rawValue: 3)
        let range = HandleRange(start: handle, end: AttributeHandle(rawValue: 0xFFFF))
        switch number {
        case 0: perform(DiscoverAll())
        case 1: perform(DiscoverServicesByUUID(uuid: "180F"))
        case 2: perform(FindIncludedServices(range: range))
        case 3: perform(DiscoverCharacteristics(range: range))
        case 4: perform(DiscoverDescriptors(range: range))
        case 5: perform(ReadLongValue(handle: handle))
        case 6: perform(ReadUsingUUID(uuid: "2A00"))
        case 7: perform(ReadMultipleValues(handles: [handle, handle]))
        case 8: perform(ReadMultipleVariableValues(handles: [handle, handle]))
        case 9: perform(PreparedWrites([.init(handle: handle, value: [UInt8](repeating: 1, count: 60))]))
        case 10: perform(WriteWholeValue(handle: handle, value: [UInt8](repeating: 1, count: 60)))
        case 11: perform(SetClientConfiguration(.notification, inDescriptors: range))
        default: perform(WriteValue(handle: handle, value: [1]))
        }
    }

    mutating func take(_ packet: Script.Packet) {
        buffer.reset()
        switch bearer.receive(packet.octets.rawSpan) {
        case .response: send(client.receive(packet.octets.rawSpan, mtu: bearer.mtu, into: &buffer))
        case .indication:
            bearer.confirmationWillBeSent()
            client.indicationReceived(from: AttributeHandle(rawValue: UInt16(packet.choice)))
        case .notification(let opcode): notificationReceived(opcode, packet.octets.rawSpan)
        // Once only: a request that fits one ATT_MTU may not fit a smaller one.
        default: if bearer.mtu == Bearer.defaultMTU { bearer.exchangeMTU(peer: UInt16(packet.delay) * 4) }
        }
        takeOutputs(isElevated: packet.choice & 2 == 0)
        require(
            unfinished == 0 || bearer.awaitedRequest != nil,
            "\(unfinished) procedures of a client wait, and no request is open"
        )
    }

    /// Takes the outputs and starts the next procedure, until a request has been written. Tries to raise the link's
    /// security for every other request that fails because of insufficient security.
    private mutating func takeOutputs(isElevated: Bool) {
        while let output = client.takeOutput() {
            switch output {
            case .ended: unfinished -= 1
            case .securityRequired: raiseSecurity(isElevated)
            case .cacheChanged: break
            }
            guard bearer.awaitedRequest == nil else { continue }
            buffer.reset()
            send(client.nextRequest(mtu: bearer.mtu, into: &buffer))
        }
    }

    private mutating func raiseSecurity(_ isElevated: Bool) {
        require(bearer.awaitedRequest == nil, "a client that waits for security has sent a request")
        elevationCount += 1
        buffer.reset()
        guard elevationCount % 2 == 1 else {
            return send(client.elevationDeclined(mtu: bearer.mtu, into: &buffer))
        }
        let handle = AttributeHandle(rawValue: 3)
        let result: Result<Void, ATTErrorCode> = isElevated ? .success(()) : .failure(.unlikelyError)
        send(client.securityElevated(result, handle: handle, mtu: bearer.mtu, into: &buffer))
    }

    private func notificationReceived(_ opcode: ATTOpcode, _ pdu: RawSpan) {
        if opcode == .multipleHandleValueNotification {
            guard let notification = try? MultipleHandleValueNotification(decoding: pdu) else { return }
            var entries = notification.entries
            var length = 1
            while let entry = entries.next() { length += 4 + entry.value.byteCount }
            require(length == pdu.byteCount, "a notification whose values end after \(length) bytes")
        } else {
            _ = try? HandleValueNotification(decoding: pdu)
        }
    }

    private mutating func send(_ opcode: ATTOpcode?) {
        guard let opcode else { return }
        require(buffer.count <= bearer.mtu, "a request of \(buffer.count) bytes with an ATT_MTU of \(bearer.mtu)")
        let isSent = (try? bearer.requestWillBeSent(opcode, at: now)) != nil
        require(isSent, "a request while one is open")
    }

    mutating func close() {
        client.close()
        takeOutputs(isElevated: false)
        require(unfinished == 0, "\(unfinished) procedures of a client that is closed are not at their end")
    }
}
