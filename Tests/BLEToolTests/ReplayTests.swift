import BluetoothTesting
import Foundation
import HCITransport
import Testing

@testable import BLETool

@Suite("ble replay")
struct ReplayTests {
    private static let path = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fixtures/explore-kernel.btsnoop").path

    /// The fixture with another octet at the end of a request by which the host goes on with the discovery of services, and
    /// where that stands.
    private func changed() throws -> (recording: PacketRecording, index: Int) {
        var packets = try PacketRecording(path: ReplayTests.path).packets
        let requests = packets.indices.filter {
            packets[$0].direction == .hostToController && packets[$0].bytes.dropFirst(9).first == 0x10
        }
        let index = try #require(requests.dropFirst().first)
        var bytes = packets[index].bytes
        bytes[bytes.count - 1] ^= 0x40
        let packet = packets[index]
        packets[index] = .init(number: packet.number, time: packet.time, direction: packet.direction, bytes: bytes)
        return (PacketRecording(packets: packets), index)
    }

    @Test("The first frame that differs is shown as `ble decode` has it, with those around and what came instead")
    func report() throws {
        let (recording, index) = try changed()
        let link = try #require(TracedLink.all(in: recording).first)
        let replay = LinkReplay(link, isCentral: true)
        try replay.run()
        let difference = try #require(replay.difference)
        let lines = DifferenceReport(recording).lines(of: difference, on: link)
        let expected = try #require(lines.firstIndex { $0.hasPrefix("expected ") })
        #expect(lines[expected].contains(" \(recording.packets[index].number) "))
        #expect(lines[expected].contains(" < ACL ") && lines[expected].contains("ATT "))
        #expect(lines[expected + 1].hasPrefix("sent ") && lines[expected + 1].contains("ATT "))
        #expect(lines[expected] != lines[expected + 1])
        // Five packets before, five after, and three lines on the octets.
        #expect(expected == 5 && lines.count == 5 + 2 + 5 + 3)
        #expect(lines.contains { $0.hasPrefix("the first octet that differs") })
    }

    @Test("A packet to the controller that was not sent is shown as such")
    func missing() throws {
        let (recording, index) = try changed()
        let difference = ReplayDifference(time: .zero, index: index, expected: recording.packets[index], sent: nil)
        let lines = DifferenceReport(recording).lines(of: difference)
        #expect(lines.contains("sent     nothing"))
        #expect(lines.count == 12)
    }

    @Test("Arguments are read, and a role is one of two")
    func arguments() throws {
        let command = try ReplayCapture.parse(["x.btsnoop", "--as", "peripheral", "--link", "2"])
        #expect(command.role == .peripheral && command.link == 2 && !command.exact)
        #expect(throws: (any Error).self) { try ReplayCapture.parse(["x.btsnoop", "--as", "server"]) }
        #expect(throws: (any Error).self) { try ReplayCapture.parse([]) }
    }
}
