import ArgumentParser
import BLE
import HCITransport
import Testing

@testable import BLETool

@Suite("ble controller")
struct ControllerTests {
    @Test("listens wherever it is told to, and serves the kind of controller that is asked for")
    func arguments() throws {
        let command = try Controller.parse([
            "--listen", "unix:/tmp/hci", "--listen", "tcp:[::1]:0", "--acl-length", "27", "--acl-packets", "1",
            "--vanish-after", "250ms", "--seed", "7", "--capture", "/tmp/captures", "--json",
        ])
        #expect(command.listen == [.unix(path: "/tmp/hci"), .tcp(host: "::1", port: 0)])
        #expect(command.capture == "/tmp/captures")
        #expect(command.json)
        let configuration = command.kind.configuration
        #expect(configuration.aclDataLength == 27)
        #expect(configuration.aclPacketCount == 1)
        #expect(configuration.vanishesAfter == .milliseconds(250))
        #expect(configuration.seed == 7)
    }

    @Test(
        "refuses what is wrong, and says what would be right",
        arguments: [
            (["--listen", "nowhere"], "use unix:PATH or tcp:HOST:PORT"),
            (["--listen", "tcp:127.0.0.1"], "tcp: needs a host and a port from 0 to 65535"),
            (["--listen"], "Missing value for '--listen <address>'"),
            (["--acl-length", "26"], "--acl-length is 27 to 251 octets"),
            (["--acl-length", "252"], "--acl-length is 27 to 251 octets"),
            (["--acl-packets", "0"], "--acl-packets is 1 at least"),
            (["--vanish-after", "soon"], "use seconds, as in 10 or 2.5, or 500ms, 2min"),
            (["--seed=-1"], "--seed"),
        ]
    )
    func refusals(arguments: [String], words: String) {
        #expect {
            try Controller.parse(arguments)
        } throws: { error in
            Controller.exitCode(for: error) == .validationFailure && Controller.message(for: error).contains(words)
        }
    }

    private static let connection = ControllerServer.Connection(
        number: 3,
        address: DeviceAddress(0x5642_4C45_0001, isRandom: false),
        listener: .unix(path: "/tmp/hci")
    )

    private static let members =
        #""controller":3,"address":"56:42:4C:45:00:01","addressType":"public","listener":"unix:/tmp/hci""#

    @Test(
        "tells what happens in words and in JSON",
        arguments: [
            (
                .listening(.tcp(host: "127.0.0.1", port: 6402)), "listening on tcp:127.0.0.1:6402",
                #"{"event":"listening","listener":"tcp:127.0.0.1:6402"}"#
            ),
            (
                .happened(.connected(connection)),
                "3: a host has connected to unix:/tmp/hci; its controller is 56:42:4C:45:00:01",
                #"{"event":"connected",\#(members)}"#
            ),
            (
                .happened(.disconnected(connection, .closedByPeer)), "3: the host has gone",
                #"{"event":"disconnected",\#(members),"reason":"the host has gone"}"#
            ),
            (
                .happened(.disconnected(connection, .brokenStream(octet: 0x47))),
                "3: the host was cut off: it sent 0x47 where an H4 packet should start",
                #"{"event":"disconnected",\#(members),"reason":"the host was cut off: "#
                    + #"it sent 0x47 where an H4 packet should start"}"#
            ),
            (
                .happened(.disconnected(connection, .overflow)), "3: the host was cut off: it reads nothing any more",
                #"{"event":"disconnected",\#(members),"reason":"the host was cut off: it reads nothing any more"}"#
            ),
            (
                .happened(.vanished(connection)), "3: the controller has vanished", #"{"event":"vanished",\#(members)}"#
            ),
            (
                .happened(.refused(.unix(path: "/tmp/hci"))),
                "a host at unix:/tmp/hci was turned away: there are 256 already",
                #"{"event":"refused","listener":"unix:/tmp/hci"}"#
            ),
        ] as [(ControllerLine, String, String)]
    )
    func lines(line: ControllerLine, text: String, json: String) {
        #expect(line.text == text)
        #expect(line.json.description == json)
    }
}
