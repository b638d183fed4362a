import BLE
import BLEProfiles
import Testing

@testable import BLETool
@testable import BluetoothHost

@Suite("Periodic advertising with responses in ble")
struct SubeventLineTests {
    private static func response(
        _ outcome: PeriodicResponse.Outcome,
        _ data: [UInt8] = [],
        rssi: Int? = nil
    ) -> SubeventLine {
        .event(
            .response(
                PeriodicResponse(
                    subevent: 3,
                    slot: 2,
                    outcome: outcome,
                    data: AdvertisingData(decoding: data),
                    rssi: rssi,
                    txPower: nil,
                    time: Instant(nanoseconds: 0)
                )
            )
        )
    }

    @Test("Text shows responses, and JSON also the slots without one")
    func textShowsResponses() {
        let received = Self.response(.received, [2, 1, 6], rssi: -40)
        #expect(received.text == "subevent 3, slot 2: -40 dBm  020106")
        #expect(
            "\(received.json)"
                == #"{"event":"response","subevent":3,"slot":2,"outcome":"received","rssi":-40,"txPower":null,"#
                + #""data":"020106"}"#
        )
        #expect(Self.response(.truncated, [2]).text == "subevent 3, slot 2: ? dBm  02  (truncated)")
        #expect(Self.response(.failed).text == nil)
        #expect("\(Self.response(.failed).json)".contains(#""outcome":"failed""#))
        #expect(SubeventLine.event(.dataRequested([1])).text == nil)
        #expect(SubeventLine.event(.notSent(subevent: 4)).text == "subevent 4: the packet was not sent")
        #expect("\(SubeventLine.event(.dataRequested([1, 2])).json)" == #"{"event":"dataRequested","subevents":[1,2]}"#)
    }

    @Test("A response is a slot and its data, possibly none")
    func responseIsASlotAndItsData() throws {
        let response = try SlotResponse(argument: "254:0x0201")
        #expect(response.slot == 254 && response.data == [2, 1])
        #expect(try SlotResponse(argument: "0:").data.isEmpty)
    }

    @Test("Other texts are no response", arguments: ["", "3", "255:00", "-1:00", "x:00", "1:0", "1:zz"])
    func otherTextsAreNoResponse(text: String) {
        #expect(throws: ArgumentProblem.self) { try SlotResponse(argument: text) }
    }

    @Test(
        "Options out of their ranges are refused",
        arguments: [
            (["--subevents", "0"], "--subevents is 1 to 128"),
            (["--subevents", "129"], "--subevents is 1 to 128"),
            (["--response-slots", "256"], "--response-slots is 0 to 255"),
            (["--slot-delay", "1"], "--slot-delay is 1.25 to 317.5 ms"),
            (["--slot-spacing", "32"], "--slot-spacing is 0.25 to 31.875 ms"),
            (["--count", "0"], "--count is 1 or more"),
            (["--interval", "7"], "--interval is 8 ms or more"),
            (
                ["--subevent-data", "00", "--subevent-data", "01"],
                "--subevent-data is given 2 times for 1 subevent(s)"
            ),
            (
                ["--subevent-data", String(repeating: "00", count: 250)],
                "--subevent-data has at most 249 bytes, not 250"
            ),
        ] as [([String], String)]
    )
    func optionsOutOfRangeAreRefused(options: [String], problem: String) {
        #expect(Advertise.problem(with: options) == problem)
    }

    @Test(
        "A response needs a subevent, and fits one command",
        arguments: [
            (["--respond", "1:00"], "--respond needs --subevent"),
            (["--subevent", "128"], "--subevent is 0 to 127"),
            (
                ["--subevent", "1", "--respond", "1:" + String(repeating: "00", count: 248)],
                "a response has at most 247 bytes, not 248"
            ),
        ] as [([String], String)]
    )
    func impossibleResponsesAreRefused(options: [String], problem: String) {
        #expect(Sync.problem(with: ["label"] + options) == problem)
    }

    @Test("A device in a subevent is named by the number and the address")
    func deviceInASubeventIsParsed() throws {
        let device = try SubeventDevice(argument: "127:F0:12:34:56:78:9A")
        #expect(device.subevent == 127 && device.address == DeviceAddress(0xF012_3456_789A, isRandom: true))
        #expect(try SubeventDevice(argument: "0:00:11:22:33:44:55").address.isRandom == false)
        for text in ["128:F0:12:34:56:78:9A", "F0:12:34:56:78:9A", "1:label", "1", ""] {
            #expect(throws: ArgumentProblem.self) { try SubeventDevice(argument: text) }
        }
    }
}
