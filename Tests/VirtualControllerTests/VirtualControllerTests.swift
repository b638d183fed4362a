import BluetoothTypes
import ByteCoding
import HCI
import Testing

@testable import VirtualController

@Suite("A controller in software")
struct VirtualControllerTests {
    @Test("It answers Reset, and what it does not know with Unknown HCI Command")
    func answers() {
        let world = World(count: 1)
        #expect(world.send(Reset(), to: 0) == [[0x04, 0x0E, 0x04, 0x01, 0x03, 0x0C, 0x00]])
        #expect(world.send([0x01, 0x36, 0x20, 0x00], to: 0) == [[0x04, 0x0E, 0x04, 0x01, 0x36, 0x20, 0x01]])
        #expect(world.send([0x01, 0x06, 0x20, 0x01, 0x00], to: 0) == [[0x04, 0x0E, 0x04, 0x01, 0x06, 0x20, 0x12]])
    }

    @Test("Every command that it lists it answers with success, and none with Unknown HCI Command")
    func listedCommands() throws {
        let world = World(count: 1)
        let answer = try #require(world.send(ReadLocalSupportedCommands(), to: 0).first)
        let listed = try ReadLocalSupportedCommands.ReturnParameters.decode(answer)
        #expect(listed.supportedCommands == VirtualController.supportedCommands)
        #expect(listed.supportedCommands.contains(LESetAdvertisingEnable.self))
        #expect(!listed.supportedCommands.contains(LESetExtendedAdvertisingEnable.self))
    }

    @Test("A passive scanner hears the advertisement, an active one the scan response too, each once with the filter")
    func scanning() {
        let world = World(count: 3)
        world.send(LESetAdvertisingData(advertisingData: LegacyAdvertisingData([0x02, 0x01, 0x06])), to: 0)
        world.send(LESetScanResponseData(scanResponseData: LegacyAdvertisingData([0x02, 0x09, 0x41])), to: 0)
        world.send(
            LESetAdvertisingParameters(advertisingIntervalMin: 160, advertisingIntervalMax: 160),
            to: 0
        )
        world.send(LESetScanParameters(leScanType: .passive), to: 1)
        world.send(LESetScanEnable(leScanEnable: true, filterDuplicates: true), to: 1)
        world.send(LESetScanParameters(leScanType: .active), to: 2)
        world.send(LESetScanEnable(leScanEnable: true), to: 2)
        world.forget()
        world.send(LESetAdvertisingEnable(advertisingEnable: true), to: 0)
        world.run(.seconds(1))
        let advertisement: [UInt8] = [
            0x04, 0x3E, 0x0F, 0x02, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x03, 0x02, 0x01, 0x06, 0xD8,
        ]
        #expect(world.packets[1] == [advertisement])
        #expect(world.packets[2].first == advertisement)
        #expect(world.packets[2].dropFirst().first?[5] == 0x04)
        // Every 100 ms and up to 10 ms more, an advertisement and a scan response each.
        #expect((18...20).contains(world.packets[2].count))
    }

    @Test("A connection is told to both hosts with the same parameters and opposite roles")
    func connecting() throws {
        let world = World(count: 2)
        world.connect()
        let central = try LEConnectionComplete.decode(try #require(world.packets[1].last))
        let peripheral = try LEConnectionComplete.decode(try #require(world.packets[0].last))
        #expect(central.role == .central && peripheral.role == .peripheral)
        #expect(central.peerAddress.value == 0x1000_0000_0000 && peripheral.peerAddress.value == 0x1000_0000_0001)
        #expect(central.connectionInterval == peripheral.connectionInterval)
    }

    @Test("A cancelled connection is told as Unknown Connection Identifier")
    func cancelling() {
        let world = World(count: 2)
        world.send(LECreateConnection(peerAddress: PeerAddress(DeviceAddress(9, isRandom: false))), to: 1)
        let packets = world.send(LECreateConnectionCancel(), to: 1)
        #expect(packets.first == [0x04, 0x0E, 0x04, 0x01, 0x0E, 0x20, 0x00])
        #expect(packets.last?.prefix(5) == [0x04, 0x3E, 0x13, 0x01, 0x02])
        #expect(world.send(LECreateConnectionCancel(), to: 1) == [[0x04, 0x0E, 0x04, 0x01, 0x0E, 0x20, 0x0C]])
    }

    @Test("By the accept list, only a listed advertiser is connected to")
    func acceptList() {
        let world = World(count: 3)
        world.send(LESetAdvertisingEnable(advertisingEnable: true), to: 0)
        world.send(LESetAdvertisingEnable(advertisingEnable: true), to: 2)
        world.send(
            LEAddDeviceToFilterAcceptList(address: PeerAddress(world.controllers[2].configuration.address)),
            to: 1
        )
        world.send(LECreateConnection(initiatorFilterPolicy: .filterAcceptList), to: 1)
        world.run(.seconds(3))
        #expect(world.controllers[0].links.isEmpty && world.controllers[2].links.count == 1)
    }

    @Test("Data arrive in order, and each packet's buffer is given back once")
    func data() throws {
        let world = World(count: 2) { $0.aclPacketCount = 2 }
        world.connect()
        world.forget()
        for value: UInt8 in 1...2 {
            world.controllers[1].receive([0x02, 0x40, 0x00, 0x02, 0x00, value, value].rawSpan)
        }
        world.run()
        #expect(world.packets[0] == [[0x02, 0x40, 0x20, 0x02, 0x00, 1, 1], [0x02, 0x40, 0x20, 0x02, 0x00, 2, 2]])
        #expect(world.packets[1] == Array(repeating: [0x04, 0x13, 0x05, 0x01, 0x40, 0x00, 0x01, 0x00], count: 2))
    }

    @Test("More packets than there are buffers for overflow them; data for no link are dropped")
    func overflow() {
        let world = World(count: 2) { $0.aclPacketCount = 1 }
        world.connect()
        world.forget()
        for value: UInt8 in 1...2 { world.controllers[1].receive([0x02, 0x40, 0x00, 0x01, 0x00, value].rawSpan) }
        world.controllers[1].receive([0x02, 0x99, 0x00, 0x01, 0x00, 3].rawSpan)
        world.run()
        #expect(world.packets[0] == [[0x02, 0x40, 0x20, 0x01, 0x00, 1]])
        #expect(world.packets[1].contains([0x04, 0x1A, 0x01, 0x01]))
    }

    @Test("A disconnection is told to both hosts, each with its reason")
    func disconnecting() {
        let world = World(count: 2)
        world.connect()
        world.forget()
        world.send(Disconnect(connectionHandle: 0x0040), to: 1)
        #expect(world.packets[1].last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x16])
        #expect(world.packets[0].last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x13])
        #expect(world.controllers.allSatisfy { $0.links.isEmpty })
    }

    @Test("A controller that vanishes ends its links for their peers")
    func vanishing() {
        let world = World(count: 2)
        world.connect()
        world.forget()
        world.controllers[1].vanish()
        world.run()
        #expect(world.packets[0].last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x08])
        #expect(world.packets[1].isEmpty)
    }

    @Test("The same world runs the same way")
    func deterministic() {
        func trace() -> [[[UInt8]]] {
            let world = World(count: 2)
            world.send(LESetScanEnable(leScanEnable: true), to: 1)
            world.connect()
            return world.packets
        }
        #expect(trace() == trace())
    }

    @Test("Truncated commands are refused and never trap")
    func truncated() {
        let world = World(count: 1)
        let commands: [[UInt8]] = [
            [0x01, 0x06, 0x20], [0x01], [], [0x01, 0x0D, 0x20, 0x03, 1, 2, 3], [0x01, 0x0B, 0x20, 0x01, 0x07],
            [0x01, 0x0A, 0x20, 0x01, 0x02], [0x01, 0x06, 0x04, 0x02, 0x40, 0x00], [0x02, 0x40], [0x09, 0x00],
        ]
        for command in commands {
            let answers = world.send(command, to: 0)
            #expect(answers.allSatisfy { $0.last != 0x00 }, "\(command) was carried out")
        }
        #expect(world.send(Reset(), to: 0).count == 1)
    }
}

extension ReadLocalSupportedCommands.ReturnParameters {
    static func decode(_ packet: [UInt8]) throws -> Self {
        guard case .commandComplete(let event) = try Event(decoding: packet.rawSpan.extracting(droppingFirst: 1)) else {
            throw PacketDecodingError.invalidLength(packet.count, field: "event")
        }
        return try event.decode(ReadLocalSupportedCommands.self).get()
    }
}

extension LEConnectionComplete {
    static func decode(_ packet: [UInt8]) throws -> Self {
        try LEConnectionComplete(decoding: packet.rawSpan.extracting(droppingFirst: 4))
    }
}
