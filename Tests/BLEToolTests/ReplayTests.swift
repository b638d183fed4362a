import ArgumentParser
import BLEByteCoding
import BLECapture
import BLEHCITransport
import BluetoothTesting
import Foundation
import Glibc
import Testing

@testable import BLETool

@Suite("ble replay")
struct ReplayTests {
    private static let path = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fixtures/explore-kernel.btsnoop").path

    /// The fixture with another byte at the end of a request with which the host continues the discovery of services.
    ///
    /// - Returns: the recording, and the index of the packet.
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

    @Test("The first different frame is shown as in `ble decode`, with its neighbors and the packet that came instead")
    func firstDifferentFrameIsShownWithItsNeighbors() throws {
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
        // Five packets before, five after, and three lines about the bytes.
        #expect(expected == 5 && lines.count == 5 + 2 + 5 + 3)
        #expect(lines.contains { $0.hasPrefix("the first byte that differs") })
    }

    @Test("A packet to the controller that was not sent is marked")
    func packetThatWasNotSentIsMarked() throws {
        let (recording, index) = try changed()
        let difference = ReplayDifference(time: .zero, index: index, expected: recording.packets[index], sent: nil)
        let lines = DifferenceReport(recording).lines(of: difference)
        #expect(lines.contains("sent     nothing"))
        #expect(lines.count == 12)
    }

    @Test("Arguments are parsed, and a role is one of two")
    func replayArgumentsAreParsedAndAnUnknownRoleIsRefused() throws {
        let command = try ReplayCapture.parse(["x.btsnoop", "--as", "peripheral", "--link", "2"])
        #expect(command.role == .peripheral && command.link == 2 && !command.json)
        let problem = ReplayCapture.problem(with: ["x.btsnoop", "--as", "server"])
        #expect(problem?.hasPrefix("The value 'server' is invalid for '--as") == true)
        #expect(ReplayCapture.problem(with: []) == "Missing expected argument '<file>'")
    }

    @Test("A recording ends with the section of a pcapng file, because the next section is of another host")
    func recordingEndsWithItsSection() throws {
        let packets = try PacketRecording(path: ReplayTests.path).packets.prefix(20)
        var section = PacketBuffer(headroom: 0)
        var writer = CaptureWriter(.pcapng)
        writer.encodeHeader(into: &section)
        for packet in packets {
            let (bytes, time) = (packet.bytes, CaptureTime(seconds: 0, nanoseconds: 0))
            writer.encode(h4Packet: bytes.rawSpan, packet.direction, time: time, into: &section)
        }
        let file = [UInt8](copying: section.bytes)
        let one = try PacketRecording(file)
        #expect(one.packets.map(\.bytes) == packets.map(\.bytes))
        #expect(!one.isCut)
        let two = try PacketRecording(file + file)
        #expect(two.packets == one.packets)
        #expect(two.isCut)
    }

    @Test("An interruption ends the wait for the writer of a pipe", .timeLimit(.minutes(10)))
    func interruptionEndsTheWaitForAPipe() async throws {
        let path = FileManager.default.temporaryDirectory.path + "/replay-\(UUID().uuidString)"
        try #require(unsafe mkfifo(path, 0o600) == 0)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let task = Task { try await ReplayCapture.parse([path]).run() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test("The exit status reports whether a capture differs; a file that is no capture is named")
    func exitStatusReportsWhetherACaptureDiffers() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("replay-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func file(_ name: String, _ bytes: [UInt8]) throws -> String {
            let file = folder.appendingPathComponent(name)
            try Data(bytes).write(to: file)
            return file.path
        }
        func replay(_ arguments: String...) async throws {
            try await ReplayCapture.parse(arguments).run()
        }
        try await replay(ReplayTests.path)
        try await replay(ReplayTests.path, "--json", "--link", "1")

        var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: ReplayTests.path)))
        // A bit of the host's event mask: the first byte of LE Set Event Mask.
        let command = try #require(bytes.indices.first { bytes[$0...].starts(with: [1, 0x01, 0x20, 8]) })
        bytes[command + 4] ^= 1
        let changed = try file("changed.btsnoop", bytes)
        await #expect(throws: ExitCode.failure) { try await replay(changed) }
        await #expect(throws: ExitCode.failure) { try await replay(changed, "--json") }
        try await replay(changed, "--as", "central")

        await #expect(throws: ReplayError.self) { try await replay(ReplayTests.path, "--link", "2") }
        for content in [[], Array("no capture".utf8), [0, 1, 2, 3]] as [[UInt8]] {
            let path = try file("other", content)
            await #expect(throws: CaptureFileError.self) { try await replay(path) }
        }
        await #expect(throws: CaptureFileError.self) { try await replay(folder.path + "/missing") }
        let header = try file("header.btsnoop", Array(bytes.prefix(16)))
        await #expect(throws: ReplayError.self) { try await replay(header) }
    }
}
