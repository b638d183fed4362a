import BLEByteCoding
import BluetoothSensors
import BluetoothTypes

/// Fuzzes the decoding of sensors. The input is an advertisement, from an address with a key and from one without it.
/// It is also the UUID of an attribute with its value, and the same with a presentation format before the value.
func fuzzSensors(_ input: [UInt8]) {
    var decoder = SensorDecoder()
    let address = DeviceAddress(0x5448_E68F_80A5, isRandom: false)
    for _ in 0..<2 {
        for report in decoder.decode(input.rawSpan, from: address, at: Instant(nanoseconds: 0)) {
            check(report.readings)
        }
        if let key = BindKey(hexadecimal: "231d39c1d7cc1ab1aee224cd096db932") { decoder.setKey(key, for: address) }
    }
    guard input.count > 2 else { return }
    let uuid = BluetoothUUID(UInt16(input[0]) | UInt16(input[1]) << 8)
    check(CharacteristicValue(decoding: Array(input[2...]), of: uuid)?.fields ?? [])
    guard input.count > 9, let format = PresentationFormat(decoding: Array(input[2..<9])) else { return }
    check(CharacteristicValue(decoding: Array(input[9...]), of: uuid, format: format)?.fields ?? [])
}

private func check(_ readings: [SensorReading]) {
    require(Set(readings.map(\.name)).count == readings.count, "two readings have the same name: \(readings)")
    for reading in readings {
        switch reading.value {
        case .number(let number): require(number.isFinite, "\(reading.name) is \(number)")
        case .text(let text):
            require(
                !text.unicodeScalars.contains { $0.properties.generalCategory == .control },
                "\(reading.name) has a control character"
            )
        case .boolean, .event: break
        }
    }
}
