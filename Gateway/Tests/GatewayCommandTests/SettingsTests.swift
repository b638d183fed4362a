import BLE
import BluetoothSensors
import Configuration
import GatewayCore
import GatewayMQTT
import GatewayWeb
import Testing

@testable import Gateway

struct SettingsTests {
    private func settings(
        options: [Setting: ConfigContent] = [:],
        environment: [String: String] = [:],
        file: String? = nil
    ) throws -> GatewaySettings {
        var sources = [SettingsSource.options(options), try .environment(environment)]
        if let file { sources.append(try .file(SettingsFile(path: "gateway.json", contents: Array(file.utf8)))) }
        return try GatewaySettings(merging: sources, defaultStateDirectory: "/state")
    }

    private func fault(
        options: [Setting: ConfigContent] = [:],
        environment: [String: String] = [:],
        file: String? = nil
    ) -> String? {
        do {
            _ = try settings(options: options, environment: environment, file: file)
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test(
        arguments: [
            (["check", "--prot", "1"], "ble-gateway check --help"), (["chek"], "ble-gateway --help"),
            ([], "ble-gateway --help"),
        ] as [([String], String)]
    )
    func wrongCommandLineNamesTheHelpOfItsCommand(arguments: [String], help: String) {
        #expect(GatewayCommand.helpCommand(for: arguments) == help)
    }

    @Test func withoutSettingsTheDefaultsAreUsed() throws {
        #expect(try settings() == GatewaySettings(stateDirectory: "/state"))
    }

    @Test func optionOverridesEnvironmentWhichOverridesFile() throws {
        let file = #"{"port": 1, "name": "file", "scanMode": "passive"}"#
        let environment = ["BLE_GATEWAY_PORT": "2", "BLE_GATEWAY_NAME": "environment"]
        let merged = try settings(options: [.port: .int(3)], environment: environment, file: file)
        #expect(merged.port == 3)
        #expect(merged.name == "environment")
        #expect(merged.scanMode == .passive)
    }

    @Test func fileHasEverySetting() throws {
        let merged = try settings(
            file: """
                {"name": "hall", "friendlyName": "Hall", "adapters": ["hci1", "tcp:127.0.0.1:6402"],
                 "host": "127.0.0.1", "port": 7000, "plaintext": true, "api": true, "scanMode": "passive",
                 "connectionLimit": 5, "clientLimit": 2, "stateDirectory": "/elsewhere", "logLevel": "debug",
                 "logFormat": "json", "readings": "none",
                 "mqtt": "mqtts://me@broker", "mqttPassword": "secret", "mqttTopic": "home/ble", "mqttDiscovery": "none",
                 "mqttAuthority": "/a.pem", "mqttCertificate": "/c.pem", "mqttPrivateKey": "/k.pem",
                 "http": ":8053", "httpNames": ["gw.example.org"],
                 "mqttCommands": true, "mqttIdleTimeout": 60, "mqttStoreLimit": 5000, "mqttStoreDays": 2,
                 "fleetSession": "kitchen", "fleetWindow": 500, "fleetPublish": "home",
                 "bindKeys": ["A4:C1:38:00:00:01=000102030405060708090A0B0C0D0E0F"]}
                """
        )
        var expected = GatewaySettings(stateDirectory: "/elsewhere")
        expected.name = "hall"
        expected.friendlyName = "Hall"
        expected.adapters = [.hci(index: 1, channel: .user), .tcp(host: "127.0.0.1", port: 6402)]
        expected.host = "127.0.0.1"
        expected.port = 7000
        expected.isEncrypted = false
        expected.scanMode = .passive
        expected.connectionLimit = 5
        expected.clientLimit = 2
        expected.logLevel = .debug
        expected.logFormat = .json
        expected.readings = .none
        expected.broker = BrokerAddress(parsing: "mqtts://me@broker")
        expected.fleetSession = "kitchen"
        expected.fleetWindow = 500
        expected.fleetPublish = "home"
        expected.mqttPassword = "secret"
        expected.mqttTopic = "home/ble"
        expected.mqttDiscovery = nil
        expected.mqttAuthority = "/a.pem"
        expected.mqttCertificate = "/c.pem"
        expected.mqttPrivateKey = "/k.pem"
        expected.http = WebAddress(host: "::", port: 8053)
        expected.httpNames = ["gw.example.org"]
        expected.takesCommands = true
        expected.mqttIdleTimeout = 60
        expected.mqttStoreLimit = 5000
        expected.mqttStoreDays = 2
        let address = try #require(DeviceAddress("A4:C1:38:00:00:01", isRandom: false))
        expected.bindKeys = [address: try #require(BindKey(Array(0..<16)))]
        #expect(merged == expected)
    }

    /// The adapter may be plugged in later. Whether the machine of the test has an hci0 makes no difference.
    @Test(
        arguments: [
            (nil, [:], "hci0"), (nil, ["BLE_ADAPTER": ""], "hci0"), (nil, ["BLE_ADAPTER": "hci9"], "hci9"),
            (#"{"adapters": ["hci7", "auto"]}"#, ["BLE_ADAPTER": "x"], "hci7 auto"),
        ] as [(String?, [String: String], String)]
    )
    func adapterThatIsAbsentIsOneToOpen(file: String?, environment: [String: String], names: String) throws {
        let adapters = try settings(file: file).adaptersToOpen(environment: environment)
        #expect(adapters.map { "\($0)" }.joined(separator: " ") == names)
    }

    @Test func adapterOfTheEnvironmentMustBeValid() throws {
        let merged = try settings()
        let environment = ["BLE_ADAPTER": "x"]
        let error = #expect(throws: TransportError.self) { try merged.adaptersToOpen(environment: environment) }
        #expect(error?.description.hasPrefix(#""x" names no adapter: use hci0"#) == true)
    }

    @Test func environmentHasListsSeparatedByCommas() throws {
        let merged = try settings(environment: ["BLE_GATEWAY_ADAPTERS": "hci0, hci1", "BLE_GATEWAY_NAME": ""])
        #expect(merged.adapters == [.hci(index: 0, channel: .user), .hci(index: 1, channel: .user)])
        #expect(merged.name == "ble-gateway")
        let lines = "serial:/dev/ttyAMA0,115200,flow=rtscts, hci0,serial:/dev/ttyS1, 9600, auto"
        #expect(
            try settings(environment: ["BLE_GATEWAY_ADAPTERS": lines]).adapters == [
                .serial(path: "/dev/ttyAMA0", baudRate: 115_200, usesFlowControl: true),
                .hci(index: 0, channel: .user),
                .serial(path: "/dev/ttyS1", baudRate: 9600, usesFlowControl: false),
                .automatic,
            ]
        )
    }

    @Test(arguments: [
        (#"{"prot": 6053}"#, #"gateway.json: "prot": there is no such setting"#),
        (#"{"port": 70000}"#, #"gateway.json: "port": 70000 is not valid; use a number from 0 to 65535"#),
        (#"{"port": "6053"}"#, #"gateway.json: "port": "6053" is not valid; use an integer"#),
        (#"{"adapters": "hci0"}"#, #"gateway.json: "adapters": "hci0" is not valid; use a list of strings"#),
        (#"{"mqtt": {"host": "broker"}}"#, #"gateway.json: "mqtt": the value is not a string"#),
        (#"{"bindKeys": {"a": "b"}}"#, #"gateway.json: "bindKeys": the value is not a list of strings"#),
        (#"{"port": {}}"#, #"gateway.json: "port": {} is not valid; use an integer"#),
        (#"{"mqttCommands": {"a": true}}"#, #"gateway.json: "mqttCommands": {"a": …} is not valid; use true or false"#),
        (#"{"adapters": [{"name": "hci0"}]}"#, #""adapters": [{"name": …}] is not valid; use a list of strings"#),
        (#"{"adapters": ["hci0", {}]}"#, #""adapters": ["hci0", {}] is not valid; use a list of strings"#),
        (#"{"adapters": ["hci0", 1]}"#, #""adapters": ["hci0", 1] is not valid; use a list of strings"#),
        (#"{"adapters": [["hci0"]]}"#, #""adapters": [["hci0"]] is not valid; use a list of strings"#),
        (#"{"name": [{}]}"#, #"gateway.json: "name": [{}] is not valid; use a string"#),
        (#"{"adapters": ["usb"]}"#, #"gateway.json: "adapters": "usb" is not valid; use hci0"#),
        (#"{"adapters": ["hci0", "hci0"]}"#, "it is given twice"),
        (#"{"adapters": ["serial:/dev/ttyS1", "9600"]}"#, "serial: needs a path and a baud rate"),
        (#"{"name": "My Gateway"}"#, #""My Gateway" is not valid; use 1 to 31 lower-case letters"#),
        (#"{"scanMode": "fast"}"#, #""fast" is not valid; use one of passive, active"#),
        (#"{"connectionLimit": 0}"#, "use a number from 1 to 255"),
        (#"{"friendlyName": ""}"#, "use a text of 1 to 120 bytes without control characters"),
        (#"{"friendlyName": "Hall\u001b[2J"}"#, "use a text of 1 to 120 bytes without control characters"),
        (#"{"host": ""}"#, "use a text that is not empty"),
        (#"{"port": true}"#, #"gateway.json: "port": true is not valid; use an integer"#),
        (#"{"connectionLimit": true}"#, #"gateway.json: "connectionLimit": true is not valid; use an integer"#),
        (#"{"name": false}"#, #"gateway.json: "name": false is not valid; use a string"#),
        (#"{"adapters": true}"#, #"gateway.json: "adapters": true is not valid; use a list of strings"#),
        (#"{"plaintext": 1}"#, #"gateway.json: "plaintext": 1 is not valid; use true or false"#),
        (#"{"plaintext": 0.0}"#, "is not valid; use true or false"),
        (#"{"mqttCommands": 0}"#, #"gateway.json: "mqttCommands": 0 is not valid; use true or false"#),
        (
            #"{"api": false, "readings": "none"}"#,
            #"gateway.json: "api": the gateway has nothing else to do if readings is none; leave out one of the two"#
        ),
        (#"{"mqtt": "broker"}"#, #"gateway.json: "mqtt": it is not valid; use mqtt://HOST"#),
        (#"{"mqtt": "mqtt://me:secret@broker"}"#, "is not valid; use mqtt://HOST"),
        (#"{"mqttFormat": "xml"}"#, "use one of gateway, theengs"),
        (#"{"mqttCommands": "yes"}"#, #""mqttCommands": "yes" is not valid; use true or false"#),
        (#"{"port": "a\nb"}"#, #""port": "a\u{A}b" is not valid; use an integer"#),
        (#"{"mqttIdleTimeout": 0}"#, "use a number from 1 to 3600"),
        (#"{"mqttCommands": true}"#, #"gateway.json: "mqttCommands": commands need a broker; name one with mqtt"#),
        (
            #"{"mqtt": "mqtt://broker", "mqttAuthority": "/a.pem"}"#,
            #"gateway.json: "mqttAuthority": "/a.pem" is not valid; the broker is used without TLS; name"#
        ),
        (#"{"mqtt": "mqtt://a", "mqttCertificate": "/c.pem", "mqttPrivateKey": "/k.pem"}"#, "with mqtts://"),
        (
            #"{"mqtt": "mqtt://broker", "mqttPrivateKey": "/k.pem"}"#,
            #""/k.pem" is not valid; the broker is used without TLS; name the broker with mqtts://"#
        ),
        (
            #"{"mqtt": "mqtts://broker", "mqttCertificate": "/c.pem"}"#,
            #""/c.pem" is not valid; a certificate needs its private key; name the file with mqttPrivateKey"#
        ),
        (
            #"{"mqtt": "mqtts://broker", "mqttPrivateKey": "/k.pem"}"#,
            #""/k.pem" is not valid; a private key needs its certificate; name the file with mqttCertificate"#
        ),
        (
            #"{"mqtt": "mqtt://broker", "mqttPassword": "secret"}"#,
            #""mqttPassword": the password needs a user; name the user in the address of the broker: mqtt://"#
        ),
        (#"{"mqtt": "mqtts://broker", "mqttPassword": "secret"}"#, "address of the broker: mqtts://USER@HOST"),
        (#"{"mqttStoreLimit": 1}"#, "use a number from 1000 to 10000000"),
        (#"{"mqttStoreDays": 0}"#, "use a number from 1 to 3650"),
        (#"{"mqttTopic": "a/#"}"#, "use a topic without wildcards"),
        (#"{"http": "gateway"}"#, #""gateway" is not valid; use a port"#),
        (#"{"httpNames": ["a.b", "gw.example.org:8053"]}"#, #""gw.example.org:8053" is not valid; use a host"#),
        (#"{"httpNames": ["http://gw.example.org"]}"#, #""http://gw.example.org" is not valid; use a host"#),
        (#"{"httpNames": [""]}"#, #""httpNames": "" is not valid; use a host name without scheme, port and path"#),
        (#"{"httpNames": ["a\u001b[2J"]}"#, #""a\u{1B}[2J" is not valid; use a host name"#),
        (#"{"http": "a\u001b[2J"}"#, #""a\u{1B}[2J" is not valid; use a port"#),
        (#"{"adapters": ["a\nb"]}"#, #""a\u{A}b" is not valid"#),
        (#"{"a\nb": 1}"#, #""a\u{A}b": there is no such setting"#),
        (#"{"readings": "xml"}"#, #""xml" is not valid; use one of json, none"#),
        (#"{"bindKeys": ["A4:C1:38:00:00:01"]}"#, "number 1 is not valid; use an address and 32 hexadecimal digits"),
        (#"{"bindKeys": ["A4:C1:38:00:00:01=0123"]}"#, "number 1 is not valid; use an address and 32 hexadecimal"),
        ("[]", "gateway.json: the file must hold a JSON object"),
        ("{", "gateway.json: the file must hold a JSON object"),
    ])
    func faultInFileIsNamedInOneLine(file: String, words: String) throws {
        let message = try #require(fault(file: file))
        #expect(message.contains(words), "\(message)")
        #expect(!message.contains("\n"))
    }

    @Test func nullStandsForASettingThatIsNotThere() throws {
        let merged = try settings(file: #"{"port": null, "plaintext": null, "name": null}"#)
        #expect(merged == GatewaySettings(stateDirectory: "/state"))
    }

    @Test func numbersAndFlagsAreKept() throws {
        let merged = try settings(file: #"{"port": 1, "connectionLimit": 1, "plaintext": true, "api": true}"#)
        #expect(merged.port == 1 && merged.connectionLimit == 1 && !merged.isEncrypted && merged.servesAPI)
    }

    @Test func lengthOfTheNameForPeopleIsLimited() throws {
        // Two bytes for each character.
        let name = String(repeating: "ü", count: 60)
        #expect(try settings(file: #"{"friendlyName": "\#(name)"}"#).friendlyName == name)
        let message = try #require(fault(file: #"{"friendlyName": "\#(name)x"}"#))
        #expect(message.contains("use a text of 1 to 120 bytes"))
    }

    @Test func faultInEnvironmentNamesTheVariable() {
        #expect(fault(environment: ["BLE_GATEWAY_PRT": "1"])?.hasPrefix("environment variable BLE_GATEWAY_PRT") == true)
        #expect(
            fault(environment: ["BLE_GATEWAY_PORT": "605O"])
                == #"environment variable BLE_GATEWAY_PORT: "605O" is not valid; use an integer"#
        )
        #expect(
            fault(environment: ["BLE_GATEWAY_PLAINTEXT": "maybe"])
                == #"environment variable BLE_GATEWAY_PLAINTEXT: "maybe" is not valid; use true or false"#
        )
        let nothing = ["BLE_GATEWAY_API": "false", "BLE_GATEWAY_READINGS": "none"]
        #expect(fault(environment: nothing)?.hasPrefix("environment variable BLE_GATEWAY_API: the gateway has") == true)
        #expect(fault(environment: ["BLE_ADAPTER": "x", "BLE_GATEWAY_CONFIG": "x"]) == nil)
    }

    @Test func noErrorShowsAKey() throws {
        let key = "000102030405060708090A0B0C0D0E0F"
        for file in [
            #"{"bindKeys": ["\#(key)"]}"#, #"{"bindKeys": ["A4:C1:38:00:00:01=\#(key)00"]}"#,
            #"{"bindKeys": ["A4:C1:38:00:00:01=\#(key)", "A4:C1:38:00:00:01=\#(key)"]}"#,
        ] {
            let message = try #require(fault(file: file))
            #expect(!message.contains(key), "\(message)")
        }
    }

    @Test func noErrorShowsThePassword() throws {
        let environment = ["BLE_GATEWAY_MQTT": "mqtt://broker", "BLE_GATEWAY_MQTT_PASSWORD": "5ecret"]
        let message = try #require(fault(environment: environment))
        #expect(message.hasPrefix("environment variable BLE_GATEWAY_MQTT_PASSWORD: "))
        #expect(!message.contains("5ecret"), "\(message)")
        #expect(fault(file: #"{"mqtt": ["mqtt://me:5ecret@broker"]}"#)?.contains("5ecret") == false)
        #expect(fault(file: #"{"mqttPassword": 5}"#) == #"gateway.json: "mqttPassword": the value is not a string"#)
    }

    /// The password may be at any place, as in an address without a host.
    @Test(arguments: [
        "mqtt://me:5ecret@broker", "me:5ecr@5ecret@broker:1883", "mqtt://me:5ecret", "mqtt://me:5ecr@5ecret/", "5ecret",
    ])
    func noErrorShowsAPasswordInAnAddress(address: String) throws {
        let message = try #require(fault(options: [.mqtt: .string(address)]))
        #expect(message.hasPrefix("--mqtt: it is not valid; use mqtt://HOST"), "\(message)")
        #expect(!message.contains("5ec"), "\(message)")
    }

    /// The fault of a file stays if the broker comes from another place.
    @Test func brokerOfAnOptionIsCheckedWithTheFile() throws {
        let options: [Setting: ConfigContent] = [.mqtt: .string("mqtt://broker")]
        let message = try #require(fault(options: options, file: #"{"mqttAuthority": "/a.pem"}"#))
        #expect(message.hasPrefix(#"gateway.json: "mqttAuthority": "/a.pem" is not valid"#))
    }

    @Test func credentialsWithoutABrokerAreAccepted() throws {
        #expect(try settings(file: #"{"mqttAuthority": "/a.pem"}"#).mqttAuthority == "/a.pem")
        #expect(try settings(file: #"{"mqttCertificate": "/c.pem"}"#).mqttCertificate == "/c.pem")
        #expect(try settings(file: #"{"mqttPassword": "secret"}"#).mqttPassword == "secret")
    }

    @Test func authorityAloneIsAcceptedWithTLS() throws {
        let merged = try settings(file: #"{"mqtt": "mqtts://broker", "mqttAuthority": "/a.pem"}"#)
        #expect(merged.mqttAuthority == "/a.pem")
    }

    @Test func withABrokerReadingsAreNotWrittenUnlessWanted() throws {
        #expect(try settings().readings == .json)
        #expect(try settings(file: #"{"mqtt": "mqtt://broker"}"#).readings == .none)
        #expect(try settings(file: #"{"mqtt": "mqtt://broker", "readings": "json"}"#).readings == .json)
        #expect(try !settings(file: #"{"mqtt": "mqtt://broker", "api": false}"#).servesAPI)
    }

    @Test func formatOfTheengsHasItsOwnTopic() throws {
        #expect(try settings(file: #"{"mqttFormat": "gateway"}"#).theengsTopic == nil)
        #expect(try settings(file: #"{"mqttFormat": "theengs"}"#).theengsTopic == "home/TheengsGateway/BTtoMQTT")
        let merged = try settings(file: #"{"mqttFormat": "theengs", "mqttTopic": "house"}"#)
        #expect(merged.theengsTopic == "house/BTtoMQTT")
    }

    @Test func readingsAloneAreEnough() throws {
        #expect(try !settings(file: #"{"api": false}"#).servesAPI)
    }

    @Test func statusPageAloneIsEnoughAndIsServedToThisMachineOnly() throws {
        let merged = try settings(file: #"{"api": false, "readings": "none", "http": "8053"}"#)
        #expect(merged.http == WebAddress(host: "127.0.0.1", port: 8053))
        #expect(try settings().http == nil)
    }

    @Test func faultInOptionNamesTheOption() {
        #expect(fault(options: [.port: .int(-1)])?.hasPrefix("--port: -1 is not valid") == true)
        let nothing: [Setting: ConfigContent] = [.api: .bool(false), .readings: .string("none")]
        #expect(fault(options: nothing)?.hasPrefix("--no-api: the gateway has nothing else") == true)
    }

    @Test(arguments: [
        ("Hall.example.org", "hall"), ("hall", "hall"), ("localhost", "ble-gateway"), ("my_host", "ble-gateway"),
        ("", "ble-gateway"),
    ])
    func withoutNameTheHostNameIsUsed(hostName: String, name: String) throws {
        let merged = try GatewaySettings(merging: [], defaultStateDirectory: "/state", hostName: hostName)
        #expect(merged.name == name)
    }

    @Test func everySettingHasAVariable() {
        #expect(Setting.friendlyName.environmentVariable == "BLE_GATEWAY_FRIENDLY_NAME")
        #expect(Setting.stateDirectory.environmentVariable == "BLE_GATEWAY_STATE_DIRECTORY")
    }

    @Test func optionsBecomeSettings() throws {
        let options = try SettingsOptions.parse([
            "--adapter", "hci0", "--adapter", "hci1", "--host", "::1", "--port", "0", "--plaintext", "--name", "hall",
            "--scan-mode", "passive", "--connection-limit", "3", "--log-level", "debug", "--log-format", "json",
            "--no-api", "--readings", "none", "--bind-key", "a=b", "--mqtt", "c", "--http", "8053",
        ])
        #expect(
            options.values == [
                .adapters: .stringArray(["hci0", "hci1"]), .host: .string("::1"), .port: .int(0),
                .plaintext: .bool(true), .name: .string("hall"), .scanMode: .string("passive"),
                .connectionLimit: .int(3), .logLevel: .string("debug"), .logFormat: .string("json"),
                .api: .bool(false), .readings: .string("none"), .bindKeys: .stringArray(["a=b"]), .mqtt: .string("c"),
                .http: .string("8053"),
            ]
        )
    }
}

struct StateDirectoryTests {
    @Test func firstDefinedDirectoryIsUsed() {
        let all = ["STATE_DIRECTORY": "/a:/b", "XDG_STATE_HOME": "/x", "HOME": "/h"]
        #expect(StateDirectory.defaultPath(environment: all, isRoot: true) == "/a")
        let user = ["XDG_STATE_HOME": "/x", "HOME": "/h"]
        #expect(StateDirectory.defaultPath(environment: user, isRoot: true) == "/var/lib/ble-gateway")
        #expect(StateDirectory.defaultPath(environment: user, isRoot: false) == "/x/ble-gateway")
        #expect(StateDirectory.defaultPath(environment: ["HOME": "/h"], isRoot: false) == "/h/.local/state/ble-gateway")
        #expect(StateDirectory.defaultPath(environment: [:], isRoot: false) == nil)
    }

    @Test func relativeDirectoryOfTheUserIsIgnored() {
        let environment = ["XDG_STATE_HOME": "x", "HOME": "/h"]
        #expect(StateDirectory.defaultPath(environment: environment, isRoot: false) == "/h/.local/state/ble-gateway")
        #expect(StateDirectory.defaultPath(environment: ["XDG_STATE_HOME": "x"], isRoot: false) == nil)
    }
}
