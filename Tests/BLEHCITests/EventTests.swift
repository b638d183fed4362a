import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@Suite("An event")
struct EventTests {
    static let listSamples = [
        "3e23020200019a78563412f00d02010603030d18050953776966ce0400ef3207dc1b00007f",
        "3e410d021300019a78563412f00100ff7fce0000000000000000000d02010603030d180509537769"
            + "66240000ef3207dc1b00030209f9b050000155443322114a020102",
        "3e120b0101019a78563412f0fe55443322114ab0",
        "3e150f2301f9b0ff010d02010603030d18050953776966",
        "3e0e252301f9b0ff6745040003020106",
        "3e1328030400020cc4ff0200020a0b7f7fff03ff00",
        "1309024000030041000201",
        "3e220900" + String(repeating: "a5", count: 32),
        "3e420800" + String(repeating: "a5", count: 32) + String(repeating: "5a", count: 32),
        "0e0601052000fb00",
        "0e03010000",
        "ff03010203",
        "3e037f0102",
        ChannelSoundingStepTests.result,
        "3e23324000020f0f230101034c1720ffce008002000000000000000001ff07800001008013",
    ]

    /// Packets whose list is checked only when it is iterated, or that have any length.
    static let packets = eventSamples.map(\.packet) + returnSamples.map(\.packet) + listSamples.map { bytes($0) }

    @Test("An event is no larger than its largest parameters, because its kind is in spare bits")
    func eventsAreSmall() {
        #expect(MemoryLayout<Event>.size == MemoryLayout<LEEnhancedConnectionCompleteV2>.size)
    }

    @Test(arguments: eventSamples)
    func eventIsEncodedAsSpecified(_ sample: EventSample) {
        #expect(sample.encoded().hexadecimal == sample.packet.hexadecimal)
    }

    @Test(arguments: eventSamples)
    func eventIsDecodedToWhatWasEncoded(_ sample: EventSample) throws {
        #expect(try sample.isDecoded(Array(sample.packet.dropFirst(sample.headerLength))))
    }

    @Test(arguments: eventSamples)
    func truncatedOrOverlongParametersAreRefused(_ sample: EventSample) {
        let parameters = Array(sample.packet.dropFirst(sample.headerLength))
        for count in 0..<parameters.count {
            #expect(throws: PacketDecodingError.self) { try sample.isDecoded(Array(parameters.prefix(count))) }
        }
        #expect(throws: PacketDecodingError.self) { try sample.isDecoded(parameters + [0]) }
    }

    @Test(arguments: eventSamples)
    func eventIsRecognizedByItsCode(_ sample: EventSample) throws {
        let event = try Event(decoding: sample.packet.span.bytes)
        if case .unknown = event { Issue.record("not recognised") }
    }

    @Test(arguments: packets)
    func decodedEventIsEncodedToTheSamePacket(_ packet: [UInt8]) throws {
        #expect(try walk(packet).hexadecimal == packet.hexadecimal)
    }

    @Test(arguments: packets)
    func truncatedOrOverlongPacketIsRefused(_ packet: [UInt8]) {
        for count in 0..<packet.count {
            #expect(throws: PacketDecodingError.self) { try walk(Array(packet.prefix(count))) }
        }
        #expect(throws: PacketDecodingError.trailingBytes(count: 1)) { try walk(packet + [0]) }
    }

    @Test(arguments: packets)
    func eventWithAFlippedBitIsRefusedOrKeepsItsLength(_ packet: [UInt8]) {
        for flipped in bitFlips(of: packet) where !isFailedGroup(flipped) {
            guard let reencoded = try? walk(flipped) else { continue }
            #expect(reencoded.count == flipped.count)
        }
    }

    /// Whether a packet is an event of a BIG that failed, of which only the status and the handle are decoded.
    private func isFailedGroup(_ packet: [UInt8]) -> Bool {
        packet.count > 3 && packet[0] == Event.leMetaCode && [0x1B, 0x1D].contains(packet[2]) && packet[3] != 0
    }

    @Test(arguments: listSamples.prefix(7))
    func shortenedListIsRefusedEvenIfThePacketsLengthFits(_ sample: String) {
        let packet = bytes(sample)
        for count in 2..<packet.count {
            var shortened = Array(packet.prefix(count))
            shortened[1] = UInt8(count - 2)
            #expect(throws: PacketDecodingError.self) { try walk(shortened) }
        }
    }

    /// Events of groups that failed, with a count that does not match the handles after it.
    static let failedGroups: [(String, HCIErrorCode)] = [
        ("3e131d3d01" + "00000000000000" + "00000000" + "00" + "60006100", .connectionTerminatedDueToMICFailure),
        ("3e0f1d3e01" + "00000000000000" + "00000000" + "02", .connectionFailedToBeEstablished),
        (
            "3e131b0d01" + "00000000000000" + "00000000" + "00000000" + "02",
            .connectionRejectedDueToLimitedResources
        ),
    ]

    @Test(arguments: failedGroups)
    func failedGroupHasAStatusAndAHandleOnly(_ digits: String, _ status: HCIErrorCode) throws {
        let packet = bytes(digits)
        let event = try Event(decoding: packet.span.bytes)
        switch event {
        case .leBIGSyncEstablished(let event):
            #expect(event.status == status)
            #expect(event.bigHandle == 1)
            #expect(event.connectionHandles == [])
        case .leCreateBIGComplete(let event):
            #expect(event.status == status)
            #expect(event.bigHandle == 1)
            #expect(event.connectionHandles == [])
        default: Issue.record("not recognised")
        }
        var successful = packet
        successful[3] = 0x00
        #expect(throws: PacketDecodingError.self) { try walk(successful) }
    }

    @Test func eventWithAnUnknownCodeKeepsItsParameters() throws {
        let packet = bytes("ff03010203")
        guard case .unknown(let code, let subeventCode, let parameters) = try Event(decoding: packet.span.bytes) else {
            Issue.record("recognised")
            return
        }
        #expect(code == 0xFF)
        #expect(subeventCode == nil)
        #expect([UInt8](copying: parameters) == [1, 2, 3])
    }

    @Test func eventWithAnUnknownSubeventCodeKeepsItsParameters() throws {
        let packet = bytes("3e037f0102")
        guard case .unknown(let code, let subeventCode, let parameters) = try Event(decoding: packet.span.bytes) else {
            Issue.record("recognised")
            return
        }
        #expect(code == 0x3E)
        #expect(subeventCode == 0x7F)
        #expect([UInt8](copying: parameters) == [1, 2])
    }

    @Test func leMetaEventWithoutASubeventCodeIsRefused() {
        #expect(throws: PacketDecodingError.truncated(needed: 1, available: 0)) { try walk(bytes("3e00")) }
    }

    @Test func completedPacketsAreGivenForEachConnection() throws {
        let packet = bytes("1309024000030041000201")
        guard case .numberOfCompletedPackets(let event) = try Event(decoding: packet.span.bytes) else {
            Issue.record("not recognised")
            return
        }
        var completions = event.completions
        #expect(event.numHandles == 2)
        #expect(completions.next() == .init(connectionHandle: 0x0040, numCompletedPackets: 3))
        #expect(completions.next() == .init(connectionHandle: 0x0041, numCompletedPackets: 0x0102))
        #expect(completions.next() == nil)
    }

    @Test func completedPacketsOfOneConnectionAreWritten() {
        let packet = PacketBuffer.bytes {
            NumberOfCompletedPackets.encodePacket(.init(connectionHandle: 0x0041, numCompletedPackets: 2), into: &$0)
        }
        #expect(packet.hexadecimal == "13050141000200")
    }

    @Test func publicKeyGivesBothCoordinatesAndWrittenKeysHave32Bytes() throws {
        let packet = bytes("3e420800" + String(repeating: "a5", count: 32) + String(repeating: "5a", count: 32))
        let event = try Event(decoding: packet.span.bytes)
        guard case .leReadLocalP256PublicKeyComplete(let complete) = event else {
            Issue.record("not recognised")
            return
        }
        #expect([UInt8](copying: complete.keyXCoordinate) == [UInt8](repeating: 0xA5, count: 32))
        #expect([UInt8](copying: complete.keyYCoordinate) == [UInt8](repeating: 0x5A, count: 32))
        let long = [UInt8](repeating: 0xFF, count: 40)
        let written = PacketBuffer.bytes {
            LEGenerateDHKeyComplete(dhKey: long.span.bytes).encodePacket(into: &$0)
            LEGenerateDHKeyComplete(dhKey: long.span.bytes.extracting(first: 1)).encodePacket(into: &$0)
        }
        #expect(written.count == 2 * 36)
        #expect(Array(written.suffix(32)) == [0xFF] + [UInt8](repeating: 0, count: 31))
    }
}
