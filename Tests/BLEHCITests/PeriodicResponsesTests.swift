import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

/// The commands of periodic advertising with responses, each with its packet.
let periodicResponsesCommandSamples: [CommandSample] = [
    CommandSample(
        LESetPeriodicAdvertisingSubeventData(
            advertisingHandle: 3,
            subevents: [
                .init(subevent: 4, responseSlotStart: 1, responseSlotCount: 7, data: .init([0x02, 0x01, 0x06])),
                .init(subevent: 5, responseSlotCount: 8, data: .init()),
            ]
        ),
        "82200d03020401070302010605000800"
    ),
    CommandSample(
        LESetPeriodicAdvertisingResponseData(
            syncHandle: 0x0123,
            requestEvent: 0x4567,
            requestSubevent: 4,
            responseSubevent: 5,
            responseSlot: 6,
            responseData: .init([0x02, 0x01, 0x06])
        ),
        "83200b2301674504050603020106"
    ),
    CommandSample(
        LESetPeriodicSyncSubevent(
            syncHandle: 0x0123,
            periodicAdvertisingProperties: .includeTXPower,
            subevents: [4, 5, 0x7F]
        ),
        "842008230140000304057f"
    ),
    CommandSample(
        LEExtendedCreateConnectionV2(
            advertisingHandle: 3,
            subevent: 4,
            connection: LEExtendedCreateConnection(
                ownAddressType: .random,
                peerAddress: DeviceAddress(0xF012_3456_789A, isRandom: true),
                le1M: .init(
                    scanInterval: 0x0101,
                    scanWindow: 0x0102,
                    connectionIntervalMin: 0x0103,
                    connectionIntervalMax: 0x0104,
                    maxLatency: 0x0105,
                    supervisionTimeout: 0x0106,
                    minCELength: 0x0107,
                    maxCELength: 0x0108
                )
            )
        ),
        "85201c03040001019a78563412f00101010201030104010501060107010801"
    ),
    CommandSample(
        LESetPeriodicAdvertisingParametersV2(
            advertisingHandle: 3,
            periodicAdvertisingIntervalMin: 0x0050,
            periodicAdvertisingIntervalMax: 0x0060,
            periodicAdvertisingProperties: .includeTXPower,
            numSubevents: 5,
            subeventInterval: 16,
            responseSlotDelay: 4,
            responseSlotSpacing: 8,
            numResponseSlots: 12
        ),
        "86200c0350006000400005100408" + "0c"
    ),
]

@Suite("Packets of periodic advertising with responses")
struct PeriodicResponsesTests {
    @Test func reportOfVersionTwoGivesTheEventAndTheSubevent() throws {
        let packet = bytes("3e0e252301f9b0ff6745040003020106")
        guard case .lePeriodicAdvertisingReportV2(let report) = try Event(decoding: packet.span.bytes) else {
            Issue.record("not recognised")
            return
        }
        #expect(report.syncHandle == 0x0123)
        #expect(report.txPower == -7)
        #expect(report.rssi == -80)
        #expect(report.cteType == 0xFF)
        #expect(report.periodicEventCounter == 0x4567)
        #expect(report.subevent == 4)
        #expect(report.dataStatus == .complete)
        #expect([UInt8](copying: report.data) == [0x02, 0x01, 0x06])
        let data: [UInt8] = [0x02, 0x01, 0x06]
        let written = PacketBuffer.bytes { buffer in
            LEPeriodicAdvertisingReportV2(
                syncHandle: 0x0123,
                txPower: -7,
                rssi: -80,
                periodicEventCounter: 0x4567,
                subevent: 4,
                dataStatus: .complete,
                data: data.span.bytes
            ).encodePacket(into: &buffer)
        }
        #expect(written == packet)
    }

    @Test func responseReportGivesEachSlotWithItsOwnFields() throws {
        let packet = bytes("3e1328030400020cc4ff0200020a0b" + "7f7fff03ff00")
        guard case .lePeriodicAdvertisingResponseReport(let event) = try Event(decoding: packet.span.bytes) else {
            Issue.record("not recognised")
            return
        }
        #expect(event.advertisingHandle == 3)
        #expect(event.subevent == 4)
        #expect(event.txStatus == 0)
        #expect(event.numResponses == 2)
        var responses = event.responses
        guard let first = try responses.next() else {
            Issue.record("no first response")
            return
        }
        #expect(first.txPower == 12)
        #expect(first.rssi == -60)
        #expect(first.cteType == 0xFF)
        #expect(first.responseSlot == 2)
        #expect(first.dataStatus == .complete)
        #expect([UInt8](copying: first.data) == [0x0A, 0x0B])
        #expect(first.byteCount == 8)
        guard let second = try responses.next() else {
            Issue.record("no second response")
            return
        }
        #expect(second.responseSlot == 3)
        #expect(second.dataStatus == .failedToReceive)
        #expect([UInt8](copying: second.data) == [])
        let end = try responses.next() == nil
        #expect(end)
        let encoded = Array(packet.dropFirst(7))
        let written = PacketBuffer.bytes { buffer in
            LEPeriodicAdvertisingResponseReport(
                advertisingHandle: 3,
                subevent: 4,
                numResponses: 2,
                responses: encoded.span.bytes
            ).encodePacket(into: &buffer)
        }
        #expect(written == packet)
    }

    @Test func responseReportThatEndsInItsSecondResponseGivesTheFirstThenAnError() throws {
        let packet = bytes("3e1028030400020cc4ff0200020a0b" + "7f7fff")
        guard case .lePeriodicAdvertisingResponseReport(let event) = try Event(decoding: packet.span.bytes) else {
            Issue.record("not recognised")
            return
        }
        var responses = event.responses
        guard let first = try responses.next() else {
            Issue.record("no first response")
            return
        }
        #expect(first.responseSlot == 2)
        do throws(PacketDecodingError) {
            _ = try responses.next()
            Issue.record("a cut response was decoded")
        } catch {
            #expect(error == .truncated(needed: 1, available: 0))
        }
        let end = try responses.next() == nil
        #expect(end)
    }

    /// A length of more than 255 bytes would be cut to its low byte.
    @Test func longestDataFillsItsCommand() throws {
        let bytes = [UInt8](repeating: 0xA5, count: 300)
        let subevents = LESetPeriodicAdvertisingSubeventData(
            advertisingHandle: 3,
            subevents: [.init(subevent: 1, responseSlotCount: 2, data: .init(bytes))]
        )
        #expect(subevents.subevents.map(\.data.bytes.count) == [249])
        let response = LESetPeriodicAdvertisingResponseData(
            syncHandle: 0x0123,
            requestEvent: 1,
            requestSubevent: 2,
            responseSubevent: 2,
            responseSlot: 3,
            responseData: .init(bytes)
        )
        #expect(response.responseData.bytes.count == 247)
        let packets = [
            PacketBuffer.bytes { subevents.encodePacket(into: &$0) },
            PacketBuffer.bytes { response.encodePacket(into: &$0) },
        ]
        for packet in packets { #expect(packet.count == 258 && packet[2] == 255) }
        #expect(try LESetPeriodicAdvertisingSubeventData(decoding: Array(packets[0][3...]).span.bytes) == subevents)
        #expect(try LESetPeriodicAdvertisingResponseData(decoding: Array(packets[1][3...]).span.bytes) == response)
    }

    @Test func dataOfAResponseThatDoesNotFitItsEventIsCut() {
        let bytes = [UInt8](repeating: 0xA5, count: 250)
        let response = LEPeriodicAdvertisingResponseReport.Response(responseSlot: 1, data: bytes.span.bytes)
        let encoded = PacketBuffer.bytes { response.encode(into: &$0) }
        #expect(encoded.count == 250 && encoded[5] == 244)
        let count = response.byteCount
        #expect(count == 250)
    }

    @Test func subeventsThatDoNotFitOneCommandAreDropped() {
        let short = LESetPeriodicAdvertisingSubeventData.Subevent(subevent: 1, responseSlotCount: 0, data: .init())
        let many = Array(repeating: short, count: 20)
        #expect(LESetPeriodicAdvertisingSubeventData(advertisingHandle: 0, subevents: many).subevents.count == 15)
        let two = LESetPeriodicAdvertisingSubeventData.Subevent(
            subevent: 1,
            responseSlotCount: 0,
            data: PeriodicAdvertisingSubeventPayload([UInt8](repeating: 0, count: 123))
        )
        #expect(LESetPeriodicAdvertisingSubeventData.count(fitting: [two, two, short]) == 1)
    }

    @Test func tooManySubeventsAreRefused() {
        let data = bytes("0310" + String(repeating: "00000000", count: 16))
        #expect(throws: PacketDecodingError.invalidValue(16, field: "Num_Subevents")) {
            try LESetPeriodicAdvertisingSubeventData(decoding: data.span.bytes)
        }
        let choice = bytes("2301000081" + String(repeating: "00", count: 129))
        #expect(throws: PacketDecodingError.invalidValue(129, field: "Num_Subevents")) {
            try LESetPeriodicSyncSubevent(decoding: choice.span.bytes)
        }
    }
}
