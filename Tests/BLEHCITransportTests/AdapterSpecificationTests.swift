import BLEHCITransport
import BluetoothTypes
import Testing

@Suite("An adapter's notation")
struct AdapterSpecificationTests {
    @Test(
        arguments: [
            ("hci0", AdapterSpecification.hci(index: 0, channel: .user)),
            ("hci:12", .hci(index: 12, channel: .user)),
            ("hci0?channel=user", .hci(index: 0, channel: .user)),
            ("hci65534?channel=raw", .hci(index: 65534, channel: .raw)),
            ("addr:00:1a:7D:da:71:13", .address(DeviceAddress(0x001A_7DDA_7113, isRandom: false), channel: .user)),
            (
                "addr:C0:00:00:00:00:01?channel=user",
                .address(DeviceAddress(0xC000_0000_0001, isRandom: false), channel: .user)
            ),
            (
                "addr:FF:FF:FF:FF:FF:FF?channel=raw",
                .address(DeviceAddress(0xFFFF_FFFF_FFFF, isRandom: false), channel: .raw)
            ),
            ("auto", .automatic),
            ("unix:/tmp/bt server", .unix(path: "/tmp/bt server")),
            ("seqpacket:/tmp/hci", .seqpacket(path: "/tmp/hci")),
            ("tcp:127.0.0.1:6402", .tcp(host: "127.0.0.1", port: 6402)),
            ("tcp:radio.example:65535", .tcp(host: "radio.example", port: 65535)),
            ("tcp:[::1]:7300", .tcp(host: "::1", port: 7300)),
            ("tcp:[127.0.0.1]:1", .tcp(host: "127.0.0.1", port: 1)),
            ("serial:/dev/ttyAMA0,115200", .serial(path: "/dev/ttyAMA0", baudRate: 115_200, usesFlowControl: false)),
            (
                "serial:/dev/ttyUSB0,3000000,flow=rtscts",
                .serial(path: "/dev/ttyUSB0", baudRate: 3_000_000, usesFlowControl: true)
            ),
            ("virtual", .virtual(name: "")),
            ("virtual:lab:2", .virtual(name: "lab:2")),
        ]
    )
    func validNotationIsParsed(text: String, expected: AdapterSpecification) throws {
        #expect(try AdapterSpecification(parsing: text) == expected)
    }

    @Test(
        arguments: [
            "hci0", "hci3?channel=raw", "addr:00:1A:7D:DA:71:13", "addr:00:1A:7D:DA:71:13?channel=raw", "auto",
            "unix:/run/hci", "seqpacket:/run/hci", "tcp:localhost:1",
            "tcp:[fe80::1%eth0]:9",
            "serial:/dev/ttyS0,9600", "serial:/dev/ttyS0,921600,flow=rtscts", "virtual", "virtual:lab",
        ]
    )
    func notationIsUnchangedByParsingAndWriting(text: String) throws {
        #expect(try AdapterSpecification(parsing: text).description == text)
    }

    @Test(
        arguments: [
            (
                "",
                "use hci0, addr:ADDRESS, auto, unix:PATH, seqpacket:PATH, tcp:HOST:PORT, serial:PATH,BAUD or virtual"
            ),
            ("addr:", "as in addr:00:1A"), ("addr:00:11:22:33:44", "as in addr:00:1A"),
            ("addr:00:11:22:33:44:5G", "as in addr:00:1A"), ("addr:00:11:22:33:44:55/P", "as in addr:00:1A"),
            ("addr:00:00:00:00:00:00", "as in addr:00:1A"), ("addr:00-11-22-33-44-55", "as in addr:00:1A"),
            ("addr:00:11:22:33:44:55?", "?channel=raw"), ("addr:00:11:22:33:44:55?channel=monitor", "?channel=raw"),
            ("addr", "use hci0"), ("auto?channel=raw", "use hci0"), ("auto:", "use hci0"), ("Auto", "use hci0"),
            ("usb:0", "use hci0"), ("Virtual", "use hci0"), ("virtual:", "virtual:lab"),
            ("hci", "as in hci0"), ("hci-1", "as in hci0"), ("hci+1", "as in hci0"), ("hci0x", "as in hci0"),
            ("hci65535", "as in hci0"), ("hci99999999999999999999", "as in hci0"), ("hci:?channel=raw", "as in hci0"),
            ("hci0?", "?channel=raw"), ("hci0?channel=monitor", "?channel=raw"), ("hci0?foo=raw", "?channel=raw"),
            ("unix:", "unix:/tmp"), ("unix:/" + String(repeating: "x", count: 107), "107 bytes"),
            ("seqpacket:", "seqpacket:/tmp"), ("seqpacket:/" + String(repeating: "x", count: 107), "107 bytes"),
            ("tcp:", "port from 1 to 65535"), ("tcp:localhost", "port from 1 to 65535"),
            ("tcp:localhost:", "port from 1 to 65535"), ("tcp:localhost:0", "port from 1 to 65535"),
            ("tcp:localhost:65536", "port from 1 to 65535"), ("tcp:localhost:+80", "port from 1 to 65535"),
            ("tcp::80", "host"), ("tcp:[]:80", "host"), ("tcp:[::1:80", "brackets"), ("tcp:::1:80", "brackets"),
            ("tcp:a b:80", "host"), ("tcp:[abc:80", "host"),
            ("serial:", "baud rate"), ("serial:/dev/ttyS0", "baud rate"), ("serial:,9600", "baud rate"),
            ("serial:/dev/ttyS0,fast", "baud rate"), ("serial:/dev/ttyS0,12345", "12345 is no rate"),
            ("serial:/dev/ttyS0,9600,flow=xonxoff", "flow=rtscts"),
            ("serial:/dev/ttyS0,9600,flow=rtscts,x", "baud rate"),
        ]
    )
    func invalidNotationIsRefusedWithAdvice(text: String, advice: String) {
        let error = #expect(throws: AdapterSpecificationError.self) { try AdapterSpecification(parsing: text) }
        #expect(error?.text == text)
        #expect(error?.description.contains(advice) == true, "\(error?.description ?? "")")
        #expect(error?.description.contains("\n") == false)
    }

    @Test(
        arguments: [
            ("virtual", "hci1", true, "virtual"),
            (nil, "hci1", true, "hci1"),
            ("", "hci1", false, "hci1"),
            (nil, nil, true, "hci0"),
            (nil, "", true, "hci0"),
        ] as [(String?, String?, Bool, String)]
    )
    func adapterIsChosenByArgumentThenEnvironmentThenHCI0(
        argument: String?,
        environment: String?,
        hasAdapterZero: Bool,
        expected: String
    ) throws {
        let chosen = try AdapterSpecification.resolve(argument, environment: environment) { hasAdapterZero }
        #expect(chosen.description == expected)
    }

    @Test func machineWithoutAdaptersGivesAdvice() {
        let error = #expect(throws: TransportError.self) {
            try AdapterSpecification.resolve(nil, environment: nil) { false }
        }
        #expect(error == .noAdapter)
        #expect(error?.description.contains("the adapter virtual") == true)
    }

    @Test func invalidEnvironmentIsAnErrorAndNotReplacedByHCI0() {
        let error = #expect(throws: TransportError.self) {
            try AdapterSpecification.resolve(nil, environment: "hic0") { true }
        }
        #expect(error?.description.contains("\"hic0\"") == true)
    }
}
