import BLEByteCoding
import BluetoothTypes

/// The objects of BTHome version 2 (https://bthome.io/format, "Sensor data", "Binary sensor data", "Events").
enum BTHomeObject {
    enum Kind {
        /// Not defined.
        case none
        /// An unsigned or a signed number; the value is the number times `factor`, divided by `divisor`.
        case unsigned, signed
        case boolean, button, dimmer, command, text, raw, timestamp, deviceType, firmware
    }

    struct Layout {
        var kind: Kind
        var deviceClass: SensorDeviceClass
        /// The number of bytes of the value; 0 if a length precedes it.
        var length: Int
        var divisor: Double = 1
        var factor: Double = 1
        /// The unit, if it is not the usual one of the class.
        var unit: String?

        /// Whether an object with this layout is a reading. The other objects describe the device.
        var isReading: Bool {
            switch kind {
            case .none, .deviceType, .firmware: false
            default: true
            }
        }
    }

    /// Returns the layout of an object by its identifier.
    static func layout(_ identifier: UInt8) -> Layout {
        switch identifier {
        case 0x00: unsigned(.packetID, 1)
        case 0x01: unsigned(.battery, 1)
        case 0x02: signed(.temperature, 2, 100)
        case 0x03: unsigned(.humidity, 2, 100)
        case 0x04: unsigned(.pressure, 3, 100)
        case 0x05: unsigned(.illuminance, 3, 100)
        case 0x06: unsigned(.mass, 2, 100)
        case 0x07: unsigned(.mass, 2, 100, unit: "lb")
        case 0x08: signed(.dewPoint, 2, 100)
        case 0x09: unsigned(.count, 1)
        case 0x0A: unsigned(.energy, 3, 1000)
        case 0x0B: unsigned(.power, 3, 100)
        case 0x0C: unsigned(.voltage, 2, 1000)
        case 0x0D: unsigned(.pm25, 2)
        case 0x0E: unsigned(.pm10, 2)
        case 0x0F...0x11, 0x15...0x2D: Layout(kind: .boolean, deviceClass: booleanClass(identifier), length: 1)
        case 0x12: unsigned(.carbonDioxide, 2)
        case 0x13: unsigned(.volatileOrganicCompounds, 2)
        case 0x14: unsigned(.moisture, 2, 100)
        case 0x2E: unsigned(.humidity, 1)
        case 0x2F: unsigned(.moisture, 1)
        case 0x3A: Layout(kind: .button, deviceClass: .button, length: 1)
        case 0x3B: Layout(kind: .command, deviceClass: .command, length: 0)
        case 0x3C: Layout(kind: .dimmer, deviceClass: .dimmer, length: 2)
        case 0x3D: unsigned(.count, 2)
        case 0x3E: unsigned(.count, 4)
        case 0x3F: signed(.rotation, 2, 10)
        case 0x40: unsigned(.distance, 2)
        case 0x41: unsigned(.distance, 2, 10, unit: "m")
        case 0x42: unsigned(.duration, 3, 1000)
        case 0x43: unsigned(.current, 2, 1000)
        case 0x44: unsigned(.speed, 2, 100)
        case 0x45: signed(.temperature, 2, 10)
        case 0x46: unsigned(.uvIndex, 1, 10)
        case 0x47: unsigned(.volume, 2, 10)
        case 0x48: unsigned(.volume, 2, unit: "mL")
        case 0x49: unsigned(.volumeFlowRate, 2, 1000)
        case 0x4A: unsigned(.voltage, 2, 10)
        case 0x4B: unsigned(.gas, 3, 1000)
        case 0x4C: unsigned(.gas, 4, 1000)
        case 0x4D: unsigned(.energy, 4, 1000)
        case 0x4E: unsigned(.volume, 4, 1000)
        case 0x4F: unsigned(.water, 4, 1000)
        case 0x50: Layout(kind: .timestamp, deviceClass: .timestamp, length: 4)
        case 0x51: unsigned(.acceleration, 2, 1000)
        case 0x52: unsigned(.gyroscope, 2, 1000)
        case 0x53: Layout(kind: .text, deviceClass: .text, length: 0)
        case 0x54: Layout(kind: .raw, deviceClass: .raw, length: 0)
        case 0x55: unsigned(.volumeStorage, 4, 1000)
        case 0x56: unsigned(.conductivity, 2)
        case 0x57: signed(.temperature, 1)
        case 0x58: Layout(kind: .signed, deviceClass: .temperature, length: 1, divisor: 100, factor: 35)
        case 0x59: signed(.count, 1)
        case 0x5A: signed(.count, 2)
        case 0x5B: signed(.count, 4)
        case 0x5C: signed(.power, 4, 100)
        case 0x5D: signed(.current, 2, 1000)
        case 0x5E: unsigned(.direction, 2, 100)
        case 0x5F: unsigned(.precipitation, 2, 10)
        case 0x60: unsigned(.channel, 1)
        case 0x61: unsigned(.rotationalSpeed, 2)
        case 0x62: signed(.speed, 4, 1_000_000)
        case 0x63: signed(.acceleration, 4, 1_000_000)
        case 0x64: unsigned(.lightLevel, 1)
        case 0x65: unsigned(.settingsRevision, 1)
        case 0xF0: Layout(kind: .deviceType, deviceClass: .raw, length: 2)
        case 0xF1: Layout(kind: .firmware, deviceClass: .raw, length: 4)
        case 0xF2: Layout(kind: .firmware, deviceClass: .raw, length: 3)
        default: Layout(kind: .none, deviceClass: .raw, length: 0)
        }
    }

    /// Decodes the value of one object. Appends at most one reading. Events that the format does not define, empty
    /// texts, and percentages out of range are left out.
    static func decode(_ value: RawSpan, _ layout: Layout, into report: inout SensorReport) {
        let deviceClass = layout.deviceClass
        func append(_ value: SensorReading.Value) {
            let hasUnit = layout.kind == .unsigned || layout.kind == .signed
            let unit = hasUnit ? layout.unit ?? deviceClass.usualUnit : nil
            report.readings.append(SensorReading(deviceClass, value, unit: unit))
        }
        let bytes = [UInt8](copying: value)
        let unsigned = bytes.count > 4 ? 0 : bytes.reversed().reduce(Int64(0)) { $0 << 8 | Int64($1) }
        switch layout.kind {
        case .none: break
        case .unsigned:
            let number = Double(unsigned) / layout.divisor
            if deviceClass.usualUnit == "%" {
                report.readings.appendPercentage(deviceClass, number)
            } else {
                append(.number(number))
            }
        case .signed:
            let shift = Int64(64 - 8 * bytes.count)
            append(.number(Double((unsigned << shift) >> shift) * layout.factor / layout.divisor))
        case .boolean: append(.boolean(unsigned != 0))
        case .button: buttonEvent(bytes[0]).map { append(.event($0, count: nil)) }
        case .dimmer:
            if bytes[0] == 1 { append(.event("rotate_left", count: Int(bytes[1]))) }
            if bytes[0] == 2 { append(.event("rotate_right", count: Int(bytes[1]))) }
        case .command:
            commandEvent(bytes[0]).map { append(.event($0, count: bytes.count > 1 ? Int(bytes[1]) : nil)) }
        case .text: if !bytes.isEmpty { append(.text(printableText(value))) }
        case .raw: if !bytes.isEmpty { append(.text(bytes.hexadecimal)) }
        case .timestamp: append(.number(Double(unsigned)))
        case .deviceType: report.model = "0x" + [UInt8](bytes.reversed()).hexadecimal
        case .firmware: report.firmware = bytes.reversed().map(String.init).joined(separator: ".")
        }
    }

    private static func unsigned(
        _ deviceClass: SensorDeviceClass,
        _ length: Int,
        _ divisor: Double = 1,
        unit: String? = nil
    ) -> Layout {
        Layout(kind: .unsigned, deviceClass: deviceClass, length: length, divisor: divisor, unit: unit)
    }

    private static func signed(_ deviceClass: SensorDeviceClass, _ length: Int, _ divisor: Double = 1) -> Layout {
        Layout(kind: .signed, deviceClass: deviceClass, length: length, divisor: divisor)
    }

    private static func booleanClass(_ identifier: UInt8) -> SensorDeviceClass {
        switch identifier {
        case 0x10: .power
        case 0x11: .opening
        case 0x15: .battery
        case 0x16: .batteryCharging
        case 0x17: .carbonMonoxide
        case 0x18: .cold
        case 0x19: .connectivity
        case 0x1A: .door
        case 0x1B: .garageDoor
        case 0x1C: .gas
        case 0x1D: .heat
        case 0x1E: .light
        case 0x1F: .lock
        case 0x20: .moisture
        case 0x21: .motion
        case 0x22: .moving
        case 0x23: .occupancy
        case 0x24: .plug
        case 0x25: .presence
        case 0x26: .problem
        case 0x27: .running
        case 0x28: .safety
        case 0x29: .smoke
        case 0x2A: .sound
        case 0x2B: .tamper
        case 0x2C: .vibration
        case 0x2D: .window
        default: .generic
        }
    }

    private static func buttonEvent(_ value: UInt8) -> String? {
        switch value {
        case 0x01: "press"
        case 0x02: "double_press"
        case 0x03: "triple_press"
        case 0x04: "long_press"
        case 0x05: "long_double_press"
        case 0x06: "long_triple_press"
        case 0x80: "hold_press"
        case 0x81: "hold_release"
        default: nil
        }
    }

    private static func commandEvent(_ value: UInt8) -> String? {
        switch value {
        case 0x00: "off"
        case 0x01: "on"
        case 0x02: "toggle"
        case 0x03: "step_up"
        case 0x04: "step_down"
        default: nil
        }
    }
}
