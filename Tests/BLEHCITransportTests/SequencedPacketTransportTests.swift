import Glibc
import Testing

@testable import BLEHCITransport

@Suite("A transport over a socket that preserves packets", .timeLimit(.minutes(10)))
struct SequencedPacketTransportTests {
    @Test func eachPacketIsDeliveredAndWrittenAlone() async throws {
        let (probe, peer) = try await Probe.connected(to: .seqpacket())
        await probe.send([Sample.reset, Sample.acl, Sample.iso])
        #expect(await peer.readOnce() == Sample.reset)
        #expect(await peer.readOnce() == Sample.acl)
        #expect(await peer.readOnce() == Sample.iso)
        for packet in Sample.all { peer.write(packet) }
        #expect(await probe.next(Sample.all.count) == Sample.all.map { .packet($0) })
        await probe.perform { $0.close() }
    }

    @Test func longestPacketIsDeliveredWhole() async throws {
        let (probe, peer) = try await Probe.connected(to: .seqpacket())
        let packet = [0x02, 0x40, 0x20, 0xFF, 0xFF] + [UInt8](repeating: 7, count: 0xFFFF)
        peer.write(packet)
        #expect(await probe.next() == .packet(packet))
        await probe.perform { $0.close() }
    }

    /// As an HCI socket does.
    @Test func packetsWithInvalidFramingAreDelivered() async throws {
        let (probe, peer) = try await Probe.connected(to: .seqpacket())
        let truncated = Array(Sample.acl.dropLast())
        peer.write(truncated)
        peer.write([0x48])
        peer.write(Sample.commandComplete)
        #expect(await probe.next(3) == [.packet(truncated), .packet([0x48]), .packet(Sample.commandComplete)])
    }

    @Test func hangUpIsReportedEvenIfDetectedWhileSending() async throws {
        let (probe, peer) = try await Probe.connected(to: .seqpacket())
        peer.write(Sample.acl)
        peer.hangUp()
        #expect(await probe.next(2) == [.packet(Sample.acl), .ended(.closedByPeer)])

        let (sender, other) = try await Probe.connected(to: .seqpacket())
        other.hangUp()
        await sender.perform { transport in
            for _ in 0..<100 { transport.send(Sample.reset) }
        }
        #expect(await sender.next() == .ended(.closedByPeer))
    }

    @Test func unacceptedPacketsAreQueuedAndWrittenWhole() async throws {
        let (probe, peer) = try await Probe.connected(to: .seqpacket())
        let count = 2000
        await probe.perform { transport in
            for number in 0..<count {
                transport.send([2, 0x40, 0, 2, 0, UInt8(number & 0xFF), UInt8(number >> 8)])
            }
        }
        for number in 0..<count {
            let packet = await peer.readOnce()
            #expect(packet == [2, 0x40, 0, 2, 0, UInt8(number & 0xFF), UInt8(number >> 8)])
        }
        await probe.perform { $0.close() }
    }

    @Test func openingFailsWithoutAListenerOrWithAStreamListener() async throws {
        let folder = TemporaryFolder()
        let nowhere = AdapterSpecification.seqpacket(path: folder.path + "/nothing")
        await #expect(throws: TransportError.connectionFailed("\(nowhere)", errno: ENOENT)) {
            try await nowhere.open(on: .init(label: "refused"))
        }
        let stream = Listener.unix()
        guard case .unix(let path) = stream.specification else {
            Issue.record("it listens on \(stream.specification)")
            return
        }
        let wrong = AdapterSpecification.seqpacket(path: path)
        await #expect(throws: TransportError.connectionFailed("\(wrong)", errno: EPROTOTYPE)) {
            try await wrong.open(on: .init(label: "refused"))
        }
    }
}
