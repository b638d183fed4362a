import BLEByteCoding
import BluetoothTypes

/// Decodes a value by its layout.
struct LayoutDecoder {
    /// One decoded part of a value.
    private struct Item {
        var name: String
        /// Nil if the value is not known.
        var value: SensorReading.Value?
        var text: String
        var unit: String?
    }

    private var flags: UInt64 = 0
    private var items: [Item] = []
    private var isSingle: Bool

    private init(_ layout: CharacteristicLayout) {
        isSingle = layout.isSingle
    }

    /// Returns nil if the value does not match the layout in all its bytes.
    static func decode(_ value: RawSpan, _ layout: CharacteristicLayout) -> CharacteristicValue? {
        var decoder = LayoutDecoder(layout)
        var reader = ByteReader(value)
        do {
            for field in layout.fields where field.condition?.isMet(by: decoder.flags) ?? true {
                repeat {
                    guard try decoder.decode(field, &reader) else { return nil }
                } while field.isRepeated && !reader.isAtEnd
            }
            try reader.requireEnd()
        } catch {
            return nil
        }
        return decoder.items.isEmpty ? nil : decoder.result
    }

    // MARK: Fields

    /// Decodes one field. Returns false if its value is out of range.
    private mutating func decode(
        _ field: LayoutField,
        _ reader: inout ByteReader
    ) throws(PacketDecodingError) -> Bool {
        switch field.content {
        case .integer(let format, let parts):
            let number = try read(format, &reader)
            for part in parts where !decode(part, number, width: format.size * 8) { return false }
        case .flags(let format, let parts):
            flags = try read(format, &reader)
            for part in parts where !decode(part, flags, width: format.size * 8) { return false }
        case .medfloat16(let unit, let shift):
            append(field.name, MedicalFloat(short: try reader.readUInt16(), shift: shift), unit)
        case .medfloat32(let unit, let shift):
            append(field.name, MedicalFloat(try reader.readUInt32(), shift: shift), unit)
        case .text:
            guard let text = visibleText(reader.readRemaining()) else { return false }
            append(field.name, .text(text), "\"\(text)\"")
        case .bytes(let count):
            let digits = [UInt8](copying: try reader.readBytes(count: count)).hexadecimal
            if !field.name.isEmpty { append(field.name, .text(digits), digits) }
        case .bits(let names):
            appendSet(field.name, bits: [UInt8](copying: reader.readRemaining()), names)
        case .time:
            guard let time = try ClockFields.dateAndTime(&reader) else { return false }
            append(field.name, .text(time), time)
        case .date:
            guard let date = try ClockFields.date(&reader) else { return false }
            append(field.name, .text(date), date)
        }
        return true
    }

    private func read(_ format: IntegerFormat, _ reader: inout ByteReader) throws(PacketDecodingError) -> UInt64 {
        var number: UInt64 = 0
        for index in 0..<format.size { number |= UInt64(try reader.readUInt8()) << UInt64(index * 8) }
        return number
    }

    private mutating func decode(_ part: LayoutPart, _ number: UInt64, width: Int) -> Bool {
        let bits = part.bits ?? 0..<width
        let mask: UInt64 = bits.count >= 64 ? .max : 1 << UInt64(bits.count) - 1
        let raw = number >> UInt64(bits.lowerBound) & mask
        switch part.meaning {
        case .number(let scale, let isSigned, let maximum, let unit, let special):
            if let text = special[raw] {
                if !text.isEmpty { append(part.name, nil, text) }
                return true
            }
            if let maximum, raw > maximum { return false }
            let shift = Int64(64 - bits.count)
            let integer = isSigned ? (Int64(bitPattern: raw) << shift) >> shift : Int64(clamping: raw)
            let value = scale.value(integer)
            append(part.name, .number(value), scale.text(value), unit)
        case .names(let names):
            let text = names[raw] ?? "reserved (\(raw))"
            if !text.isEmpty { append(part.name, .text(text), text) }
        case .set(let names):
            appendSet(part.name, bits: (0..<8).map { UInt8(truncatingIfNeeded: raw >> UInt64($0 * 8)) }, names)
        case .text(let describe):
            guard let text = describe(raw) else { return false }
            append(part.name, .text(text), text)
        }
        return true
    }

    // MARK: Items

    private mutating func append(
        _ name: String,
        _ value: SensorReading.Value?,
        _ text: String,
        _ unit: String? = nil
    ) {
        items.append(Item(name: name, value: value, text: text, unit: unit))
    }

    private mutating func append(_ name: String, _ number: MedicalFloat, _ unit: String?) {
        switch number {
        case .finite(let value): append(name, .number(value), numberText(value), unit)
        case .special(let text): append(name, nil, text)
        }
    }

    /// Appends the names of the set bits. An empty set is left out if there are other fields.
    private mutating func appendSet(_ name: String, bits: [UInt8], _ names: [String]) {
        var found: [String] = []
        for index in 0..<bits.count * 8 where bits[index / 8] >> UInt8(index % 8) & 1 == 1 {
            found.append(index < names.count ? names[index] : "reserved bit \(index)")
        }
        guard !found.isEmpty || isSingle else { return }
        let text = found.isEmpty ? "none" : found.joined(separator: " and ")
        append(name, .text(text), text)
    }

    private var result: CharacteristicValue {
        var texts: [String] = []
        var fields: [SensorReading] = []
        var start = items.startIndex
        // Equal names are adjacent: only a field that fills the rest of the value is repeated.
        while start < items.endIndex {
            let rest = items[start...]
            let end = rest.firstIndex { $0.name != items[start].name } ?? items.endIndex
            texts.append(text(of: items[start..<end]))
            for (index, item) in items[start..<end].enumerated() {
                guard let value = item.value else { continue }
                let name = end - start > 1 ? "\(item.name)_\(index + 1)" : item.name
                let deviceClass = SensorDeviceClass(rawValue: item.name)
                fields.append(SensorReading(deviceClass, value, unit: item.unit, name: name))
            }
            start = end
        }
        return CharacteristicValue(fields: fields, text: texts.joined(separator: ", "))
    }

    /// The label, and the texts of one field with their unit.
    private func text(of items: ArraySlice<Item>) -> String {
        let values = items.map(\.text).joined(separator: ", ")
        let text = items.last?.unit.map { "\(values) \($0)" } ?? values
        return isSingle ? text : "\(label(of: items.first?.name ?? "")) \(text)"
    }

    private func label(of name: String) -> String {
        name.split(separator: "_").map { Self.acronyms[$0] ?? String($0) }.joined(separator: " ")
    }

    private static let acronyms: [Substring: String] = [
        "rr": "RR", "oui": "OUI", "uv": "UV", "bmi": "BMI", "spo2": "SpO2", "dst": "DST", "utc": "UTC", "hid": "HID",
    ]
}

/// Text that a device sent, without the zeros at its end. Returns nil if it is not UTF-8. Characters that could control
/// a terminal, hide text or change the direction of writing are replaced.
func visibleText(_ bytes: RawSpan) -> String? {
    var bytes = [UInt8](copying: bytes)
    while bytes.last == 0 { bytes.removeLast() }
    guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars { result.append(isVisible(scalar) ? scalar : "\u{FFFD}") }
    return String(result)
}

private func isVisible(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
    default: true
    }
}
