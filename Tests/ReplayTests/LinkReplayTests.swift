import BLE
import BLEHCITransport
import BluetoothTesting
import Foundation
import Testing

@Suite("A host in place of one device of a recorded link")
struct LinkReplayTests {
    /// Links on which the peer breaks the protocol, or on which an app acted in a way that a trace does not show.
    private static let irregular: Set<String> = ["malformed-peripheral", "served-malformed"]
    /// Recordings of advertising and scanning.
    private static let withoutLinks: Set<String> = ["extended-advertising", "extended-scan", "malformed-advertiser"]

    static func links(_ name: String) throws -> [TracedLink] {
        TracedLink.all(in: try PacketRecording(Fixtures.bytes(name)))
    }

    @Test(arguments: Fixtures.names.filter { !irregular.contains($0) })
    func hostInItsOwnPlaceSendsTheSamePackets(name: String) throws {
        let links = try LinkReplayTests.links(name)
        #expect(links.isEmpty == LinkReplayTests.withoutLinks.contains(name))
        for link in links {
            let isCentral: Bool = try #require(link.isCentral as Bool?)
            let replay = LinkReplay(link, isCentral: isCentral)
            try replay.run()
            if let difference = replay.difference { Issue.record("link \(link.number): \(difference)") }
            let sent = link.frames.count { $0.isSent && $0.channel == .attribute }
            #expect(replay.comparedCount >= sent)
        }
    }

    @Test func hostInThePlaceOfBLEServeSendsTheRecordedAnswers() throws {
        let link = try #require(try LinkReplayTests.links("explore-kernel").first)
        #expect(link.isCentral == true)
        let replay = LinkReplay(link, isCentral: false)
        try replay.run()
        #expect(replay.difference == nil)
        #expect(replay.comparedCount > 20)
    }

    @Test(arguments: [0.0, 0.5, 1.0])
    func changedFrameIsFoundAtAnyPosition(place: Double) throws {
        var packets = try PacketRecording(Fixtures.bytes("explore-kernel")).packets
        let continuing = LinkReplayTests.continuing(packets)
        #expect(continuing.count > 10)
        let index = continuing[Int(place * Double(continuing.count - 1))]
        var bytes = packets[index].bytes
        bytes[bytes.count - 1] ^= 0x40
        packets[index] = .init(
            number: packets[index].number,
            time: packets[index].time,
            direction: .hostToController,
            bytes: bytes
        )
        let link = try #require(TracedLink.all(in: PacketRecording(packets: packets)).first)
        let replay = LinkReplay(link, isCentral: true)
        try replay.run()
        let difference = try #require(replay.difference)
        #expect(difference.expected?.index == index)
        #expect(difference.expected?.payload.last == bytes.last)
        #expect(difference.sent != nil && difference.sent != difference.expected?.payload)
    }

    /// The indices of requests that continue a discovery: equal to the previous one except for the start handle.
    private static func continuing(_ packets: [PacketRecording.Packet]) -> [Int] {
        let requests = packets.indices.filter {
            packets[$0].direction == .hostToController && packets[$0].bytes[0] == 2 && packets[$0].bytes.count > 13
        }
        return zip(requests, requests.dropFirst()).filter { before, after in
            let (asked, asks) = (packets[before].bytes, packets[after].bytes)
            return asked != asks && asked.prefix(10) == asks.prefix(10) && asked.dropFirst(12) == asks.dropFirst(12)
        }.map(\.1)
    }

    @Test(
        "Captures of other hosts are played in either place, to their end or to a difference",
        arguments: publicCaptures
    )
    func capturesOfOtherHostsArePlayed(file: URL) throws {
        for link in TracedLink.all(in: try PacketRecording(path: file.path)) {
            for isCentral in [true, false] {
                let replay = LinkReplay(link, isCentral: isCentral)
                try replay.run()
                // A difference has an expected packet or a sent packet.
                if let difference = replay.difference { #expect(difference.expected != nil || difference.sent != nil) }
            }
        }
    }

    /// Captures of real devices, which may lie beside the repository.
    private static let publicCaptures: [URL] = {
        let folder = Fixtures.folder.deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("shared/captures")
        let files = try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        return (files ?? []).filter { ["btsnoop", "log"].contains($0.pathExtension) }.sorted { $0.path < $1.path }
    }()

    @Test("A characteristic declared at the last handle is not served", arguments: [true, false])
    func characteristicDeclaredAtTheLastHandleIsNotServed(isCentral: Bool) throws {
        // Read By Type Request for all characteristics. The response declares one at 0xFFFF with its value at 0x0000.
        let request: [UInt8] = [0x02, 0x40, 0x20, 11, 0, 7, 0, 4, 0, 0x08, 0x01, 0x00, 0xFF, 0xFF, 0x03, 0x28]
        let response: [UInt8] = [
            0x02, 0x40, 0x00, 13, 0, 9, 0, 4, 0, 0x09, 7, 0xFF, 0xFF, 0x02, 0x00, 0x00, 0x00, 0x2A,
        ]
        let recording = PacketRecording(packets: [
            .init(number: 1, time: .zero, direction: .controllerToHost, bytes: request),
            .init(number: 2, time: .milliseconds(1), direction: .hostToController, bytes: response),
        ])
        let link = try #require(TracedLink.all(in: recording).first)
        let replay = LinkReplay(link, isCentral: isCentral)
        try replay.run()
        let difference = try #require(replay.difference)
        #expect(difference.expected?.index == 1)
        #expect(difference.sent == [0x01, 0x08, 0x01, 0x00, 0x0A], "Attribute Not Found")
    }

    @Test("A link that was made before the recording has unknown roles")
    func linkBeforeTheRecordingHasUnknownRoles() throws {
        let recording = try PacketRecording(Fixtures.bytes("explore-kernel"))
        let data = recording.packets.filter { $0.bytes[0] == 2 }
        let links = TracedLink.all(in: PacketRecording(packets: data))
        #expect(links.count == 1)
        let link = try #require(links.first)
        #expect(link.isCentral == nil && link.peer == nil && link.frames.count > 40)
        let replay = LinkReplay(link, isCentral: true)
        try replay.run()
        #expect(replay.difference == nil)
    }
}
