import BLEATT
import BLEByteCoding
import BLEGATT
import BLEHCI
import BluetoothHost
import BluetoothTypes
import Testing

@Suite("Links")
struct LinkTests {
    @Test("A long response is cut into ACL packets of the controller's length, up to its buffer count")
    func longResponseIsCutIntoPacketsUpToTheBufferCount() throws {
        let fixture = HostFixture(profile: .init(leBuffers: (27, 2)))
        try fixture.bringUp()
        let host = fixture.host
        let value = (0..<100).map { UInt8($0) }
        let services = try fixture.run {
            try await host.publish([
                ServiceDefinition(
                    uuid: "180D",
                    characteristics: [
                        CharacteristicDefinition(
                            uuid: "2A37",
                            properties: .read,
                            permissions: .read,
                            value: .stored(value)
                        )
                    ]
                )
            ])
        }
        let handle = try #require(services.first?.characteristics.first?.valueHandle)
        fixture.connect()
        #expect(fixture.exchange([0x02, 0x05, 0x02]) == [[0x03, 0x05, 0x02]])
        completePackets(1, fixture)
        fixture.controller.forgetData()
        fixture.controller.emit(HostFixture.acl([0x0A, UInt8(handle.rawValue), 0x00]))
        fixture.loop.run(for: .milliseconds(1))
        #expect(fixture.controller.data.count == 2, "two buffers, two packets")
        #expect(fixture.controller.data.first?.prefix(9) == [0x02, 0x40, 0x00, 27, 0, 101, 0, 4, 0])
        #expect(fixture.controller.data.last?.prefix(5) == [0x02, 0x40, 0x10, 27, 0])
        completePackets(2, fixture)
        #expect(fixture.controller.data.count == 4)
        let sent = fixture.controller.data.flatMap { $0.dropFirst(5) }
        #expect(sent == [101, 0, 4, 0, 0x0B] + value)
    }

    private func completePackets(_ count: UInt16, _ fixture: HostFixture, _ handle: ConnectionHandle = 0x0040) {
        fixture.controller.emit {
            NumberOfCompletedPackets.encodePacket(
                .init(connectionHandle: handle, numCompletedPackets: count),
                into: &$0
            )
        }
        fixture.loop.run(for: .milliseconds(1))
    }

    @Test("A request longer than ATT_MTU is refused, a command dropped, the next request served")
    func requestLongerThanMTUIsRefused() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let value = [UInt8](repeating: 0xAA, count: 21)
        // Error Response with Invalid PDU and the handle 0x0000 (Vol 3, Part F, 3.4.1.1).
        #expect(fixture.exchange([0x12, 0x03, 0x00] + value) == [[0x01, 0x12, 0x00, 0x00, 0x04]])
        #expect(fixture.exchange([0x52, 0x03, 0x00] + value).isEmpty)
        #expect(fixture.exchange([0x02, 0x17, 0x00]) == [[0x03, 0x05, 0x02]])
    }

    @Test("A client whose exchange of MTUs was refused can ask again, and its link stays usable")
    func refusedExchangeOfMTUsCanBeRepeated() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let (host, peer) = (fixture.host, DeviceAddress(0xC0FF_EE00_0001, isRandom: true))
        _ = fixture.start { try await host.connect(toAnyOf: [peer], parameters: .init(), timeout: nil) }
        fixture.connect(role: .central, peer: peer)
        let link = try fixture.link()
        // Error Response: Request Not Supported.
        _ = fixture.exchange([0x01, 0x02, 0x00, 0x00, 0x06])
        fixture.controller.forgetData()
        try fixture.run { try await host.requestMTU(on: link) }
        fixture.loop.run(for: .milliseconds(1))
        #expect(fixture.controller.data.map { Array($0.dropFirst(9)) } == [[0x02, 0x05, 0x02]])
        _ = fixture.exchange([0x03, 0x64, 0x00])
        #expect(try fixture.run { try await host.information(on: link).mtu } == 100)
        #expect(try fixture.run { await host.isEstablished(link) })
    }

    @Test("Prepared writes for values that several calls published are refused whole")
    func preparedWritesOfSeveralPublicationsAreRefused() throws {
        let fixture = HostFixture(profile: .init(leBuffers: (251, 255)))
        try fixture.bringUp()
        let host = fixture.host
        let asked = Recorder<AccessRequest>()
        let handles = try ["AAAA", "BBBB"].map { (uuid: BluetoothUUID) in
            let value = CharacteristicDefinition(uuid: uuid, properties: .write, permissions: .write, value: .handled)
            let services = try fixture.run {
                try await host.publish([ServiceDefinition(uuid: uuid, characteristics: [value, value])]) {
                    link,
                    request in
                    asked.append(request)
                    host.submitAnswer(request.identifier, on: link, with: .success([]))
                }
            }
            return try #require(services.first).characteristics.map { UInt8($0.valueHandle.rawValue) }
        }
        fixture.connect()
        func execute(_ handles: [UInt8]) -> [[UInt8]] {
            for handle in handles {
                #expect(fixture.exchange([0x16, handle, 0, 0, 0, 9]) == [[0x17, handle, 0, 0, 0, 9]])
            }
            return fixture.exchange([0x18, 0x01])
        }
        #expect(execute([handles[0][0], handles[1][0]]) == [[0x01, 0x18, handles[0][0], 0x00, 0x0E]])
        #expect(asked.all.isEmpty)
        #expect(execute(handles[1]) == [[0x19]])
        #expect(asked.all.count == 1)
    }

    @Test("Prepared writes for values that one object published by several calls are performed together")
    func preparedWritesOfOneOwnerArePerformed() throws {
        let fixture = HostFixture(profile: .init(leBuffers: (251, 255)))
        try fixture.bringUp()
        let (host, owner) = (fixture.host, ObjectIdentifier(fixture))
        let asked = Recorder<AccessRequest>()
        let handles = try ["AAAA", "BBBB"].map { (uuid: BluetoothUUID) in
            let value = CharacteristicDefinition(uuid: uuid, properties: .write, permissions: .write, value: .handled)
            let services = try fixture.run {
                try await host.publish(
                    [ServiceDefinition(uuid: uuid, characteristics: [value])],
                    owner: owner
                ) { link, request in
                    asked.append(request)
                    host.submitAnswer(request.identifier, on: link, with: .success([]))
                }
            }
            return UInt8(try #require(services.first?.characteristics.first).valueHandle.rawValue)
        }
        fixture.connect()
        for handle in handles { _ = fixture.exchange([0x16, handle, 0, 0, 0, 9]) }
        #expect(fixture.exchange([0x18, 0x01]) == [[0x19]])
        #expect(asked.all.count == 1)
    }

    @Test("Malformed requests for channels or parameters are refused at once; stray credits are ignored")
    func malformedSignalingRequestIsRefused() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let (host, peer) = (fixture.host, DeviceAddress(0xC0FF_EE00_0001, isRandom: true))
        _ = fixture.start { try await host.connect(toAnyOf: [peer], parameters: .init(), timeout: nil) }
        fixture.connect(role: .central, peer: peer)
        let exchanges: [(command: [UInt8], answers: [[UInt8]])] = [
            ([0x17, 4, 9, 0, 0x80, 0, 64, 0, 64, 0, 1, 0, 0x40], [[0x18, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0x0C, 0]]),
            ([0x12, 5, 2, 0, 24, 0], [[0x01, 5, 2, 0, 0, 0]]),
            ([0x16, 6, 4, 0, 0x6F, 0, 1, 0], []),
        ]
        for (command, answers) in exchanges {
            fixture.controller.forgetData()
            fixture.controller.emit(HostFixture.acl(command, channel: 5))
            fixture.loop.run(for: .milliseconds(1))
            #expect(fixture.controller.data.map { Array($0.dropFirst(9)) } == answers)
        }
    }

    @Test("Links take turns: a link with much to send does not delay another")
    func linkWithMuchToSendDoesNotDelayAnother() throws {
        let fixture = HostFixture(profile: .init(leBuffers: (27, 1)))
        try fixture.bringUp()
        fixture.connect(0x0040, peer: DeviceAddress(0xC000_0000_0001, isRandom: true))
        fixture.connect(0x0041, peer: DeviceAddress(0xC000_0000_0002, isRandom: true))
        // Each link queues five packets of answers before the controller returns its one buffer.
        for _ in 0..<5 {
            fixture.controller.emit(HostFixture.acl([0x0A, 0x03, 0x00], on: 0x0040))
        }
        fixture.controller.emit(HostFixture.acl([0x0A, 0x03, 0x00], on: 0x0041))
        fixture.loop.run(for: .milliseconds(1))
        for _ in 0..<6 {
            guard let last = fixture.controller.data.last else { break }
            completePackets(1, fixture, ConnectionHandle(UInt16(last[1])))
        }
        let order = fixture.controller.data.map { $0[1] }
        #expect(order.prefix(3).contains(0x41), "order of links: \(order)")
    }

    @Test("The buffers of an ended link can be used again")
    func buffersOfAnEndedLinkCanBeUsedAgain() throws {
        let fixture = HostFixture(profile: .init(leBuffers: (27, 1)))
        try fixture.bringUp()
        fixture.connect(0x0040)
        _ = fixture.exchange([0x0A, 0x03, 0x00])
        fixture.connect(0x0041, peer: DeviceAddress(0xC000_0000_0002, isRandom: true))
        #expect(fixture.exchange([0x0A, 0x03, 0x00], on: 0x0041).isEmpty, "the one buffer is with the first link")
        fixture.disconnected(reason: .connectionTimeout)
        #expect(fixture.controller.data.count == 1)
    }

    @Test("A request without an answer ends the link after thirty seconds")
    func unansweredRequestEndsTheLinkAfterThirtySeconds() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let host = fixture.host
        let link = try fixture.link()
        let read = fixture.start { try await host.perform(ReadValue(handle: 3), on: link) }
        fixture.loop.run(for: .seconds(29))
        #expect(read.all.isEmpty)
        fixture.controller.forgetCommands()
        fixture.loop.run(for: .seconds(2))
        #expect(throws: HostError.disconnected(.attributeTransactionTimeout)) { try read.all.first?.get() }
        #expect(fixture.controller.opcodes == [Disconnect.opcode])
        let end = fixture.start { try await host.disconnection(of: link) }
        fixture.disconnected(reason: .connectionTerminatedByLocalHost)
        #expect(try end.all.first?.get() == .attributeTransactionTimeout)
    }

    @Test("After a request without an answer nothing more is sent, and what waits ends with the link")
    func nothingIsSentAfterTheTransactionTimeout() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let host = fixture.host
        let link = try fixture.link()
        let read = fixture.start { try await host.perform(ReadValue(handle: 3), on: link) }
        let next = fixture.start { try await host.perform(ReadValue(handle: 5), on: link) }
        let waiting = fixture.start { try await host.writeWithoutResponse([1], to: 3, on: link) }
        fixture.loop.run(for: .milliseconds(1))
        #expect(fixture.controller.data.count == 1, "only the request")
        fixture.loop.run(for: .seconds(31))
        #expect(throws: HostError.disconnected(.attributeTransactionTimeout)) { try read.all.first?.get() }
        #expect(throws: HostError.disconnected(.attributeTransactionTimeout)) { try next.all.first?.get() }
        let late = fixture.start { try await host.writeWithoutResponse([2], to: 3, on: link) }
        fixture.loop.run(for: .milliseconds(1))
        #expect(fixture.controller.data.count == 1, "no command after the timeout")
        #expect(try fixture.run { await host.contradiction() } == nil)
        #expect(waiting.all.isEmpty && late.all.isEmpty)
        fixture.disconnected(reason: .connectionTerminatedByLocalHost)
        for write in [waiting, late] {
            #expect(throws: HostError.disconnected(.attributeTransactionTimeout)) { try write.all.first?.get() }
        }
    }

    @Test("A later request without an answer also ends the link after thirty seconds")
    func laterUnansweredRequestAlsoEndsTheLink() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let host = fixture.host
        let link = try fixture.link()
        let answered = fixture.start { try await host.perform(ReadValue(handle: 3), on: link) }
        // Number Of Completed Packets: one packet of connection 0x0040.
        fixture.controller.emit([0x04, 0x13, 0x05, 0x01, 0x40, 0x00, 0x01, 0x00])
        fixture.controller.emit(HostFixture.acl([0x0B, 0x01]))
        fixture.loop.run(for: .seconds(20))
        #expect(try answered.all.first?.get() == [0x01])
        // The link's timer is still set to the deadline of the first request.
        let read = fixture.start { try await host.perform(ReadValue(handle: 3), on: link) }
        fixture.controller.emit([0x04, 0x13, 0x05, 0x01, 0x40, 0x00, 0x01, 0x00])
        fixture.loop.run(for: .seconds(29))
        #expect(read.all.isEmpty)
        fixture.loop.run(for: .seconds(2))
        #expect(throws: HostError.disconnected(.attributeTransactionTimeout)) { try read.all.first?.get() }
    }

    @Test(
        "Unknown requests, channels and pairing PDUs get the answers of the specification",
        arguments: [
            (4, [0x3F, 0x01], [[0x01, 0x3F, 0x00, 0x00, 0x06]]),
            (4, [0x7F, 0x01], []),
            (4, [0x0D, 0x01], []),
            (6, [0x01, 0x03, 0x00, 0x01, 0x10, 0x01, 0x01], [[0x05, 0x05]]),
            (5, [0x12, 0x01, 0x08, 0x00, 24, 0, 40, 0, 0, 0, 200, 0], [[0x01, 0x01, 0x02, 0x00, 0x00, 0x00]]),
            (0x3A, [0x01, 0x02], []),
        ] as [(UInt16, [UInt8], [[UInt8]])]
    )
    func unknownRequestsAndChannelsGetTheSpecifiedAnswers(channel: UInt16, payload: [UInt8], answers: [[UInt8]]) throws
    {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        fixture.controller.emit(HostFixture.acl(payload, channel: channel))
        fixture.loop.run(for: .milliseconds(1))
        #expect(fixture.controller.data.map { Array($0.dropFirst(9)) } == answers)
    }

    @Test("A central exchanges the MTU, and accepts a peripheral's parameters")
    func centralExchangesTheMTUAndAcceptsParameters() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        let peer = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)
        let attempt = fixture.start {
            try await host.connect(toAnyOf: [peer], parameters: ConnectionParameters(), timeout: nil)
        }
        #expect(fixture.controller.opcodes.last == LECreateConnection.opcode)
        fixture.controller.emit {
            LEConnectionComplete(
                connectionHandle: 0x0040,
                role: .central,
                peerAddress: PeerAddress(peer),
                connectionInterval: 24,
                peripheralLatency: 0,
                supervisionTimeout: 400
            ).encodePacket(into: &$0)
        }
        fixture.loop.run(for: .milliseconds(1))
        let link = try #require(try attempt.all.first?.get())
        #expect(fixture.controller.data.map { Array($0.dropFirst(9)) } == [[0x02, 0x05, 0x02]])
        _ = fixture.exchange([0x03, 0xF7, 0x00])
        #expect(try fixture.run { try await host.information(on: link).mtu } == 247)
        fixture.controller.forgetCommands()
        fixture.controller.emit(
            HostFixture.acl([0x12, 0x05, 0x08, 0x00, 80, 0, 100, 0, 0, 0, 200, 0], channel: 5)
        )
        fixture.loop.run(for: .milliseconds(1))
        #expect(fixture.controller.data.last?.dropFirst(9) == [0x13, 0x05, 0x02, 0x00, 0x00, 0x00])
        let update = try #require(fixture.controller.commands.last?.decode(LEConnectionUpdate.self))
        #expect(update.connectionIntervalMin == 80 && update.connectionIntervalMax == 100)
    }

    @Test("A peripheral that requests parameters repeatedly has one update waiting")
    func peripheralThatRepeatsRequestsHasOneUpdateWaiting() throws {
        let fixture = HostFixture { $0.requestsMTU = false }
        fixture.controller.override = { command in
            command.opcode == LEConnectionUpdate.opcode ? ScriptedController.status(command.opcode) : nil
        }
        try fixture.bringUp()
        fixture.connect(role: .central)
        func intervals() -> [UInt16] {
            fixture.controller.commands.compactMap { $0.decode(LEConnectionUpdate.self)?.connectionIntervalMin }
        }
        for number in UInt8(1)...100 {
            fixture.controller.emit(
                HostFixture.acl([0x12, number, 0x08, 0x00, number + 5, 0, 120, 0, 0, 0, 200, 0], channel: 5)
            )
            fixture.loop.run(for: .milliseconds(1))
        }
        #expect(intervals() == [6])
        fixture.controller.emit {
            LEConnectionUpdateComplete(
                status: .success,
                connectionHandle: 0x0040,
                connectionInterval: 6,
                peripheralLatency: 0,
                supervisionTimeout: 200
            ).encodePacket(into: &$0)
        }
        fixture.loop.run(for: .milliseconds(1))
        #expect(intervals().count == 2)
    }

    @Test(
        "An update that the central decides ends no queued update of a peripheral",
        arguments: [UInt8(0), 1, nil]
    )
    func updateOfTheCentralEndsNoQueuedUpdateOfAPeripheral(answer: UInt8?) throws {
        let fixture = HostFixture { $0.requestsMTU = false }
        try fixture.bringUp()
        fixture.connect(role: .peripheral)
        let host = fixture.host
        let link = try fixture.link()
        let updates = [Duration.milliseconds(50), .milliseconds(100)].map { interval in
            fixture.start { try await host.updateParameters(.init(interval: interval...interval), of: link) }
        }
        /// The requests that the host has sent: the identifier and the interval.
        func requests() -> [[UInt8]] {
            fixture.controller.data.filter { $0[7] == 5 && $0[9] == 0x12 }.map { [$0[10], $0[13]] }
        }
        func respond(to request: [UInt8]?, _ answer: UInt8) {
            fixture.controller.emit(HostFixture.acl([0x13, request?[0] ?? 0, 2, 0, answer, 0], channel: 5))
            fixture.loop.run(for: .milliseconds(1))
        }
        #expect(requests().map { $0[1] } == [40], "one at a time")
        fixture.completeParameterUpdate(interval: 24)
        #expect(updates.map(\.all.count) == [1, 0], "the second waits for the answer to the first request")
        #expect(requests().count == 1)
        if let answer {
            respond(to: requests().first, answer)
        } else {
            fixture.loop.run(for: .seconds(31))
        }
        if answer == 0 {
            #expect(requests().count == 1, "the event of the first request is not for the second")
            fixture.completeParameterUpdate(interval: 40)
        }
        #expect(requests().map { $0[1] } == [40, 80])
        #expect(updates[1].all.isEmpty)
        respond(to: requests().last, 0)
        fixture.completeParameterUpdate(interval: 80)
        #expect(throws: Never.self) { try updates[1].all.first?.get() }
        #expect(updates[1].all.count == 1)
        #expect(try fixture.run { await host.contradiction() } == nil)
    }

    @Test("A disconnection in the middle of an exchange fails all waiting calls with its reason")
    func disconnectionFailsAllWaitingCallsWithItsReason() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let host = fixture.host
        let link = try fixture.link()
        let read = fixture.start { try await host.perform(ReadValue(handle: 3), on: link) }
        fixture.disconnected(reason: .remoteUserTerminatedConnection)
        #expect(throws: HostError.disconnected(.controller(.remoteUserTerminatedConnection))) {
            try read.all.first?.get()
        }
    }
}
