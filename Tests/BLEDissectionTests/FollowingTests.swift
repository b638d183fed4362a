import BLEByteCoding
import BLECapture
import BLEDissection
import BluetoothTypes
import Testing

@Suite("Relations between packets")
struct FollowingTests {
    private static let connected = Sample(
        .event,
        .controllerToHost,
        "3E13 01 00 4000 00 01 0504030201F0 1800 0000 F401 00",
        ""
    )

    private static func att(_ direction: CaptureDirection, _ digits: String) -> Sample {
        let pdu = [UInt8](hexadecimal: digits.filter { $0 != " " }) ?? []
        let length = UInt8(pdu.count)
        return Sample(
            .acl,
            direction,
            "4020" + [length + 4, 0, length, 0, 4, 0].hexadecimal + pdu.hexadecimal,
            digits
        )
    }

    @Test("A link is named from its connection to its disconnection")
    func linkIsNamedFromItsConnectionToItsDisconnection() throws {
        let packets = descriptions(of: [
            Self.connected, Self.att(.hostToController, "0A0300"),
            Sample(.event, .controllerToHost, "0504004000 13", ""), Self.att(.hostToController, "0A0300"),
        ])
        #expect(packets[0].link?.peer?.address == 0xF001_0203_0405)
        #expect(packets[0].link?.isCentral == true)
        #expect(packets[1].link?.peer?.address == 0xF001_0203_0405)
        #expect(packets[2].link?.number == packets[1].link?.number)
        #expect(packets[3].link?.peer == nil)
        #expect(packets[3].link?.number != packets[1].link?.number)
    }

    @Test("A command's answer names its command and the time that it took")
    func answerNamesItsCommandAndTheTimeItTook() {
        let packets = descriptions(of: [
            Sample(.command, .hostToController, "030C00", ""), Sample(.command, .hostToController, "011000", ""),
            Sample(.event, .controllerToHost, "0E0401030C00", ""),
            Sample(.event, .controllerToHost, "0F0400010110", ""),
        ])
        #expect(packets[2].answered?.index == 1)
        #expect(packets[2].answered?.microseconds == 2000)
        #expect(packets[3].answered?.index == 2)
    }

    @Test("The answers to commands with the same opcode belong to them in the order in which they were sent")
    func answersToCommandsWithTheSameOpcodeKeepTheirOrder() {
        let command = Sample(.command, .hostToController, "0514 02 4000", "")
        let answer = Sample(.event, .controllerToHost, "0E07 01 0514 00 4000 D0", "")
        let packets = descriptions(of: [command, command, answer, answer, answer])
        #expect(packets.map { $0.answered?.index } == [nil, nil, 1, 2, nil])
        // The oldest commands of a host that gets no answers are not kept.
        let last = descriptions(of: Array(repeating: command, count: 100) + [answer]).last
        #expect(last?.answered?.index == 37)
        // Commands without an answer do not replace one that waits for its answer.
        let completed = Sample(.command, .hostToController, "350C 05 01 4000 0100", "")
        let late = descriptions(of: [command] + Array(repeating: completed, count: 100) + [answer]).last
        #expect(late?.answered?.index == 1)
    }

    @Test("A command whose answer is not in the capture does not get the answer to a later command")
    func answerThatIsNotInTheCaptureLeavesTheNextAnswer() {
        let command = Sample(.command, .hostToController, "0514 02 4000", "")
        let answer = Sample(.event, .controllerToHost, "0E07 01 0514 00 4000 D0", "")
        let reset = Sample(.command, .hostToController, "030C00", "")
        let answerToReset = Sample(.event, .controllerToHost, "0E0401030C00", "")
        let packets = descriptions(of: [command, reset, answerToReset, command, answer, answer])
        #expect(packets.map { $0.answered?.index } == [nil, nil, 2, nil, 4, nil])
        // A controller may answer a command before an older one.
        let swapped = descriptions(of: [command, reset, answerToReset, answer])
        #expect(swapped.last?.answered?.index == 1)
    }

    @Test("A section of a pcapng file has links, commands and requests of its own")
    func sectionHasLinksCommandsAndRequestsOfItsOwn() {
        func section(_ samples: [Sample]) -> [UInt8] {
            var writer = CaptureWriter(.pcapng)
            var file = PacketBuffer(headroom: 0)
            writer.encodeHeader(into: &file)
            for sample in samples {
                let packet = [sample.kind.rawValue] + sample.bytes
                let time = CaptureTime(seconds: 1, nanoseconds: 0)
                writer.encode(h4Packet: packet.rawSpan, sample.direction, time: time, into: &file)
            }
            return [UInt8](copying: file.bytes)
        }
        let first = section([
            Self.connected, Self.att(.hostToController, "0A 0300"),
            Sample(.command, .hostToController, "0514 02 4000", ""),
        ])
        let second = section([
            Self.att(.controllerToHost, "0B 4869"), Sample(.event, .controllerToHost, "0E07 01 0514 00 4000 D0", ""),
        ])
        let dissector = Dissector(summarizing: true)
        let packets = descriptions(inFile: first + second, by: dissector)
        #expect(packets.map(\.index) == [1, 2, 3, 4, 5])
        #expect(packets.map { $0.answered?.index } == [nil, nil, nil, nil, nil])
        #expect(packets[1].link?.number == packets[0].link?.number)
        #expect(packets[3].link?.peer == nil)
        #expect(packets[3].link?.number != packets[0].link?.number)
        let ends = dissector.summary?.links.sorted { $0.key < $1.key }.map { $0.value.end != nil }
        #expect(ends == [true, false])
    }

    @Test("A packet that the recorder has cut is dissected up to the cut, and answered")
    func cutPacketIsDissectedUpToTheCut() {
        let request = Self.att(.hostToController, "12 0300 010203040506").cut(by: 4)
        #expect(
            line(of: [request]) == "ACL 0x0040 ATT Write Request: 0x0003, 0102, missing 4 bytes "
                + "[malformed acl: cut by the recorder by 4 bytes]"
        )
        let packets = descriptions(of: [request, Self.att(.controllerToHost, "13")])
        #expect(packets[1].answered?.index == 1)
        #expect(packets[1].malformed.isEmpty)
        // Errors that result from the cut are not reported.
        let short = descriptions(of: [Self.att(.hostToController, "0A 0300").cut(by: 1)])
        #expect(short.last?.malformed.map(\.reason) == ["cut by the recorder by 1 bytes"])
    }

    @Test(
        "The fragments after a cut fragment continue its frame",
        arguments: [(2, 10), (5, 13), (6, nil), (8, nil)] as [(Int, Int?)]
    )
    func fragmentsAfterACutFragmentContinueItsFrame(cutLength: Int, missing: Int?) {
        let first = Sample(.acl, .controllerToHost, "4020 0900 0D00 0400 1B 2A00 0102", "").cut(by: cutLength)
        let second = Sample(.acl, .controllerToHost, "4010 0800 0304050607080910", "")
        let next = Self.att(.controllerToHost, "1B 2A00 05")
        let packets = descriptions(of: [first, second, next])
        #expect(packets.map(\.malformed.count) == [1, 0, 0])
        // Without the channel, the frame is a fragment. Without an opcode, it has no ATT PDU.
        let innermost: Layer.Kind = missing == nil ? .acl : missing == 13 ? .l2cap : .att
        #expect(packets.map { $0.layers.last?.kind } == [.acl, innermost, .att])
        #expect(line(of: [first, second])?.hasSuffix("missing \(missing ?? 0) bytes") == (missing != nil))
    }

    @Test("Without directions in the capture, the packet boundary flags separate the frames of both sides")
    func packetBoundaryFlagsGiveTheDirection() throws {
        let packets = try [
            "02 4020 0500 0700 0400 1B", "02 4000 0700 0300 0400 0A0300", "02 4010 0600 2A00 01020304",
            "02 4020 0700 0300 0400 0B 4869", "02 4000 0500 0700 0400 12", "02 4010 0600 0300 01020304",
            "02 4010 0100 01",
        ].map { digits in try #require([UInt8](hexadecimal: digits.filter { $0 != " " })) }
        // Little-endian pcap of H4 packets.
        let header = "d4c3b2a1 0200 0400 00000000 00000000 00000400 bb000000"
        var file = try #require([UInt8](hexadecimal: header.filter { $0 != " " }))
        for packet in packets {
            let length = [UInt8(packet.count), 0, 0, 0]
            file += [0, 0, 0, 0x65, 0, 0, 0, 0] + length + length + packet
        }
        let found = descriptions(inFile: file)
        #expect(
            found.map(\.direction) == [
                .controllerToHost, .hostToController, .controllerToHost, .controllerToHost, .hostToController,
                .hostToController, nil,
            ]
        )
        #expect(found.map(\.malformed.count) == [0, 0, 0, 0, 0, 0, 1])
        #expect(found.map { $0.answered?.index } == [nil, nil, nil, 2, nil, nil, nil])
        #expect(found.map { $0.layers.last?.kind } == [.acl, .att, .att, .att, .acl, .att, .acl])
    }

    @Test("An event with excess bytes still answers its command and ends its link")
    func excessBytesKeepWhatTheEventSays() throws {
        let packets = descriptions(of: [
            Self.connected, Sample(.command, .hostToController, "0604034000 13", ""),
            Sample(.event, .controllerToHost, "0F05 00 01 0604 00", ""),
            Sample(.event, .controllerToHost, "0505 00 4000 16 FF", ""), Self.att(.controllerToHost, "0A0300"),
        ])
        #expect(packets[2].answered?.index == 2)
        var text = TextBuffer()
        packets[2].appendJSON(to: &text)
        let json = String(decoding: text.bytes, as: UTF8.self)
        #expect(json.contains(#""commandOpcodeName":"Disconnect","excess":"00""#))
        #expect(packets[2].malformed.map(\.reason) == ["1 bytes after the end of the packet"])
        #expect(packets[3].link?.number == packets[0].link?.number)
        #expect(packets[4].link?.number != packets[0].link?.number, "the link has ended")
    }

    @Test("Values have the types that the capture showed during discovery")
    func valuesHaveTheTypesSeenDuringDiscovery() {
        let discovery = [
            Self.connected,
            Self.att(.hostToController, "10 0100 FFFF 0028"), Self.att(.controllerToHost, "11 06 0100 0900 0D18"),
            Self.att(.hostToController, "08 0100 0900 0328"),
            Self.att(.controllerToHost, "09 07 0200 10 0300 372A"),
            Self.att(.hostToController, "04 0400 0400"), Self.att(.controllerToHost, "05 01 0400 0229"),
        ]
        #expect(
            line(of: discovery + [Self.att(.hostToController, "12 0400 0100")])
                == "ACL 0x0040 F0:01:02:03:04:05 ATT Write Request: 0x0004, Client Characteristic Configuration, "
                + "Heart Rate Measurement, notification"
        )
        #expect(
            line(of: discovery + [Self.att(.controllerToHost, "1B 0300 0648")])
                == "ACL 0x0040 F0:01:02:03:04:05 ATT Handle Value Notification: 0x0003, Heart Rate Measurement, 0648"
        )
        // The same handle on the captured host's own server is another attribute.
        #expect(
            line(of: discovery + [Self.att(.controllerToHost, "0A 0300")])
                == "ACL 0x0040 F0:01:02:03:04:05 ATT Read Request: 0x0003"
        )
    }

    @Test("The service of an attribute, and the service that its value declares or includes, have their own names")
    func declaredAndIncludedServicesHaveTheirOwnNames() throws {
        let packets = descriptions(of: [
            Self.connected,
            Self.att(.hostToController, "10 0100 FFFF 0028"), Self.att(.controllerToHost, "11 06 0100 0900 0D18"),
            Self.att(.hostToController, "0A 0100"), Self.att(.controllerToHost, "0B 0D18"),
            Self.att(.hostToController, "08 0100 0900 0228"),
            Self.att(.controllerToHost, "09 08 0200 1000 1200 0F18"),
        ])
        let texts: [String] = packets.map { packet in
            var text = TextBuffer()
            packet.appendJSON(to: &text)
            #expect(repeatedMembers(ofJSON: text.bytes).isEmpty)
            return String(decoding: text.bytes, as: UTF8.self)
        }
        try #require(texts.count == 7)
        #expect(texts[2].contains(#""declaredService":"180D""#))
        #expect(texts[4].contains(#""service":"180D""#) && texts[4].contains(#""declaredService":"180D""#))
        #expect(texts[6].contains(#""service":"180D""#) && texts[6].contains(#""includedService":"180F""#))
    }

    @Test("A response is decoded as the answer to its request")
    func responseIsDecodedAsTheAnswerToItsRequest() {
        #expect(
            line(of: [Self.att(.hostToController, "0A 0300"), Self.att(.controllerToHost, "0B 4869")])
                == "ACL 0x0040 ATT Read Response: 0x0003, 4869 \"Hi\" [#1, 1 ms]"
        )
        // A response of another type does not belong to the request.
        #expect(
            line(of: [Self.att(.hostToController, "0A 0300"), Self.att(.controllerToHost, "0D 4869")])
                == "ACL 0x0040 ATT Read Blob Response: 4869 \"Hi\""
        )
    }

    @Test("Credit-based channels are tracked: K-frames are assigned to their SDU")
    func framesOfChannelsAreAssignedToTheirSDU() throws {
        func frame(_ direction: CaptureDirection, _ digits: String) -> Sample {
            let frame = [UInt8](hexadecimal: digits.filter { $0 != " " }) ?? []
            return Sample(.acl, direction, "4020" + [UInt8(frame.count), 0].hexadecimal + frame.hexadecimal, "")
        }
        let opening = [
            frame(.hostToController, "0E00 0500 14 01 0A00 8000 4000 0002 1700 0A00"),
            frame(.controllerToHost, "0E00 0500 15 01 0A00 4100 0002 1700 0A00 0000"),
        ]
        // The destination CID of the host's packets is the peer's end.
        #expect(
            line(of: opening + [frame(.hostToController, "0500 4100 0600 010203")])
                == "ACL 0x0040 L2CAP K-frame CID 0x0041, 5 bytes: SDU length 6 bytes"
        )
        let whole =
            opening + [
                frame(.hostToController, "0500 4100 0600 010203"), frame(.hostToController, "0300 4100 040506"),
            ]
        let layer = try #require(descriptions(of: whole).last?.layers.last)
        #expect(
            layer.fields.contains { field in
                if case .truth(true) = field.value { field.name.key == "sduComplete" } else { false }
            }
        )
        #expect(
            line(of: opening + [frame(.hostToController, "0500 4100 0200 010203")])?.contains("malformed l2cap") == true
        )
        // A K-frame that the recorder has cut counts in full.
        let cut =
            opening + [
                frame(.hostToController, "0500 4100 0600 010203").cut(by: 2),
                frame(.hostToController, "0300 4100 040506"), frame(.hostToController, "0500 4100 0300 010203"),
            ]
        #expect(line(of: cut) == "ACL 0x0040 L2CAP K-frame CID 0x0041, 5 bytes: SDU length 3 bytes")
    }

    @Test(
        "Filters select the packets that they describe",
        arguments: [
            ("layer=att", [2]), ("layer=event", [1, 3, 5]), ("link=0x40", [1, 2, 3]), ("handle=3", [2]),
            ("address=F0:01:02:03:04:05", [1, 2, 3]), ("address=F0:01:02:03:04:06", []), ("opcode=0x0A", [2]),
            ("opcode=0x0C03", [4, 5]), ("malformed", [6]), ("layer=command", [4, 6]),
            ("adapter=hci0", [1, 2, 3, 4, 5, 6]), ("adapter=1", []),
        ]
    )
    func filterSelectsThePacketsThatItDescribes(text: String, expected: [Int]) throws {
        let filter = try #require(PacketFilter(parsing: text))
        let packets = descriptions(of: [
            Self.connected, Self.att(.hostToController, "0A0300"),
            Sample(.event, .controllerToHost, "0504004000 13", ""), Sample(.command, .hostToController, "030C00", ""),
            Sample(.event, .controllerToHost, "0E0401030C00", ""), Sample(.command, .hostToController, "030C01", ""),
        ])
        #expect(packets.filter { filter.accepts($0) }.map(\.index) == expected)
    }

    @Test(
        "The filter of a connection handle selects the data and the events of a stream",
        arguments: [("link=0x60", [1, 2, 3, 5]), ("link=0x40", [1, 5]), ("link=0x61", [4])]
    )
    func linkFilterSelectsDataAndEventsOfAStream(text: String, expected: [Int]) throws {
        let filter = try #require(PacketFilter(parsing: text))
        let packets = descriptions(of: [
            Sample(.event, .controllerToHost, "3E07 1A 4000 6000 01 02", ""),
            Sample(.command, .hostToController, "6620 02 6000", ""),
            Sample(.iso, .hostToController, "6000 0200 AABB", ""),
            Sample(.synchronous, .hostToController, "6100 03 112233", ""),
            Sample(.command, .hostToController, "6420 05 01 6000 4000", ""),
        ])
        #expect(packets.filter { filter.accepts($0) }.map(\.index) == expected)
    }

    @Test(
        "Invalid filters are refused",
        arguments: ["", "att", "layer=tcp", "link=0x1000", "opcode=x", "address=1", "handle=0x10000", "adapter=usb"]
    )
    func invalidFilterIsRefused(text: String) {
        #expect(PacketFilter(parsing: text) == nil)
    }
}
