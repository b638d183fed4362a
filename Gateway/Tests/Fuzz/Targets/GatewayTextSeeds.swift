/// Messages of some gateways about some tags, their states, elections, and time.
var fleetSeeds: [FuzzScript] {
    func step(_ code: UInt8, _ text: String, gateway: UInt8 = 0, tag: UInt8 = 0) -> FuzzScript.Step {
        FuzzScript.Step((tag << 2 | gateway) << 3 | code, Array(text.utf8))
    }
    func message(_ sequence: Int, rssi: Int = -60, second: Int = 19) -> String {
        """
        {"time": "2026-11-24T16:48:\(second).375Z", "name": "Demo \\"x\\"", "rssi": \(rssi), "format": "bthome_v2", \
        "counter": \(sequence), "sequence": \(sequence), "boot": "0a1B2c3d", \
        "readings": {"packet_id": {"value": 1}, "temperature": {"value": 20.6, "unit": "°C"}}}
        """
    }
    let plain = #"{"time": "2026-11-24T16:48:19Z", "format": "atc1441", "readings": {}}"#
    let election = #"{"address": "00:00:00:00:00:01", "connect": "hall", "previous": null, "rssi": -60.0}"#
    let wait = FuzzScript.Step(1 << 3 | 4)
    let long = FuzzScript.Step(30 << 3 | 4)
    let values = [
        "[true, false, null]", "-0.5e+3", "\"\\u00e9\\n\"", #"{"a": {"b": [1, {}]}}"#, "[[[[[[[[[]]]]]]]]]",
        "\"\u{9B}\"",
    ]
    let topics = [
        "ble/sensors/C0DE00000001/hall", "ble/gateways/hall/status", "ble/gateways/hall/connections",
        "ble/fleet/gateways/C0DE00000001", "ble/fleet/gateways/c0de00000001", "ble/sensors/C0DE00000001/", "other/a",
    ]
    let payloads = [plain, "online", #"{"free": 0, "limit": 3}"#, election]
    let received: [FuzzScript.Step] = [
        step(0, message(1)), step(0, message(1, rssi: -50), gateway: 1), step(0, message(1)), step(0, plain, tag: 1),
        wait, step(0, message(1, rssi: -70), gateway: 2), step(0, message(2, second: 21), gateway: 1), wait, long,
    ]
    let states: [FuzzScript.Step] = [
        step(2, election), step(3, #"{"free": 0, "limit": 3}"#), step(5, "", tag: 0), step(5, "", tag: 1),
        step(3, #"{"free": 2}"#), wait, long, long,
    ]
    let texts: [FuzzScript.Step] = values.map { step(6, $0) } + topics.map { step(1, $0) }
    var scripts = [received, states, received + states + received, texts].map { FuzzScript($0) }
    for topic in topics {
        let messages: [FuzzScript.Step] = payloads.map { step(7, "\(topic)\0\($0)") }
        scripts.append(FuzzScript(messages + [wait]))
    }
    return scripts
}

/// A command of each kind, and commands that are refused.
var commandSeeds: [FuzzScript] {
    let names = [
        "connect", "disconnect", "services", "pair", "unpair", "read", "write", "subscribe", "unsubscribe", "reboot",
    ]
    let commands = names.map { name in
        """
        {"id": "7", "command": "\(name)", "address": "c0:de:00:00:00:01", "addressType": "random", "service": "180F", \
        "characteristic": "00002A19-0000-1000-8000-00805F9B34FB", "value": "00fF", "response": false, "timeout": 1.5}
        """
    }
    let others = [
        #"{"id": "a\"b", "command": "read", "address": "C0:DE:00:00:00:01", "characteristic": "2A6E"}"#,
        #"{"id": "", "command": "read"}"#, #"{"id": "1", "address": "C0DE00000001"}"#, "[]", "{", #"{"id": 1}"#,
        #"{"id": "1", "address": "C0:DE:00:00:00:01", "command": "connect", "timeout": 1e99}"#,
    ]
    return (commands + others).map { text in
        FuzzScript([FuzzScript.Step(0, Array(text.utf8)), FuzzScript.Step(1, Array(text.utf8))])
    }
}

/// Requests to the web server: whole, in pieces, one after the other, and malformed.
var httpSeeds: [FuzzScript] {
    let long = String(repeating: "x", count: 4097)
    func request(_ path: String, _ fields: String = "Host: localhost\r\n", method: String = "GET") -> [UInt8] {
        Array("\(method) \(path) HTTP/1.1\r\n\(fields)\r\n".utf8)
    }
    let requests: [[UInt8]] = [
        request("/"), request("/open", "Host: other.example\r\n"), request("/", "Host: other.example\r\n"),
        request("/missing?a=b#c"), request("/", method: "HEAD"), request("/", method: "POST"), request("*"),
        request("http://gw.example.org:80/"), request("HTTP://[::1]?x"), request("/", ""),
        request("/", "Host: a\r\nHost: b\r\n"), request("/", "Host: a\r\nConnection: close\r\n"),
        request("/", "Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"),
        request("/", "Host: a\r\nContent-Length: 1\r\n"), request("/", "Host: a\r\nTransfer-Encoding: chunked\r\n"),
        request("localhost:1", method: "CONNECT"), request("/", "Host: a\r\nX: \(long)\r\n"),
        Array("GET / HTTP/1.0\r\n\r\n".utf8), Array("hello\r\n\r\n".utf8), Array("GET / HTTP/1.1\r\nX:".utf8),
    ]
    var scripts = requests.map { request in
        FuzzScript([FuzzScript.Step(0, request), FuzzScript.Step(4, request), FuzzScript.Step(1, [76])])
    }
    let slow = request("/slow")
    for end in [FuzzScript.Step(2, [65]), FuzzScript.Step(3), FuzzScript.Step(1, [31])] {
        scripts.append(FuzzScript([FuzzScript.Step(4, slow + requests[0]), FuzzScript.Step(1, [20]), end]))
    }
    scripts.append(FuzzScript([FuzzScript.Step(4, Array(requests[0].prefix(9))), FuzzScript.Step(1, [11])]))
    return scripts
}

/// Texts of settings.
var settingSeeds: [FuzzScript] {
    let texts = [
        "mqtt://broker", "mqtts://me@[fe80::1]:88", "mqtt://me:secret@broker", "mqtt://127.0.0.1/", "8053", ":8053",
        "[::1]:8053", "gw.example.org:443", "hall.local.", "attacker.example:8053", "[::1]x", "127.0.0.1",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "AAEC",
    ]
    let steps = texts.map { FuzzScript.Step(0, Array($0.utf8)) }
    return [FuzzScript(steps)] + steps.map { FuzzScript([$0]) }
}

/// Records of a journal, configuration files, and files with a key.
var fileSeeds: [FuzzScript] {
    let number = [UInt8](repeating: 7, count: 8)
    let message: [UInt8] = [1] + number + number + [3, 0] + Array("a/b{}".utf8)
    let finished: [UInt8] = [2] + number + number
    // A complete record, with a topic of one byte and a payload of one byte.
    let record: [UInt8] = [
        0x15, 0, 0, 0, 0x6D, 0x4C, 0xC3, 0xA2, 1, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0x74, 0xAA,
    ]
    let settings = [
        #"{"port": 6053, "adapters": ["hci0", "serial:/dev/ttyACM0,115200"], "encryption": true, "name": null}"#,
        #"{"a": {"b": [null, -1.5e3, "\u00e9", [], false]}, "a": 18446744073709551615}"#, "{}", "[]", "{", "",
    ]
    let keys = ["AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", "\n"]
    var steps = [FuzzScript.Step(0, record + record), FuzzScript.Step(1, message), FuzzScript.Step(1, finished)]
    steps += settings.map { FuzzScript.Step(2, Array($0.utf8)) }
    steps += keys.map { FuzzScript.Step(3, Array($0.utf8)) }
    return [FuzzScript(steps)] + steps.map { FuzzScript([$0]) }
}
