import BLE
import Testing

@testable import BLETool

@Suite("ble advertise --connect")
struct AdvertiseConnectTests {
    private static let address = "F0:12:34:56:78:9A"

    @Test(
        "A device in a subevent of the train is accepted, also with the other options",
        arguments: [
            (["--connect", "0:\(address)"], 0),
            (["--connect", "3:\(address)", "--subevents", "4"], 3),
            (["--subevents", "128", "--connect", "127:\(address)"], 127),
            (["--connect", "0:\(address)", "--subevent-data", "0102", "--count", "1", "--duration", "5"], 0),
        ] as [([String], UInt8)]
    )
    func deviceInASubeventOfTheTrainIsAccepted(arguments: [String], subevent: UInt8) throws {
        let device = try Advertise.parse(arguments).connect
        #expect(device?.subevent == subevent)
        #expect(device?.address == DeviceAddress(0xF012_3456_789A, isRandom: true))
    }

    @Test func commandConnectsToNoDeviceWithoutTheOption() throws {
        #expect(try Advertise.parse([]).connect == nil)
    }

    @Test(
        "A device in a subevent that the train does not have is refused",
        arguments: [
            (["--connect", "1:\(address)"], "--connect names subevent 1, but --subevents is 1"),
            (["--connect", "4:\(address)", "--subevents", "4"], "--connect names subevent 4, but --subevents is 4"),
            (["--connect", "9:\(address)", "--subevents", "9"], "--connect names subevent 9, but --subevents is 9"),
        ] as [([String], String)]
    )
    func deviceInASubeventBeyondTheTrainIsRefused(arguments: [String], problem: String) {
        #expect(Advertise.problem(with: arguments) == problem)
    }

    @Test(
        "A text that is no subevent and address is refused",
        arguments: [
            ("128:\(address)", "is no device in a subevent: it is SUBEVENT:ADDRESS, with a subevent of 0 to 127"),
            (address, "is no device in a subevent: it is SUBEVENT:ADDRESS, with a subevent of 0 to 127"),
            ("0:label", "\"0:label\" is no device in a subevent"),
            ("0:F0:12:34", "\"F0:12:34\" is not an address: it has six pairs of digits"),
        ]
    )
    func otherTextIsRefused(text: String, problem: String) {
        #expect(Advertise.problem(with: ["--connect", text, "--subevents", "128"])?.contains(problem) == true)
    }
}
