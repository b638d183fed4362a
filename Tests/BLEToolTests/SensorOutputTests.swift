import BLEProfiles
import BluetoothSensors
import BluetoothTypes
import Glibc
import Testing

@testable import BLETool

@Suite("Readings of sensors in a scan")
struct SensorOutputTests {
    private let address = DeviceAddress(0x5448_E68F_80A5, isRandom: false)

    /// The example of https://bthome.io/encryption, with its counter.
    private let sealed = "1216d2fc41a47266c95f730011223378237214"

    private func reader(key: String? = nil) async throws -> SensorReader {
        var options = try SensorOptions.parse(["--decode"])
        if let key { options.bindKey = [try SensorKey(argument: "\(address)=\(key)")] }
        return try #require(try await options.reader())
    }

    private func sighting(_ digits: String, _ reader: inout SensorReader) throws -> Sighting {
        let data = AdvertisingData(decoding: try #require([UInt8](hexadecimal: digits)))
        return Sighting(
            address: address,
            rssi: -60,
            isConnectable: false,
            data: data,
            sensors: reader.reports(in: data, from: address, at: Instant(nanoseconds: 0))
        )
    }

    @Test func readingsAreShownWithUnits() async throws {
        var reader = try await reader()
        let sighting = try sighting("0c16d2fc40029c080356133a01", &reader)
        let readings = "bthome_v2: temperature 22.04 °C, humidity 49.5 %, button press"
        #expect(sighting.line.contains("  \(readings)  FCD2="))
        #expect(sighting.cellsWithReadings[4] == readings)
        #expect(
            sighting.json.description.hasSuffix(
                #""sensors":[{"format":"bthome_v2","readings":{"temperature":{"value":22.04,"unit":"°C"},"#
                    + #""humidity":{"value":49.5,"unit":"%"},"button":{"event":"press"}}}]}"#
            )
        )
    }

    @Test func encryptedSensorNeedsKey() async throws {
        var reader = try await reader()
        let sighting = try sighting(sealed, &reader)
        #expect(sighting.cellsWithReadings[4] == "bthome_v2: encrypted, needs a key")
        #expect(sighting.json.description.contains(#""problem":"needsKey","counter":857870592,"readings":{}"#))
    }

    @Test func repeatedEncryptedAdvertisementKeepsItsReadings() async throws {
        var reader = try await reader(key: "231d39c1d7cc1ab1aee224cd096db932")
        for _ in 0..<2 {
            let sighting = try sighting(sealed, &reader)
            #expect(
                sighting.cellsWithReadings[4] == "bthome_v2 (encrypted): temperature 25.06 °C, humidity 50.55 %"
            )
            #expect(sighting.json.description.contains(#""encrypted":true"#))
        }
    }

    @Test func wrongKeyIsReported() async throws {
        var reader = try await reader(key: "00000000000000000000000000000000")
        let sighting = try sighting(sealed, &reader)
        #expect(sighting.cellsWithReadings[4] == "bthome_v2: encrypted, does not match the key")
    }

    @Test func advertisementOfOtherDevicesHasNoReadings() async throws {
        var reader = try await reader()
        let sighting = try sighting("020106", &reader)
        #expect(sighting.cellsWithReadings[4] == "-")
        #expect(sighting.json.description.hasSuffix(#""sensors":[]}"#))
    }

    @Test func tableHasColumnOfReadings() async throws {
        var reader = try await reader()
        var table = ScanTable(showsReadings: true)
        table.note(try sighting("0a16d2fc40029c08035613", &reader))
        // An empty scan response does not remove the readings.
        table.note(Sighting(address: address, rssi: -60, isConnectable: false, data: AdvertisingData(), sensors: []))
        #expect(
            table.lines(width: 80, height: 24).prefix(2) == [
                "ADDRESS            TYPE    RSSI  NAME  READINGS                                …",
                "54:48:E6:8F:80:A5  public  -60   -     bthome_v2: temperature 22.04 °C, humidit…",
            ]
        )
    }

    @Test(
        arguments: [
            ("A4:C1:38:00:00:01", "the key of a sensor is ADDRESS=KEY, as in A4:C1:38:00:00:01=000102…0f"),
            ("A4C1=00", "\"A4C1\" is not an address: it has six pairs of digits, as in F0:12:34:56:78:9A"),
            (
                "A4:C1:38:00:00:01=secret",
                "the key of A4:C1:38:00:00:01 has 6 characters, or others than hexadecimal digits; it has 32 digits"
            ),
        ]
    )
    func invalidKeyIsRefusedAndNotRepeated(argument: String, problem: String) {
        #expect(throws: ArgumentProblem(problem)) { try SensorKey(argument: argument) }
    }

    @Test func keysAreReadFromFile() async throws {
        let path = try temporaryFile("# hall\n\nA4:C1:38:00:00:01 = 000102030405060708090a0b0c0d0e0f\r\n")
        defer { unlink(path) }
        let keys = try await SensorKey.keys(inFile: path)
        #expect(keys.map(\.address.value) == [0xA4C1_3800_0001])
        #expect(keys.first?.key == BindKey(Array(0...15)))
    }

    @Test func invalidLineOfFileIsNamed() async throws {
        let path = try temporaryFile("# hall\nA4:C1:38:00:00:01\n")
        defer { unlink(path) }
        let error = try await #require(throws: FileError.self) { try await SensorKey.keys(inFile: path) }
        #expect("\(error)".hasPrefix("\(path): line 2: the key of a sensor is ADDRESS=KEY"))
    }

    @Test func keyNeedsDecode() {
        #expect(Scan.problem(with: ["--bind-keys", "keys"]) == "--bind-key and --bind-keys go with --decode")
        #expect(throws: Never.self) { try Scan.parse(["--decode", "--bind-keys", "keys"]) }
    }

    private func temporaryFile(_ text: String) throws -> String {
        let path = "/tmp/ble-keys-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        try #require(Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
        return path
    }
}
