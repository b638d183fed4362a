import ArgumentParser
import BLE
import BLEHCITransport
import BLEProfiles
import BLEVirtualController
import Testing

@testable import BLETool

@Suite("ble controller")
struct ControllerTests {
    @Test func controllerListensAtEachPlaceWithTheRequestedProperties() throws {
        let command = try Controller.parse([
            "--listen", "unix:/tmp/hci", "--listen", "tcp:[::1]:0", "--acl-length", "27", "--acl-packets", "1",
            "--links", "7", "--distance", "2.5", "--no-pacing", "--seed", "7", "--capture", "/tmp/captures", "--json",
        ])
        #expect(command.listen == [.unix(path: "/tmp/hci"), .tcp(host: "::1", port: 0)])
        #expect(command.json)
        let configuration = command.configuration
        #expect(configuration.aclDataLength == 27)
        #expect(configuration.aclPacketCount == 1)
        #expect(configuration.linkCount == 7)
        #expect(configuration.spacingInMetres == 2.5)
        #expect(!configuration.pacesPackets)
        #expect(configuration.seed == 7)
        #expect(configuration.captureFolder == "/tmp/captures")
    }

    @Test("Each chosen address belongs to the listener in the same place")
    func chosenAddressBelongsToTheListenerInTheSamePlace() throws {
        let address = DeviceAddress(0x0200_0000_0001, isRandom: false)
        let command = try Controller.parse([
            "--listen", "unix:/tmp/one", "--listen", "unix:/tmp/two", "--address", "02:00:00:00:00:01",
        ])
        #expect(command.places.map { $0.listener } == [.unix(path: "/tmp/one"), .unix(path: "/tmp/two")])
        #expect(command.places.map { $0.controllerAddress } == [address, nil])
        #expect(
            try Controller.parse(["--address", "02:00:00:00:00:01"]).places.map { $0.controllerAddress } == [address]
        )
    }

    @Test(
        "An address that is invalid, given twice, or without a listener is refused",
        arguments: [
            (["--address", "02:00:00:00:00"], "\"02:00:00:00:00\" is not a device address"),
            (["--address", "00:00:00:00:00:00"], "\"00:00:00:00:00:00\" is not a device address"),
            (
                ["--address", "02:00:00:00:00:01", "--address", "02:00:00:00:00:02"],
                "each --address is for one --listen: there are 2 for 1"
            ),
            (
                [
                    "--listen", "unix:/a", "--listen", "unix:/b", "--address", "02:00:00:00:00:01", "--address",
                    "02:00:00:00:00:01",
                ], "an --address is given twice"
            ),
        ] as [([String], String)]
    )
    func impossibleAddressesAreRefused(arguments: [String], problem: String) {
        #expect(Controller.problem(with: arguments)?.contains(problem) == true)
    }

    @Test func controllerHasTheRequestedFaultsAndNoOthers() throws {
        let untroubled = try Controller.parse([]).configuration
        #expect(untroubled.conditions == .perfect)
        #expect(untroubled.faults == .none)
        #expect(untroubled.diesAfter == nil)
        #expect(untroubled.mishaps.isEmpty)
        #expect(untroubled.pacesPackets)

        let troubled = try Controller.parse([
            "--loss", "0.1", "--latency", "5ms", "--jitter", "2ms", "--dead-after", "9", "--completion-loss", "0.2",
            "--completion-delay", "3ms", "--garbage", "0.3", "--truncation", "0.4", "--buffer-loss", "1",
            "--ignore-pings",
            "--silent-after", "1", "--hardware-error-after", "2", "--vanish-after", "250ms",
        ]).configuration
        #expect(
            troubled.conditions
                == RadioConditions(loss: 0.1, latency: .milliseconds(5), jitter: .milliseconds(2))
        )
        #expect(
            troubled.faults
                == ControllerFaults(
                    completionLoss: 0.2,
                    completionDelay: .milliseconds(3),
                    garbage: 0.3,
                    truncation: 0.4,
                    bufferLoss: 1,
                    ignoresPings: true
                )
        )
        #expect(troubled.diesAfter == .seconds(9))
        #expect(
            troubled.mishaps
                == [.silent: .seconds(1), .hardwareError: .seconds(2), .vanished: .milliseconds(250)]
        )
    }

    @Test(
        "Invalid options are refused with an explanation",
        arguments: [
            (["--listen", "nowhere"], "use unix:PATH or tcp:HOST:PORT"),
            (["--listen", "tcp:127.0.0.1"], "tcp: needs a host and a port from 0 to 65535"),
            (["--listen"], "Missing value for '--listen <address>'"),
            (["--acl-length", "26"], "--acl-length is 27 to 65535 bytes"),
            (["--acl-length", "65536"], "'65536'"),
            (["--distance", "-1"], "--distance"),
            (["--distance=-1"], "--distance is 0 to 1000000 metres"),
            (["--distance", "nan"], "--distance is 0 to 1000000 metres"),
            (["--loss", "1.1"], "use a number from 0 to 1, as in 0.1"),
            (["--garbage", "often"], "use a number from 0 to 1, as in 0.1"),
            (["--buffer-loss", "1e-1"], "use a number from 0 to 1, as in 0.1"),
            (["--jitter", "5 ms"], "use seconds, as in 10 or 2.5, or 500ms, 2min"),
            (["--acl-packets", "0"], "--acl-packets is 1 at least"),
            (["--links", "0"], "--links is 1 to 3584"),
            (["--vanish-after", "soon"], "use seconds, as in 10 or 2.5, or 500ms, 2min"),
            (["--seed=-1"], "--seed"),
        ]
    )
    func invalidOptionsAreRefusedWithAnExplanation(arguments: [String], words: String) {
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
        "Events are printed as text and as JSON",
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
                .happened(.disconnected(connection, .closedByPeer)), "3: the host has disconnected",
                #"{"event":"disconnected",\#(members),"reason":"the host has disconnected"}"#
            ),
            (
                .happened(.disconnected(connection, .brokenStream(octet: 0x47))),
                "3: the host was disconnected: it sent 0x47 instead of the start of an H4 packet",
                #"{"event":"disconnected",\#(members),"reason":"the host was disconnected: "#
                    + #"it sent 0x47 instead of the start of an H4 packet"}"#
            ),
            (
                .happened(.disconnected(connection, .overflow)), "3: the host was disconnected: it does not read",
                #"{"event":"disconnected",\#(members),"reason":"the host was disconnected: it does not read"}"#
            ),
            (
                .happened(.befell(connection, .vanished)), "3: the controller has vanished",
                #"{"event":"vanished",\#(members)}"#
            ),
            (
                .happened(.befell(connection, .silent)), "3: the controller has fallen silent",
                #"{"event":"silent",\#(members)}"#
            ),
            (
                .happened(.befell(connection, .hardwareError)), "3: the controller has had a hardware error",
                #"{"event":"hardwareError",\#(members)}"#
            ),
            (.happened(.airDied), "the air has failed: all packets are lost", #"{"event":"airDied"}"#),
            (
                .happened(.refused(.unix(path: "/tmp/hci"))),
                "a host at unix:/tmp/hci was turned away: there are 256 already",
                #"{"event":"refused","listener":"unix:/tmp/hci"}"#
            ),
        ] as [(ControllerLine, String, String)]
    )
    func eventsArePrintedAsTextAndAsJSON(line: ControllerLine, text: String, json: String) {
        #expect(line.text == text)
        #expect(line.json.description == json)
    }
}
