import BLEByteCoding
import BLECapture
import BLEHCI
import BluetoothHost
import BluetoothTesting
import Testing

@testable import CoreBluetooth

/// The order of an app's calls that control the link itself.
@Suite("Call order of commands for a link")
struct LinkCallOrderTests {
    /// The commands in a capture.
    private func opcodes(inCapture capture: [UInt8]) throws -> [HCIOpcode] {
        var reader = CaptureReader()
        reader.append(capture.rawSpan)
        reader.finish()
        var opcodes: [HCIOpcode] = []
        while case .record = try reader.advance() {
            guard let record = reader.record, case .packet(.command, _, let bytes) = record.content,
                let command = try? CommandPacket(decoding: bytes)
            else { continue }
            opcodes.append(command.opcode)
        }
        return opcodes
    }

    @Test func updatesOfALinkBeginInTheOrderOfTheCalls() throws {
        let world = World(seed: 91, recordsCaptures: true)
        defer { world.close() }
        let capture = try world.run {
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            try await world.sleep(for: .seconds(3))
            let backend = pair.phone.backend
            let answered = Mailroom<Int>()
            let parameters = ConnectionParameters(interval: .milliseconds(50)...(.milliseconds(50)))
            backend.updateParameters(parameters, of: peripheral) { result in
                if case .failure(let error) = result { Issue.record("\(error)") }
                answered.post(0)
            }
            backend.setPHYs(transmit: .le2M, receive: .le2M, of: peripheral) { result in
                if case .failure(let error) = result { Issue.record("\(error)") }
                answered.post(1)
            }
            backend.readRSSI(of: peripheral) { _ in answered.post(2) }
            for number in 0...2 { await answered.next { $0 == number ? () : nil } }
            return pair.phoneDevice.device.capture
        }
        let commands: [HCIOpcode] = [LEConnectionUpdate.opcode, LESetPHY.opcode, ReadRSSI.opcode]
        #expect(try opcodes(inCapture: capture).filter { commands.contains($0) }.suffix(3) == commands[...])
    }

    /// The packets of a host with one link: notifications, requests for connection parameters and Disconnect.
    private func sent(inCapture capture: [UInt8]) throws -> [String] {
        var reader = CaptureReader()
        reader.append(capture.rawSpan)
        reader.finish()
        var sent: [String] = []
        while case .record = try reader.advance() {
            guard let record = reader.record, case .packet(let kind, .hostToController?, let bytes) = record.content
            else { continue }
            let packet = [UInt8](copying: bytes)
            if kind == .command, try CommandPacket(decoding: bytes).opcode == Disconnect.opcode {
                sent.append("disconnect")
            } else if kind == .acl, packet.count > 8 {
                // The channel and the first byte of the PDU.
                if packet[6] == 4, packet[8] == 0x1B { sent.append("notification") }
                if packet[6] == 5, packet[8] == 0x12 { sent.append("parameters") }
            }
        }
        return sent
    }

    @Test func valuesLeaveBeforeTheirCentralIsDisconnected() throws {
        try World.run(seed: 98) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let characteristic = try #require(try await pair.characteristics(of: peripheral).first)
            try await pair.phone.configure(.notification, of: characteristic, on: peripheral).get()
            let (central, _, _) = await pair.lamp.configured()
            try await world.sleep(for: .seconds(3))
            // More values than the controller has buffers for.
            let values = (0..<100).map { [UInt8($0)] }
            let backend = pair.lamp.backend
            let sent = Mailroom<Void>()
            for value in values { backend.update(value, of: pair.handle(0), to: [central.link]) { _ in } }
            backend.disconnect(central.identifier)
            backend.update([255], of: pair.handle(0), to: [central.link]) { _ in sent.post(()) }
            _ = await pair.phone.disconnected(peripheral)
            let received = pair.phone.events.waiting.compactMap { event -> [UInt8]? in
                if case .valueReceived(_, _, let value) = event { value } else { nil }
            }
            #expect(received == values)
            await sent.next { $0 }
        }
    }

    @Test func callsOfAPeripheralManagerLeaveInTheirOrder() throws {
        let world = World(seed: 95, recordsCaptures: true)
        defer { world.close() }
        let capture = try world.run {
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let characteristic = try #require(try await pair.characteristics(of: peripheral).first)
            try await pair.phone.configure(.notification, of: characteristic, on: peripheral).get()
            let (central, _, _) = await pair.lamp.configured()
            try await world.sleep(for: .seconds(3))
            let backend = pair.lamp.backend
            backend.update([1], of: pair.handle(0), to: [central.link]) { _ in }
            backend.setLatency(.low, of: central.identifier)
            backend.update([2], of: pair.handle(0), to: [central.link]) { _ in }
            backend.disconnect(central.identifier)
            backend.setLatency(.high, of: central.identifier)
            _ = await pair.phone.disconnected(peripheral)
            return pair.lampDevice.device.capture
        }
        #expect(try sent(inCapture: capture) == ["notification", "parameters", "notification", "disconnect"])
    }
}
