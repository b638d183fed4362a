import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@Suite("Outputs of a server session")
struct ServerOutputTests {
    private static let change = ServerOutput.persistentStateChanged

    private func makeFixture() throws -> ServerFixture {
        try ServerFixture([
            CharacteristicDefinition(
                uuid: "2A37",
                properties: [.read, .write, .notify],
                permissions: [.read, .write],
                value: .stored([60])
            )
        ])
    }

    @Test("A read and a write each output one event")
    func readAndWriteOutputOneEventEach() throws {
        let fixture = try makeFixture()
        let value = fixture.service.characteristics[0].valueHandle
        _ = fixture.send([0x0A] + fixture.handle(0))
        #expect(fixture.session.takeOutput() == .event(.read(value, offset: 0)))
        #expect(fixture.session.takeOutput() == nil)
        _ = fixture.send([0x12] + fixture.handle(0) + [7])
        let write = AttributeWrite(handle: value, offset: 0, value: [7])
        #expect(fixture.session.takeOutput() == .event(.written(write, isCommand: false)))
        #expect(fixture.session.takeOutput() == nil)
    }

    @Test(
        "Each value in the response to a read of several values outputs one event, and declarations output none",
        arguments: [
            ([0x08, 1, 0, 0xFF, 0xFF, 0x19, 0x2A], [3, 5]), ([0x08, 1, 0, 0xFF, 0xFF, 0x1A, 0x2A], [7]),
            ([0x08, 1, 0, 0xFF, 0xFF, 0x03, 0x28], []),
            ([0x0E, 5, 0, 3, 0], [5, 3]), ([0x20, 3, 0, 5, 0], [3, 5]),
            // The value with handle 7 leaves no room for another one.
            ([0x0E, 7, 0, 3, 0], [7]), ([0x20, 7, 0, 3, 0], [7]),
            // The request fails.
            ([0x0E, 3, 0, 0x63, 0], []), ([0x20, 3, 0, 0x63, 0], []),
        ] as [([UInt8], [AttributeHandle])]
    )
    func readOfSeveralValuesOutputsOneEventEach(request: [UInt8], handles: [AttributeHandle]) throws {
        let values: [(BluetoothUUID, [UInt8])] = [
            ("2A19", [1, 2]), ("2A19", [3, 4]), ("2A1A", [UInt8](repeating: 5, count: 30)),
        ]
        let fixture = try ServerFixture(
            values.map { uuid, value in
                CharacteristicDefinition(uuid: uuid, properties: .read, permissions: .read, value: .stored(value))
            }
        )
        _ = fixture.send(request)
        #expect(fixture.outputs == handles.map { ServerOutput.event(.read($0, offset: 0)) })
    }

    @Test("A configuration outputs its event, then the change of the stored state")
    func configurationOutputsItsEventThenTheChangeOfTheState() throws {
        let fixture = try makeFixture()
        let value = fixture.service.characteristics[0].valueHandle
        _ = fixture.send([0x12] + (try fixture.configurationHandle(0)) + [1, 0])
        #expect(fixture.outputs == [.event(.configured(value, from: [], to: .notification)), Self.change])
        _ = fixture.send([0x12] + (try fixture.configurationHandle(0)) + [1, 0])
        #expect(fixture.outputs.count == 2, "nothing has changed")
    }

    @Test("Executed writes output their events in the order of the writes")
    func executedWritesOutputEventsInTheOrderOfTheWrites() throws {
        let fixture = try makeFixture()
        let value = fixture.service.characteristics[0].valueHandle
        _ = fixture.send([0x16] + (try fixture.configurationHandle(0)) + [0, 0, 1, 0])
        _ = fixture.send([0x16] + fixture.handle(0) + [0, 0, 7])
        #expect(fixture.outputs == [])
        #expect(fixture.send([0x18, 1]).response == [0x19])
        #expect(
            fixture.outputs == [
                .event(.configured(value, from: [], to: .notification)), Self.change,
                .event(.written(AttributeWrite(handle: value, offset: 0, value: [7]), isCommand: false)),
            ]
        )
    }

    @Test("Restoring outputs the configurations and no change")
    func restoringOutputsConfigurationsAndNoChange() throws {
        let fixture = try makeFixture()
        let value = fixture.service.characteristics[0].valueHandle
        let descriptor = try #require(fixture.service.characteristics[0].clientConfigurationHandle)
        let configuration = ServerSession.PersistentState.Configuration(
            handle: descriptor,
            configuration: .notification,
            characteristic: fixture.service.characteristics[0].uuid
        )
        fixture.session.restore(.init(configurations: [configuration]))
        #expect(fixture.outputs == [.event(.configured(value, from: [], to: .notification))])
    }

    @Test("Without events, many writes of a client output one change")
    func changesAreJoined() throws {
        let fixture = try makeFixture()
        fixture.session.reportsEvents = false
        for number in 0..<100 {
            _ = fixture.send([0x12] + (try fixture.configurationHandle(0)) + [UInt8(number % 2), 0])
            _ = fixture.send([0x0A] + fixture.handle(0))
        }
        #expect(fixture.outputs == [Self.change])
    }

    @Test("Without events, writes have the same results, and leave copies of old values alone", arguments: [1, 2, 3])
    func writesWithoutEventsHaveTheSameResults(seed: UInt64) throws {
        let characteristics = (0..<3).map { index in
            CharacteristicDefinition(
                uuid: BluetoothUUID(UInt16(0xFFE0 + index)),
                properties: [.read, .write, .writeWithoutResponse],
                permissions: index == 2 ? .read : [.read, .write],
                value: .stored([1, 2, 3], maximumLength: 6)
            )
        }
        let reporting = try ServerFixture(characteristics)
        let silent = try ServerFixture(characteristics)
        silent.session.reportsEvents = false
        var generator = SeededGenerator(seed: seed)
        var copies: [(held: [UInt8]?, expected: [UInt8]?)] = []
        for _ in 0..<500 {
            let index = Int.random(in: 0..<3, using: &generator)
            let opcode: UInt8 = Bool.random(using: &generator) ? 0x12 : 0x52
            let length = Int.random(in: 0...8, using: &generator)
            let value = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let pdu = [opcode] + silent.handle(index) + value
            #expect(reporting.send(pdu).response == silent.send(pdu).response)
            let handle = silent.service.characteristics[index].valueHandle
            copies.append((silent.server.value(of: handle), reporting.server.value(of: handle)))
            if copies.count > 20 { copies.removeFirst() }
            #expect(copies.allSatisfy { $0.held == $0.expected })
        }
        #expect(silent.events.isEmpty)
    }
}
