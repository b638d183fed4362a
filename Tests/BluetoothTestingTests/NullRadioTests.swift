import BLE
import BLEByteCoding
import BluetoothTesting
import Synchronization
import Testing

@Suite("The null radio")
struct NullRadioTests {
    static let service = ServiceDefinition(
        uuid: "FFE0",
        characteristics: [
            CharacteristicDefinition(
                uuid: "FFE1",
                properties: [.read, .write],
                permissions: [.read, .write],
                value: .stored([1, 2, 3])
            )
        ]
    )

    @Test func nullRadioJoinsTwoHostsByTheRequestedNumberOfLinks() throws {
        let radio = NullRadio()
        let values = try radio.run { () async throws -> [[UInt8]] in
            let server = try await radio.openAdapter()
            let client = try await radio.openAdapter()
            let published = try await server.peripheral.publish([Self.service])
            let handle = published[0].characteristics[0].valueHandle
            let advertising = try await server.peripheral.startAdvertising(AdvertisementConfiguration())
            var peers: [RemotePeripheral] = []
            for number in 0..<3 {
                peers.append(try await client.central.connect(to: radio.address(ofPeripheral: number)))
            }
            try await peers[1].write([UInt8](0..<244), to: handle)
            await advertising.stop()
            var values: [[UInt8]] = []
            for peer in peers { values.append(try await peer.read(handle)) }
            await peers[2].disconnect()
            return values
        }
        #expect(values == Array(repeating: [UInt8](0..<244), count: 3))
        radio.close()
    }

    /// Answers requests as a server in whose attributes each value is the low byte of its handle.
    private static let answer: NullRadio.ScriptedAnswer = { pdu, answer in
        // Read Request.
        if pdu[checked: 0] == 0x0A, let low = pdu[checked: 1] { answer.append([0x0B, low]) }
        // Exchange MTU Request.
        if pdu[checked: 0] == 0x02 { answer.append([0x03, 0x17, 0x00]) }
    }

    @Test func scriptAnswersTheRequestsOfAHost() throws {
        let radio = NullRadio()
        radio.scriptedAnswer = Self.answer
        let value = try radio.run { () async throws -> [UInt8] in
            let client = try await radio.openAdapter()
            let peer = try await client.central.connect(to: radio.address(ofPeripheral: 7))
            return try await peer.read(0x0042)
        }
        #expect(value == [0x42])
        radio.close()
    }

    /// The handles of ended links are used again, because there are only 3,840.
    @Test func hostConnectsMoreOftenThanThereAreHandles() throws {
        let radio = NullRadio()
        radio.scriptedAnswer = Self.answer
        try radio.run {
            let client = try await radio.openAdapter()
            for _ in 0..<4200 {
                let peer = try await client.central.connect(to: radio.address(ofPeripheral: 0))
                #expect(try await peer.read(0x0042) == [0x42])
                await peer.disconnect()
            }
        }
        radio.close()
    }

    @Test func attemptWithoutAFreeHandleIsRefused() throws {
        let radio = NullRadio()
        radio.scriptedAnswer = Self.answer
        try radio.run {
            let host = try await radio.openAdapter()
            for _ in 1..<NullRadio.linkLimit { _ = radio.connectScriptedCentral() }
            let peer = try await host.central.connect(to: radio.address(ofPeripheral: 0))
            await #expect(throws: BLEError.disconnected(.controller(.connectionLimitExceeded))) {
                try await host.central.connect(to: radio.address(ofPeripheral: 1))
            }
            await peer.disconnect()
            let next = try await host.central.connect(to: radio.address(ofPeripheral: 1))
            #expect(try await next.read(0x0042) == [0x42])
        }
        radio.close()
    }

    @Test func runThatDoesNotEndReportsWhatItWaitsFor() throws {
        let radio = NullRadio()
        let error = #expect(throws: UnfinishedRun.self) {
            try radio.run(limit: .seconds(10)) {
                let client = try await radio.openAdapter()
                _ = try await client.central.connect(to: radio.address(ofPeripheral: 0))
            }
        }
        let awaited = try #require(error?.awaited)
        #expect(awaited.contains { $0.hasPrefix("host 0: a connection to ") }, "\(awaited)")
        radio.close()
    }

    @Test func scriptSendsRequestsToAHost() throws {
        let radio = NullRadio()
        let answers = Mutex<[[UInt8]]>([])
        radio.scriptedAnswer = { pdu, _ in answers.withLock { $0.append([UInt8](copying: pdu)) } }
        try radio.run {
            let server = try await radio.openAdapter()
            let published = try await server.peripheral.publish([Self.service])
            let handle = published[0].characteristics[0].valueHandle.rawValue
            let link = radio.connectScriptedCentral()
            radio.send([0x0A, UInt8(handle & 0xFF), UInt8(handle >> 8)].rawSpan, on: link)
            await radio.settle()
        }
        #expect(answers.withLock { $0 }.contains([0x0B, 1, 2, 3]))
        radio.close()
    }
}
