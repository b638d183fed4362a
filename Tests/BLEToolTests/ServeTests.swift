import BLEProfiles
import BluetoothTypes
import Testing

@testable import BLETool

@Suite("ble serve")
struct ServeTests {
    @Test(
        arguments: [
            ("set 2A19 64", .set(.uuid("2A19", service: nil), [0x64])),
            ("  notify\t180F/2A19   0001 \r", .notify(.uuid("2A19", service: "180F"), [0x00, 0x01])),
            ("indicate #0x10 -", .indicate(.handle(16), [])),
            ("train 0416091aFF", .train([0x04, 0x16, 0x09, 0x1A, 0xFF])),
            ("train -", .train([])),
            ("transfer", .transfer(0)),
            ("transfer 65535", .transfer(65_535)),
            ("disconnect", .disconnect),
            ("window 2min", .window(Seconds(.seconds(120)))),
            ("window close", .window(nil)),
            ("yes 2", .answer(.init(question: 2, answer: .accept))),
            ("passkey 1 012345", .answer(.init(question: 1, answer: .passkey(12_345)))),
            ("quit", .quit),
            ("", nil),
            ("   ", nil),
        ] as [(String, ServeCommand?)]
    )
    func serveCommandsAreParsed(line: String, command: ServeCommand?) throws {
        #expect(try ServeCommand(parsing: line) == command)
    }

    @Test(
        arguments: [
            (
                "stop",
                "\"stop\" is not a command; known are set, notify, indicate, train, transfer, disconnect, window, "
                    + "passkey, yes, no, quit"
            ),
            ("train", "train takes AD structures, as in: train 0416091AFF"),
            ("transfer 65536", "transfer takes a number from 0 to 65535, or nothing"),
            ("transfer 1 2", "transfer takes a number from 0 to 65535, or nothing"),
            ("window", "window takes a time, or close, as in: window 60"),
            ("window 1 2", "window takes a time, or close, as in: window 60"),
            ("window soon", "\"soon\" is not a time: use seconds, as in 10 or 2.5, or 500ms, 2min"),
            ("set 2A19", "set takes a characteristic and a value, as in: set 2A19 64"),
            ("notify 2A19 00 01", "notify takes a characteristic and a value, as in: notify 2A19 64"),
            ("quit now", "quit takes nothing after it"),
            ("yes indeed", "yes takes the number of its question, as in: yes 1"),
            ("no", "no takes the number of its question, as in: no 1"),
            ("passkey", "passkey takes the number of its question and six digits, as in: passkey 1 012345"),
            ("passkey 012345", "passkey takes the number of its question and six digits, as in: passkey 1 012345"),
            ("set 2A1 00", "\"2A1\" is not a UUID: use 4 or 8 hexadecimal digits, or 32 as 8-4-4-4-12"),
            ("set 2A19 0", "\"0\" has an odd number of hexadecimal digits; a byte takes two"),
        ]
    )
    func invalidServeCommandIsRefused(line: String, problem: String) {
        #expect(throws: ArgumentProblem(problem)) { try ServeCommand(parsing: line) }
    }

    private static let peer = DeviceAddress(0xC012_3456_789A, isRandom: true)
    private static let level = ServeEvent.Attribute(uuid: "2A19", handle: 4)
    private static let members = #""address":"C0:12:34:56:78:9A","addressType":"random""#

    @Test(
        arguments: [
            (.ready(adapter: "hci0", address: peer), #"{"event":"ready","adapter":"hci0",\#(members)}"#),
            (.connected(peer), #"{"event":"connected",\#(members)}"#),
            (.disconnected(peer, reason: "gone"), #"{"event":"disconnected",\#(members),"reason":"gone"}"#),
            (
                .read(peer, level, offset: 22),
                #"{"event":"read",\#(members),"characteristic":"2A19","handle":4,"offset":22}"#
            ),
            (
                .write(peer, level, value: [0x01], offset: 0, .command),
                #"{"event":"write",\#(members),"characteristic":"2A19","handle":4,"value":"01","text":"1 %","#
                    + #""fields":{"battery":{"value":1,"unit":"%"}},"offset":0,"kind":"command"}"#
            ),
            (
                .write(peer, level, value: [0x01], offset: 1, .request),
                #"{"event":"write",\#(members),"characteristic":"2A19","handle":4,"value":"01","offset":1,"kind":"request"}"#
            ),
            (
                .write(peer, .init(uuid: "2A19", handle: 5, isDescriptor: true), value: [0x01], offset: 0, .request),
                #"{"event":"write",\#(members),"characteristic":"2A19","handle":5,"value":"01","offset":0,"kind":"request"}"#
            ),
            (
                .subscribed(peer, level, .indication),
                #"{"event":"subscribed",\#(members),"characteristic":"2A19","handle":4,"kind":"indication"}"#
            ),
            (
                .unsubscribed(peer, .init(uuid: nil, handle: 9), .notification),
                #"{"event":"unsubscribed",\#(members),"characteristic":null,"handle":9,"kind":"notification"}"#
            ),
            (.mtu(peer, 517), #"{"event":"mtu",\#(members),"mtu":517}"#),
            (.transferred(peer, serviceData: 7), #"{"event":"transferred",\#(members),"serviceData":7}"#),
            (.window(Seconds(.milliseconds(2500))), #"{"event":"window","seconds":2.5}"#),
            (.window(nil), #"{"event":"window","seconds":0.0}"#),
            (.error("no"), #"{"event":"error","message":"no"}"#),
        ] as [(ServeEvent, String)]
    )
    func serveEventsArePrintedAsJSON(event: ServeEvent, text: String) {
        #expect(event.json.description == text)
    }
}
