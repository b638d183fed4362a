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
        "Invalid filters are refused",
        arguments: ["", "att", "layer=tcp", "link=0x1000", "opcode=x", "address=1", "handle=0x10000", "adapter=usb"]
    )
    func invalidFilterIsRefused(text: String) {
        #expect(PacketFilter(parsing: text) == nil)
    }
}
