import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes
import Testing

/// The outcome of a client's operation, as the file describes it.
private enum Outcome: Equatable {
    case value([UInt8])
    case error(UInt8)
    case other(ClientError)
}

/// A client on a raw ATT bearer, with the tester's PDUs as its peer.
private final class RawClient {
    let client = Client()
    var bearer: Bearer
    var outcome: Outcome?
    /// The closures that are called when procedures have ended.
    private var completions: [ObjectIdentifier: () -> Void] = [:]

    init(mtu: Int, elevatesSecurity: Bool) {
        bearer = Bearer(offeredMTU: mtu)
        client.elevatesSecurity = elevatesSecurity
    }

    /// The client's next request; empty if there is none.
    func next() throws -> [UInt8] {
        var buffer = PacketBuffer()
        guard bearer.awaitedRequest == nil, let opcode = client.nextRequest(mtu: bearer.mtu, into: &buffer) else {
            return []
        }
        try bearer.requestWillBeSent(opcode, at: Instant(nanoseconds: 0))
        return [UInt8](copying: buffer.bytes)
    }

    /// Handles a PDU of the tester.
    ///
    /// - Returns: the client's next request.
    func receive(_ pdu: [UInt8]) throws -> [UInt8] {
        guard case .response = bearer.receive(pdu.rawSpan) else {
            Issue.record("\(pdu.hexadecimal) is not the response that the client waits for")
            return []
        }
        var buffer = PacketBuffer()
        var opcode = client.receive(pdu.rawSpan, mtu: bearer.mtu, into: &buffer)
        while let output = client.takeOutput() {
            switch output {
            case .ended(let run): completions.removeValue(forKey: ObjectIdentifier(run))?()
            case .securityRequired:
                opcode = client.securityElevated(.success(()), handle: .invalid, mtu: bearer.mtu, into: &buffer)
            case .cacheChanged: Issue.record("the database of an unverified server is cached")
            }
        }
        guard let opcode else { return try next() }
        try bearer.requestWillBeSent(opcode, at: Instant(nanoseconds: 0))
        return [UInt8](copying: buffer.bytes)
    }

    private func perform<P: ClientProcedure>(
        _ procedure: P,
        completion: @escaping (Result<P.Output, ClientError>) -> Void
    ) {
        let run = client.perform(procedure)
        completions[ObjectIdentifier(run)] = { if let outcome = run.outcome { completion(outcome) } }
    }

    func exchangeMTU() {
        perform(ExchangeMTU(offered: UInt16(bearer.offeredMTU))) { [unowned self] result in
            if case .success(let mtu) = result { bearer.exchangeMTU(peer: mtu) }
        }
    }

    func perform<P: ClientProcedure>(_ procedure: P, value: @escaping (P.Output) -> [UInt8]) {
        perform(procedure) { [unowned self] result in
            switch result {
            case .success(let output): outcome = .value(value(output))
            case .failure(.attribute(let error, _, _)): outcome = .error(error.rawValue)
            case .failure(let error): outcome = .other(error)
            }
        }
    }

    /// Starts the operation of a case.
    ///
    /// - Parameter width: the width of the file's UUID on the air.
    func start(_ operation: ConformanceFile.Operation, width: BluetoothUUID.Width) {
        let handle = AttributeHandle(conformance: operation.handle ?? "")
        let range = HandleRange(
            start: AttributeHandle(conformance: operation.start ?? "0x0001"),
            end: AttributeHandle(conformance: operation.end ?? "0xffff")
        )
        let value = [UInt8](hexadecimal: operation.valueHex ?? "") ?? []
        let uuid = operation.uuid.flatMap { BluetoothUUID($0) }.map { width == .bits16 ? $0.attributeForm : $0 }
        switch operation.op {
        case "discover_primary_services":
            if let uuid {
                perform(DiscoverServicesByUUID(uuid: uuid)) { _ in [] }
            } else {
                perform(DiscoverServices()) { _ in [] }
            }
        case "find_included_services": perform(FindIncludedServices(range: range)) { _ in [] }
        case "discover_characteristics": perform(DiscoverCharacteristics(range: range)) { _ in [] }
        case "read_characteristic_value", "read_long_value": perform(ReadLongValue(handle: handle)) { $0 }
        case "read_using_characteristic_uuid":
            perform(ReadUsingUUID(uuid: uuid ?? .deviceName, range: range)) { $0.flatMap(\.value) }
        case "read_multiple":
            let handles = (operation.handles ?? []).map { AttributeHandle(conformance: $0) }
            perform(ReadMultipleValues(handles: handles)) { $0 }
        case "write_characteristic_value": perform(WriteValue(handle: handle, value: value)) { _ in [] }
        case "write_long_value", "reliable_write":
            perform(PreparedWrites([.init(handle: handle, value: value)])) { _ in [] }
        default: Issue.record("unknown operation \(operation.op)")
        }
    }
}

@Suite("GATT client against exchanges of the SIG's test purposes", .enabled(if: ConformanceFile.isExpected))
struct ClientConformanceTests {
    @Test("Each request is sent byte for byte, and the outcome is the tester's", arguments: ConformanceFile.clientCases)
    func clientSendsEachRequestByteForByte(of testCase: ConformanceFile.Case) throws {
        guard let operation = testCase.operation else { return try discovery(of: testCase) }
        let client = RawClient(mtu: testCase.iutMtu, elevatesSecurity: testCase.autoElevateSecurity ?? false)
        var pdus = testCase.pdus[...]
        client.exchangeMTU()
        if let count = testCase.initPduCount {
            // The MTU exchange is the first PDU before the operation; the others belong to another client.
            #expect(try client.next() == pdus.first?.bytes)
            #expect(try client.receive(pdus.dropFirst().first?.bytes ?? []).isEmpty)
            pdus = pdus.dropFirst(count)
        }
        client.start(operation, width: width(in: testCase))
        var sent = try client.next()
        for pdu in pdus {
            if pdu.isToTester {
                #expect(sent.hexadecimal == pdu.bytes.hexadecimal)
                sent = []
            } else {
                #expect(sent.isEmpty, "a request that is not in the exchange")
                sent = try client.receive(pdu.bytes)
            }
        }
        #expect(sent.isEmpty, "a request after the end of the exchange")
        #expect(client.outcome == expectedOutcome(of: operation))
    }

    /// The width of the operation's UUID in the exchange.
    private func width(in testCase: ConformanceFile.Case) -> BluetoothUUID.Width {
        let lengths = testCase.pdus.filter { $0.isToTester && [0x06, 0x08].contains($0.bytes.first) }.map(\.bytes.count)
        return lengths.contains { $0 == 9 || $0 == 7 } ? .bits16 : .bits128
    }

    private func expectedOutcome(of operation: ConformanceFile.Operation) -> Outcome {
        let error = operation.expectedAttError.flatMap { UInt8($0.dropFirst(2), radix: 16) } ?? 0
        if let value = operation.expectedValueHex { return .value([UInt8](hexadecimal: value) ?? []) }
        return error == 0 ? .value([]) : .error(error)
    }

    /// Runs a case of pure discovery: this client's own requests are answered from the case's database, and must find
    /// each attribute.
    private func discovery(of testCase: ConformanceFile.Case) throws {
        let file = try #require(ConformanceFile.shared)
        let database = try #require(testCase.database.flatMap { file.databases[$0] })
        let server = Server(cmac: nil)
        _ = try server.publish(database.definitions)
        let session = ServerSession(server: server)
        let client = RawClient(mtu: testCase.iutMtu, elevatesSecurity: false)
        let discovery = client.client.perform(DiscoverAll())
        var request = try client.next()
        while !request.isEmpty {
            var buffer = PacketBuffer()
            #expect(session.receive(request.rawSpan, into: &buffer) == .respond)
            request = try client.receive([UInt8](copying: buffer.bytes))
        }
        let services = try discovery.output()
        for (service, expected) in zip(services, database.services) {
            #expect(service.handle == AttributeHandle(conformance: expected.start))
            #expect(service.endHandle == AttributeHandle(conformance: expected.end))
            for (characteristic, expected) in zip(service.characteristics, expected.characteristics) {
                #expect(characteristic.uuid == BluetoothUUID(expected.uuid))
                #expect(
                    characteristic.descriptors.map(\.handle)
                        == expected.descriptors.map { .init(conformance: $0.handle) }
                )
                #expect(characteristic.descriptors.map(\.uuid) == expected.descriptors.map { BluetoothUUID($0.uuid) })
            }
            #expect(service.characteristics.count == expected.characteristics.count)
        }
        #expect(services.count == database.services.count)
    }
}
