import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

private func error<Output>(_ result: Result<Output, ClientError>?) -> ClientError? {
    if case .failure(let error)? = result { error } else { nil }
}

@Suite("Hostile peers")
struct HostileTests {
    @Test(
        "Discovery of services ends with an error if handles do not increase",
        arguments: [
            [0x11, 6, 1, 0, 1, 0, 0, 0x18, 1, 0, 1, 0, 0, 0x18],  // repeated
            [0x11, 6, 5, 0, 4, 0, 0, 0x18],  // end before start
            [0x11, 6, 0, 0, 4, 0, 0, 0x18],  // handle zero
            [0x11, 6, 5, 0, 9, 0, 0, 0x18, 7, 0, 12, 0, 0, 0x18],  // overlapping
        ] as [[UInt8]]
    )
    func handlesThatDoNotIncreaseEndDiscovery(response: [UInt8]) {
        #expect(error(outcome(of: DiscoverServices()) { _ in response }) == .handlesOutOfOrder(.readByGroupTypeRequest))
    }

    @Test(
        "Malformed answers end a procedure with an error",
        arguments: [
            [0x11], [0x11, 0], [0x11, 6], [0x11, 8, 1, 0, 4, 0, 1, 2, 3, 4], [0x11, 5, 1, 0, 4, 0, 9],
            [0x11, 6, 1, 0, 4, 0, 0],
        ] as [[UInt8]]
    )
    func malformedAnswerEndsTheProcedure(response: [UInt8]) {
        #expect(error(outcome(of: DiscoverServices()) { _ in response }) == .malformedResponse(.readByGroupTypeRequest))
    }

    @Test("An answer that is repeated does not make discovery endless")
    func repeatedAnswerDoesNotMakeDiscoveryEndless() {
        let service: [UInt8] = [0x11, 6, 1, 0, 4, 0, 0, 0x18]
        #expect(error(outcome(of: DiscoverServices()) { _ in service }) == .handlesOutOfOrder(.readByGroupTypeRequest))
        let characteristic: [UInt8] = [0x09, 7, 2, 0, 2, 3, 0, 0, 0x2A]
        #expect(
            error(outcome(of: DiscoverCharacteristics(range: .all)) { _ in characteristic })
                == .handlesOutOfOrder(.readByTypeRequest)
        )
        let descriptor: [UInt8] = [0x05, 1, 4, 0, 2, 0x29]
        #expect(
            error(outcome(of: DiscoverDescriptors(range: .all)) { _ in descriptor })
                == .handlesOutOfOrder(.findInformationRequest)
        )
        let include: [UInt8] = [0x09, 8, 2, 0, 1, 0, 4, 0, 0, 0x18]
        #expect(
            error(outcome(of: FindIncludedServices(range: .all)) { _ in include })
                == .handlesOutOfOrder(.readByTypeRequest)
        )
    }

    @Test("A characteristic whose value lies outside its service is an error")
    func valueOutsideItsServiceIsAnError() {
        let response: [UInt8] = [0x09, 7, 2, 0, 2, 9, 0, 0, 0x2A]
        let range = HandleRange(start: 1, end: 5)
        #expect(
            error(outcome(of: DiscoverCharacteristics(range: range)) { _ in response })
                == .handlesOutOfOrder(.readByTypeRequest)
        )
    }

    @Test("An endless value is truncated at 512 bytes")
    func endlessValueIsTruncatedAt512Bytes() throws {
        let part = [UInt8](repeating: 7, count: 22)
        let result = outcome(of: ReadLongValue(handle: 3)) { [$0[0] + 1] + part }
        #expect(try result?.get().count == 512)
    }

    @Test("Bytes of a response beyond ATT_MTU are not part of the values")
    func bytesBeyondTheMTUAreNotPartOfTheValues() throws {
        let bytes = (0..<600).map { UInt8(truncatingIfNeeded: $0) }
        for (mtu, length) in [(23, 22), (600, 512)] {
            let value = outcome(of: ReadValue(handle: 3), mtu: mtu) { _ in [0x0B] + bytes }
            #expect(try value?.get() == Array(bytes[..<length]))
        }
        let joined = outcome(of: ReadMultipleValues(handles: [1, 2])) { _ in [0x0F] + bytes }
        #expect(try joined?.get() == Array(bytes[..<22]))
        // The second value does not end before ATT_MTU.
        var response: [UInt8] = [0x21]
        for length in [4, 20, 2] { response += [UInt8(length), 0] + bytes[..<length] }
        let separate = outcome(of: ReadMultipleVariableValues(handles: [1, 2, 3])) { [response] _ in response }
        #expect(try separate?.get() == [Array(bytes[..<4])])
        let long = outcome(of: ReadMultipleVariableValues(handles: [1, 2]), mtu: 700) { _ in
            [0x21, 0x58, 2] + bytes + [1, 0, 7]
        }
        #expect(try long?.get() == [Array(bytes[..<512]), [7]])
    }

    @Test("Reliable writes are cancelled if the server returns another value")
    func reliableWriteIsCancelledIfAnotherValueIsReturned() {
        var requests: [[UInt8]] = []
        let result = outcome(of: PreparedWrites([.init(handle: 3, value: [1, 2, 3])])) { request in
            requests.append(request)
            return request[0] == 0x16 ? [0x17, 3, 0, 0, 0, 1, 2, 4] : [0x19]
        }
        #expect(error(result) == .valueMismatch(handle: 3))
        #expect(requests.last == [0x18, 0x00])
    }

    @Test("Random answers end every procedure, and none traps", arguments: 0..<40)
    func randomAnswersEndEveryProcedure(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        func answer(_ request: [UInt8]) -> [UInt8] {
            if UInt8.random(in: 0..<8, using: &random) == 0 {
                return [0x01, request[0], 1, 0, UInt8.random(in: 0...20, using: &random)]
            }
            let length = Int.random(in: 0...21, using: &random)
            var response: [UInt8] = [request[0] + 1]
            for _ in 0..<length { response.append(UInt8.random(in: 0...9, using: &random)) }
            return response
        }
        #expect(outcome(of: DiscoverAll(), answer: answer) != nil)
        #expect(outcome(of: DiscoverServicesByUUID(uuid: "1800"), answer: answer) != nil)
        #expect(outcome(of: FindIncludedServices(range: .all), answer: answer) != nil)
        #expect(outcome(of: DiscoverCharacteristics(range: .all), answer: answer) != nil)
        #expect(outcome(of: DiscoverDescriptors(range: .all), answer: answer) != nil)
        #expect(outcome(of: ReadLongValue(handle: 1), answer: answer) != nil)
        #expect(outcome(of: ReadUsingUUID(uuid: "2A00"), answer: answer) != nil)
        #expect(outcome(of: ReadMultipleVariableValues(handles: [1, 2]), answer: answer) != nil)
        let writes = PreparedWrites([.init(handle: 1, value: Array(repeating: 1, count: 99))])
        #expect(outcome(of: writes, answer: answer) != nil)
    }

    @Test("The last value of a full response may be cut, whatever its length says", arguments: [7, 8])
    func lastValueOfAFullResponseIsNotReturned(length: Int) throws {
        let (first, last) = ([UInt8](repeating: 1, count: 10), [UInt8](repeating: 2, count: length))
        let result = outcome(of: ReadMultipleVariableValues(handles: [1, 2]), mtu: 23) { _ in
            [0x21, 10, 0] + first + [UInt8(length), 0] + last
        }
        #expect(try result?.get() == (length == 8 ? [first] : [first, last]))
    }

    @Test("Random requests are answered or ignored, and the server continues to work", arguments: 0..<40)
    func randomRequestsAreAnsweredOrIgnored(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let fixture = try ServerFixture([
            CharacteristicDefinition(
                uuid: "B001",
                properties: [.read, .write, .notify, .extendedProperties],
                permissions: [.read, .write],
                value: .stored([1, 2, 3])
            ),
            CharacteristicDefinition(
                uuid: "B002",
                properties: [.read, .write],
                permissions: [.read, .write],
                value: .handled
            ),
        ])
        for _ in 0..<500 {
            let opcode = ATTOpcode.allCases.randomElement(using: &random)?.rawValue ?? 0
            var pdu = [opcode]
            for _ in 0..<Int.random(in: 0...20, using: &random) { pdu.append(UInt8.random(in: 0...12, using: &random)) }
            var (action, response) = fixture.send(pdu)
            while case .access(let request) = action {
                if case .write(_, isCommand: true) = request.kind { break }
                (action, response) = fixture.complete(
                    request.identifier,
                    .success([UInt8.random(in: 0...255, using: &random)])
                )
            }
            #expect(response.count <= fixture.session.mtu)
        }
        let handle = fixture.handle(0)
        #expect(fixture.send([0x0A] + handle).response.first == 0x0B)
    }

    @Test("Discovery finds exactly the database, whatever it contains", arguments: 0..<30)
    func discoveryFindsExactlyTheDatabase(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var definitions: [ServiceDefinition] = []
        for index in 0..<Int.random(in: 1...6, using: &random) {
            let characteristics = (0..<Int.random(in: 0...5, using: &random)).map { _ in
                CharacteristicDefinition(
                    uuid: Bool.random(using: &random)
                        ? BluetoothUUID(UInt16.random(in: 0xB000...0xB0FF, using: &random))
                        : BluetoothUUID(UInt128(random.next()) << 64 | UInt128(random.next())),
                    properties: CharacteristicProperties(rawValue: UInt8.random(in: 0...255, using: &random)),
                    permissions: .read,
                    value: .stored([])
                )
            }
            definitions.append(
                ServiceDefinition(
                    uuid: Bool.random(using: &random)
                        ? BluetoothUUID(UInt16(0xA000 + index))
                        : BluetoothUUID(UInt128(random.next()) << 64 | UInt128(0xA000 + index)),
                    isPrimary: Bool.random(using: &random),
                    includes: Bool.random(using: &random) ? [.index(0)] : [],
                    characteristics: characteristics
                )
            )
        }
        let server = Server(cmac: nil)
        let published = try server.publish(definitions)
        let session = ServerSession(server: server)
        let mtu = [23, 64, 517].randomElement(using: &random) ?? 23
        session.mtu = mtu
        let found = try outcome(of: DiscoverAll(), mtu: mtu) { request in
            PacketBuffer.bytes { _ = session.receive(request.rawSpan, into: &$0) }
        }?.get()
        #expect(found?.map(\.uuid) == definitions.map(\.uuid))
        #expect(found?.map(\.isPrimary) == definitions.map(\.isPrimary))
        #expect(
            found?.map(\.handle) == published.map(\.handle) && found?.map(\.endHandle) == published.map(\.endHandle)
        )
        #expect(
            found?.map { $0.includedServices.map(\.handle) }
                == definitions.map { $0.includes.isEmpty ? [] : [published[0].handle] }
        )
        #expect(found?.map { $0.characteristics.map(\.uuid) } == definitions.map { $0.characteristics.map(\.uuid) })
        #expect(
            found?.map { $0.characteristics.map(\.valueHandle) }
                == published.map { $0.characteristics.map(\.valueHandle) }
        )
        #expect(
            found?.map { $0.characteristics.map { $0.descriptors.map(\.handle) } }
                == published.map { service in
                    service.characteristics.map {
                        ($0.descriptorHandles + [$0.clientConfigurationHandle].compactMap { $0 }).sorted()
                    }
                }
        )
    }
}
