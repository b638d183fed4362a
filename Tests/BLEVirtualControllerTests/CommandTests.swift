import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Commands of software controllers")
struct CommandTests {
    @Test("Reset is answered; unknown and malformed commands are refused as such")
    func resetIsAnsweredAndUnknownOrMalformedCommandsAreRefused() {
        let world = World(count: 1)
        #expect(world.send(Reset(), to: 0) == [[0x04, 0x0E, 0x04, 0x01, 0x03, 0x0C, 0x00]])
        #expect(world.send([0x01, 0x99, 0x20, 0x00], to: 0) == [[0x04, 0x0E, 0x04, 0x01, 0x99, 0x20, 0x01]])
        #expect(world.send([0x01, 0x06, 0x20, 0x01, 0x00], to: 0) == [[0x04, 0x0E, 0x04, 0x01, 0x06, 0x20, 0x12]])
        // A command that is answered by Command Status is also refused by it.
        #expect(world.send([0x01, 0x06, 0x04, 0x01, 0x40], to: 0) == [[0x04, 0x0F, 0x04, 0x12, 0x01, 0x06, 0x04]])
    }

    @Test(
        "Exactly the listed commands are supported",
        arguments: [LEFeatures.all, .bluetooth42]
    )
    func exactlyTheListedCommandsAreSupported(features: LEFeatures) throws {
        let world = World(count: 1) { $0.features = features }
        let packet = try #require(world.send(ReadLocalSupportedCommands(), to: 0).first)
        let event = try CommandComplete(decoding: packet.rawSpan.extracting(droppingFirst: 3))
        let listed = try event.decode(ReadLocalSupportedCommands.self).get().supportedCommands
        #expect(listed.contains(LESetExtendedAdvertisingEnable.self) == features.contains(.extendedAdvertising))
        #expect(listed.contains(LESetPHY.self) == features.contains(.le2MPHY))
        // The commands of the controller's groups, each with parameters that none accepts.
        let opcodes = [0x0400, 0x0C00, 0x1000, 0x1400, 0x2000].flatMap { group in (1...0x7F).map { group + $0 } }
        var known = 0
        for opcode in opcodes.map({ HCIOpcode(rawValue: UInt16($0)) }) where listed.contains(opcode) || !isBare(opcode)
        {
            let command = [0x01, UInt8(truncatingIfNeeded: opcode.rawValue), UInt8(opcode.rawValue >> 8), 0xFF]
            let answer = try #require(world.send(command + [UInt8](repeating: 0xFF, count: 255), to: 0).first)
            let status = answer[1] == 0x0E ? answer[6] : answer[3]
            #expect((status == 0x01) != listed.contains(opcode), "\(opcode)")
            if status != 0x01 { known += 1 }
        }
        #expect(known > 40)
    }

    @Test("A failed command returns its connection handle if its return parameters begin with one")
    func failedCommandReturnsItsConnectionHandle() {
        let world = World(count: 1)
        let length = LESetDataLength(connectionHandle: 0x0123, txOctets: 27, txTime: 328)
        #expect(
            world.send(length, to: 0) == [[0x04, 0x0E, 0x06, 0x01, 0x22, 0x20, 0x02, 0x23, 0x01]]
        )
        // The values after the handle are zero.
        #expect(
            world.send(ReadRSSI(connectionHandle: 0x0123), to: 0)
                == [[0x04, 0x0E, 0x07, 0x01, 0x05, 0x14, 0x02, 0x23, 0x01, 0x00]]
        )
        // Malformed commands, with and without a handle.
        #expect(
            world.send([0x01, 0x05, 0x14, 0x03, 0x23, 0x01, 0x00], to: 0)
                == [[0x04, 0x0E, 0x07, 0x01, 0x05, 0x14, 0x12, 0x23, 0x01, 0x00]]
        )
        #expect(world.send([0x01, 0x05, 0x14, 0x01, 0x23], to: 0) == [[0x04, 0x0E, 0x04, 0x01, 0x05, 0x14, 0x12]])
        // The identifier of a group is no connection handle.
        #expect(world.send(LERemoveCIG(cigID: 1), to: 0) == [[0x04, 0x0E, 0x04, 0x01, 0x65, 0x20, 0x02]])
    }

    /// Whether the command has no bit of its own.
    private func isBare(_ opcode: HCIOpcode) -> Bool { opcode == ReadLocalSupportedCommands.opcode }

    @Test("A controller of version 4.2 reports it in its features, and has no later commands")
    func controllerOfVersion42HasNoLaterCommands() {
        let world = World(count: 1) { $0.features = .bluetooth42 }
        let octets = (0..<8).map { UInt8(truncatingIfNeeded: LEFeatures.bluetooth42.rawValue >> UInt64(8 * $0)) }
        #expect(
            world.send(LEReadLocalSupportedFeatures(), to: 0)
                == [[0x04, 0x0E, 0x0C, 0x01, 0x03, 0x20, 0x00] + octets]
        )
        #expect(
            world.send(LESetDefaultPHY(allPHYs: [], txPHYs: .le1M, rxPHYs: .le1M), to: 0)
                == [[0x04, 0x0E, 0x04, 0x01, 0x31, 0x20, 0x01]]
        )
    }

    @Test("Properties of the configuration that are out of their ranges are replaced by the nearest allowed values")
    func propertiesOutOfTheirRangesAreReplaced() {
        let world = World(count: 1) {
            $0.aclDataLength = 0
            $0.aclPacketCount = 0
            $0.advertisingSetCount = 255
            $0.maximumAdvertisingDataLength = 2000
            $0.maximumLinks = -1
            $0.transmitPower = 30
            $0.minimumTransmitPower = -128
        }
        let configuration = world.controllers[0].configuration
        #expect(configuration.aclDataLength == 27 && configuration.aclPacketCount == 1)
        #expect(configuration.advertisingSetCount == 240 && configuration.maximumAdvertisingDataLength == 1650)
        #expect(configuration.maximumLinks == 1)
        #expect(configuration.transmitPower == 20 && configuration.minimumTransmitPower == -127)
    }

    @Test("Masked events are not sent: no LE events after Reset")
    func maskedEventsAreNotSent() {
        let world = World(count: 1)
        world.send(Reset(), to: 0)
        #expect(world.send(LEReadLocalP256PublicKey(), to: 0) == [[0x04, 0x0F, 0x04, 0x00, 0x01, 0x25, 0x20]])
    }

    @Test("A second command before the answer to the first is counted")
    func secondCommandBeforeAnAnswerIsCounted() {
        let world = World(count: 1)
        let reset = [UInt8]([0x01, 0x03, 0x0C, 0x00])
        let random = [UInt8]([0x01, 0x18, 0x20, 0x00])
        world.controllers[0].receive(random.rawSpan)
        world.controllers[0].receive(random.rawSpan)
        world.run(.zero)
        world.controllers[0].receive(reset.rawSpan)
        world.run(.zero)
        let statistics = world.controllers[0].statistics
        #expect(statistics.commandsBeyondCredit == 1)
    }

    @Test("Invalid packets are dropped and counted")
    func invalidPacketsAreDroppedAndCounted() {
        let world = World(count: 1)
        let before = world.controllers[0].statistics.malformedPackets
        let packets: [[UInt8]] = [
            [], [0x01], [0x01, 0x06, 0x20], [0x01, 0x03, 0x0C, 0x01], [0x02, 0x40],
            [0x02, 0x40, 0x00, 0x01, 0x00, 0x00],
            [0x04, 0x0E, 0x00], [0x09, 0x00],
        ]
        for packet in packets { #expect(world.send(packet, to: 0).isEmpty) }
        #expect(world.controllers[0].statistics.malformedPackets - before == UInt64(packets.count))
        #expect(world.send(Reset(), to: 0).count == 1)
    }
}
