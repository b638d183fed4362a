import BLEByteCoding
import Testing

@testable import BLEHCITransport

@Suite("The H4 decoder")
struct H4StreamDecoderTests {
    private static let stream = Sample.all.flatMap { $0 }

    private func packets(of decoder: inout H4StreamDecoder) throws -> [[UInt8]] {
        var packets: [[UInt8]] = []
        try decoder.forEachPacket {
            packets.append([UInt8](copying: $0))
            return true
        }
        return packets
    }

    @Test(arguments: Sample.all)
    func completePacketIsFound(packet: [UInt8]) throws {
        var decoder = H4StreamDecoder(recovery: .fail)
        decoder.append(packet)
        #expect(try packets(of: &decoder) == [packet])
        #expect(try packets(of: &decoder) == [])
    }

    @Test(arguments: 1...stream.count)
    func packetsInPiecesOfAnyLengthAreFound(pieceLength: Int) throws {
        var decoder = H4StreamDecoder(recovery: .fail)
        var found: [[UInt8]] = []
        for start in stride(from: 0, to: Self.stream.count, by: pieceLength) {
            decoder.append(Array(Self.stream[start..<min(start + pieceLength, Self.stream.count)]))
            found += try packets(of: &decoder)
        }
        #expect(found == Sample.all)
    }

    @Test(arguments: [0, 1, 7, 4090])
    func packetsLongerThanTheFirstBufferAreHeldAtEveryPosition(lead: Int) throws {
        let acl: [UInt8] = [0x02, 0x40, 0x20, 0xFF, 0xFF] + (0..<0xFFFF).map { UInt8(truncatingIfNeeded: $0) }
        var decoder = H4StreamDecoder(recovery: .fail)
        decoder.append([UInt8](repeating: 0, count: lead).flatMap { _ in Sample.emptyEvent })
        decoder.append(acl + Sample.commandComplete)
        let found = try packets(of: &decoder)
        #expect(found.count == lead + 2)
        #expect(found.suffix(2) == [acl, Sample.commandComplete])
    }

    @Test func incompletePacketThatFillsTheBufferIsCompleted() throws {
        let acl: [UInt8] = [0x02, 0x40, 0x20, 0x00, 0x30] + [UInt8](repeating: 7, count: 0x3000)
        var decoder = H4StreamDecoder(recovery: .fail)
        var found: [[UInt8]] = []
        var source = (acl + Sample.acl)[...]
        while !source.isEmpty {
            _ = decoder.fill { buffer, offset in
                let count = min(buffer.count - offset, source.count)
                #expect(count > 0)
                buffer.replaceSubrange(offset..<(offset + count), with: source.prefix(count))
                source = source.dropFirst(count)
                return .success(count)
            }
            found += try packets(of: &decoder)
        }
        #expect(found == [acl, Sample.acl])
    }

    @Test func decodingStopsOnRequestAndContinuesLater() throws {
        var decoder = H4StreamDecoder(recovery: .fail)
        decoder.append(Self.stream)
        var count = 0
        try decoder.forEachPacket { _ in
            count += 1
            return count < 2
        }
        #expect(count == 2)
        #expect(try packets(of: &decoder) == Array(Sample.all.dropFirst(2)))
    }

    @Test(
        arguments: [0x00, 0x01, 0x06, 0xFF] as [UInt8]
    )
    func bytesThatNoControllerSendsFailAfterThePacketsBefore(octet: UInt8) {
        var decoder = H4StreamDecoder(recovery: .fail)
        decoder.append(Sample.acl + [octet, 0x0E, 0x04])
        var found: [[UInt8]] = []
        #expect(throws: H4StreamDecoder.BrokenStream(octet: octet)) {
            try decoder.forEachPacket {
                found.append([UInt8](copying: $0))
                return true
            }
        }
        #expect(found == [Sample.acl])
    }

    @Test(
        arguments: [Sample.reset, Sample.acl, Sample.synchronous, Sample.iso]
    )
    func hostStreamHasCommandsAndFailsAtAnEvent(packet: [UInt8]) throws {
        var decoder = H4StreamDecoder(recovery: .fail, sender: .host)
        decoder.append(packet + packet + Sample.emptyEvent)
        var found: [[UInt8]] = []
        #expect(throws: H4StreamDecoder.BrokenStream(octet: 0x04)) {
            try decoder.forEachPacket {
                found.append([UInt8](copying: $0))
                return true
            }
        }
        #expect(found == [packet, packet])
    }

    @Test(
        arguments: [
            [0x00], [0xFF, 0xFF, 0xFF], [0x01, 0x03, 0x0C, 0x00], [0x00, 0x55, 0xAA],
            // Looks like an event of 14 bytes until its end.
            [0x04, 0x00, 0x0E],
            // A Command Status of the wrong length, and an ACL packet for an invalid handle.
            [0x04, 0x0F, 0x07], [0x02, 0xFF, 0x2F, 0x01, 0x00, 0x00],
        ] as [[UInt8]],
        [1, 1000]
    )
    func framingIsFoundAgainAfterNoise(noise: [UInt8], pieceLength: Int) throws {
        let stream = noise + Sample.commandComplete + Sample.acl + [0xFF] + noise + Sample.advertisingReport
        var decoder = H4StreamDecoder(recovery: .search)
        var found: [[UInt8]] = []
        for start in stride(from: 0, to: stream.count, by: pieceLength) {
            decoder.append(Array(stream[start..<min(start + pieceLength, stream.count)]))
            found += try packets(of: &decoder)
        }
        #expect(found.last == Sample.advertisingReport)
        #expect(found.contains(Sample.commandComplete))
        #expect(decoder.skippedBytes > 0)
    }

    @Test func searchAfterAPacketNeedsPermission() throws {
        var decoder = H4StreamDecoder(recovery: .search)
        var found: [[UInt8]] = []
        var requests = 0
        func decode(permitting isPermitted: Bool) throws {
            try decoder.forEachPacket {
                found.append([UInt8](copying: $0))
                return true
            } maySearch: {
                requests += 1
                return isPermitted
            }
        }
        decoder.append([0xFF, 0xFE] + Sample.acl)
        try decode(permitting: false)
        #expect(found == [Sample.acl] && requests == 0, "the search at the start needs no permission")
        decoder.append([0xFF, 0xFE] + Sample.acl)
        try decode(permitting: true)
        #expect(found == [Sample.acl, Sample.acl] && requests == 1)
        decoder.append(Sample.iso + [0xFD] + Sample.acl)
        #expect(throws: H4StreamDecoder.BrokenStream(octet: 0xFD)) { try decode(permitting: false) }
        #expect(found == [Sample.acl, Sample.acl, Sample.iso] && requests == 2)
    }

    @Test func searchThatFindsNothingEnds() {
        var decoder = H4StreamDecoder(recovery: .search)
        decoder.append([UInt8](repeating: 0xFF, count: H4StreamDecoder.searchLimit))
        #expect(throws: Never.self) { try decoder.forEachPacket { _ in true } }
        decoder.append([0xFF])
        #expect(throws: H4StreamDecoder.BrokenStream(octet: 0xFF)) { try decoder.forEachPacket { _ in true } }
    }

    @Test(
        arguments: [H4StreamDecoder.Recovery.fail, .search]
    )
    func flippedBitsNeverTrapNorCountAByteTwice(recovery: H4StreamDecoder.Recovery) {
        for bit in 0..<(Self.stream.count * 8) {
            var stream = Self.stream
            stream[bit / 8] ^= 1 << (bit % 8)
            var decoder = H4StreamDecoder(recovery: recovery)
            decoder.append(stream)
            var octets = 0
            do throws(H4StreamDecoder.BrokenStream) {
                try decoder.forEachPacket {
                    octets += $0.byteCount
                    return true
                }
            } catch {
                #expect(recovery == .fail)
            }
            #expect(octets + decoder.skippedBytes <= stream.count)
        }
    }
}
