import BLE
import GatewayCore
import Testing

@testable import GatewayMQTT

/// Requests from the broker, which anyone can publish.
struct CommandRequestTests {
    private func request(_ text: String, isRetained: Bool = false) -> CommandRequest {
        CommandRequest(MQTTReception(topic: "t", payload: Array(text.utf8), isRetained: isRetained))
    }

    private func fault(_ request: CommandRequest) -> DeviceCommandError? {
        if case .failure(let error) = request.command { error } else { nil }
    }

    @Test func everyMemberIsUsed() throws {
        let request = request(
            #"""
            {"id": "7", "command": "write", "address": "c0:de:00:00:00:01", "addressType": "random",
             "service": "180F", "characteristic": "00002A19-0000-1000-8000-00805F9B34FB", "value": "00fF", "response": false,
             "timeout": 1.5, "else": [1]}
            """#
        )
        let path = DeviceCommand.Path(service: "180F", characteristic: "2A19")
        let expected = DeviceCommand(
            .write(path, [0, 255], withResponse: false),
            address: 0xC0DE_0000_0001,
            isRandom: true,
            timeout: .milliseconds(1500)
        )
        #expect(try request.command.get() == expected)
        #expect(request.identifier == "7")
    }

    @Test(arguments: [
        ("connect", DeviceCommand.Action.connect), ("disconnect", .disconnect), ("services", .services),
        ("pair", .pair), ("unpair", .unpair),
        ("read", .read(DeviceCommand.Path(characteristic: "2A19"))),
        ("write", .write(DeviceCommand.Path(characteristic: "2A19"), [1], withResponse: true)),
        ("subscribe", .subscribe(DeviceCommand.Path(characteristic: "2A19"))),
        ("unsubscribe", .unsubscribe(DeviceCommand.Path(characteristic: "2A19"))),
    ])
    func commandsHaveTheirNames(name: String, action: DeviceCommand.Action) throws {
        let text =
            #"{"id":"1","command":"\#(name)","address":"C0:DE:00:00:00:01","characteristic":"2A19","value":"01"}"#
        let command = try request(text).command.get()
        #expect(command.action == action)
        #expect(command.timeout == .seconds(30))
        #expect(command.isRandom == nil)
    }

    @Test(arguments: [
        ("", "not a JSON object"), ("[]", "not a JSON object"), ("{", "not a JSON object"),
        ("\u{0}", "not a JSON object"),
        (#"{"id": 1}"#, "not a JSON object"), ("{}", #""id" is missing; use a text"#),
        (#"{"id": ""}"#, #""id": "" is not valid"#), (#"{"id": "1"}"#, #""address" is missing"#),
        (#"{"id": "1", "address": "C0DE00000001"}"#, #""address": "C0DE00000001" is not valid; use six pairs"#),
        (#"{"id": "1", "address": "C0:DE:00:00:00:01"}"#, #""command" is missing; use connect"#),
        (#"{"id": "1", "address": "C0:DE:00:00:00:01", "addressType": "x"}"#, "use public or random"),
        (#"{"id": "1", "address": "C0:DE:00:00:00:01", "command": "reboot"}"#, #""reboot" is not valid; use connect"#),
        (#"{"id": "1", "address": "C0:DE:00:00:00:01", "command": "read"}"#, #""characteristic" is missing"#),
        (
            #"{"id": "1", "address": "C0:DE:00:00:00:01", "command": "read", "characteristic": "2A1"}"#,
            #""2A1" is not valid; use a UUID"#
        ),
        (
            #"{"id": "1", "address": "C0:DE:00:00:00:01", "command": "write", "characteristic": "2A19"}"#,
            #""value" is missing; use pairs of hexadecimal digits"#
        ),
        (
            #"{"id": "1", "address": "C0:DE:00:00:00:01", "command": "write", "characteristic": "2A19", "value": "0g"}"#,
            #""value": "0g" is not valid"#
        ),
        (
            #"{"id": "1", "address": "C0:DE:00:00:00:01", "command": "write", "characteristic": "2A19", "value": "é"}"#,
            #""value": "é" is not valid"#
        ),
        (#"{"id": "1", "address": "C0:DE:00:00:00:01", "command": "connect", "timeout": 1e9}"#, "use 0.1 to 120"),
        (#"{"id": "1", "address": "C0:DE:00:00:00:01", "command": "connect", "timeout": -1}"#, "use 0.1 to 120"),
    ])
    func faultsAreNamedInOneLine(text: String, words: String) throws {
        let error = try #require(fault(request(text)))
        #expect(error.code == .invalid)
        #expect(error.text.contains(words), "\(error.text)")
        #expect(!error.text.contains("\n"))
    }

    @Test func deepNestingIsRefused() throws {
        let text =
            #"{"id": "1", "else": "# + String(repeating: "[", count: 8000) + String(repeating: "]", count: 8000) + "}"
        #expect(fault(request(text))?.code == .invalid)
    }

    @Test func longTextsAreNotRepeated() throws {
        let text = #"{"id": "1", "address": "\#(String(repeating: "x", count: 10_000))"}"#
        let error = try #require(fault(request(text)))
        #expect(error.text.utf8.count < 200)
        #expect(fault(request(#"{"id": "\#(String(repeating: "x", count: 129))"}"#))?.code == .invalid)
    }

    @Test func requestsThatTheBrokerHasKeptOrThatAreTooLargeAreRefused() {
        let text = #"{"id": "1", "address": "C0:DE:00:00:00:01", "command": "connect"}"#
        #expect(fault(request(text, isRetained: true))?.code == .retained)
        #expect(request(text, isRetained: true).identifier == "1")
        let large = CommandRequest(MQTTReception(topic: "t", payload: nil, isRetained: false))
        #expect(fault(large)?.code == .tooLarge)
    }

    @Test func resultsHaveTheRequestsIdentifier() {
        let request = request(#"{"id": "a\"b", "address": "C0:DE:00:00:00:01", "command": "services"}"#)
        #expect(
            request.text(of: .success(.done), gateway: "hall")
                == #"{"id": "a\"b", "gateway": "hall", "command": "services", "address": "C0:DE:00:00:00:01", "#
                + #""success": true}"#
        )
        let error = DeviceCommandError(.attribute, "no\nline", attributeError: 5)
        #expect(
            self.request("x").text(of: .failure(error), gateway: "hall")
                == #"{"id": null, "gateway": "hall", "success": false, "#
                + #""error": {"code": "attribute", "attributeError": 5, "text": "no\u000aline"}}"#
        )
    }

    /// A public address may look like a random one.
    @Test(arguments: [true, false])
    func resultOfAPairingHasTheIdentityAddressWithItsType(isRandom: Bool) {
        let request = request(#"{"id": "1", "address": "4D:00:00:00:00:01", "command": "pair"}"#)
        let identity = DeviceAddress(0xC0DE_0000_0001, isRandom: isRandom)
        let type = isRandom ? "random" : "public"
        #expect(
            request.text(of: .success(.paired(identity)), gateway: "hall")
                == #"{"id": "1", "gateway": "hall", "command": "pair", "address": "4D:00:00:00:00:01", "#
                + #""success": true, "identity": "C0:DE:00:00:00:01", "identityType": "\#(type)"}"#
        )
    }

    @Test func resultThatIsTooLargeIsReplacedByAnError() {
        let request = request(#"{"id": "1", "address": "C0:DE:00:00:00:01", "command": "services"}"#)
        func text(_ count: Int) -> String {
            request.text(of: .success(.value([UInt8](repeating: 0, count: count), of: "FFF1")), gateway: "hall")
        }
        #expect(text(32_000).contains(#""success": true"#))
        #expect(
            text(33_000).hasPrefix(
                #"{"id": "1", "gateway": "hall", "command": "services", "address": "C0:DE:00:00:00:01", "#
                    + #""success": false, "error": {"code": "too_large", "text": "the result has "#
            )
        )
    }

    @Test func standardValuesAreDecoded() {
        let request = request("{}")
        #expect(
            request.text(of: .success(.value([0x0A, 0x08], of: "2A6E")), gateway: "hall")
                .hasSuffix(#""value": "0a08", "reading": "temperature", "decoded": 20.58, "unit": "°C"}"#)
        )
        #expect(
            request.text(of: .success(.value([0x0A], of: "2A6E")), gateway: "hall").hasSuffix(#""value": "0a"}"#)
        )
    }
}
