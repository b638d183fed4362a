import BluetoothTypes

/// The kinds of fields that the tables of layouts use.
extension LayoutField {
    /// A number: the integer times `times` · 10^`exponent` / 2^`binary`, in `unit`.
    ///
    /// - Parameters:
    ///   - maximum: The greatest integer; a greater one makes the value malformed.
    ///   - unknown: The integer of a value that the device does not know.
    ///   - special: The texts of other integers that are no values.
    static func number(
        _ name: String,
        _ format: IntegerFormat,
        times: Int = 1,
        exponent: Int = 0,
        binary: Int = 0,
        _ unit: String? = nil,
        maximum: UInt64? = nil,
        unknown: UInt64? = nil,
        special: [UInt64: String] = [:]
    ) -> LayoutField {
        var special = special
        if let unknown { special[unknown] = "unknown" }
        let scale = NumberScale(multiplier: times, exponent: exponent, binary: binary)
        let part = LayoutPart(
            name: name,
            meaning: .number(scale, isSigned: format.isSigned, maximum: maximum, unit: unit, special: special)
        )
        return LayoutField(name: name, content: .integer(format, [part]))
    }

    /// One byte with one of several values, named from 0 on.
    static func names(_ name: String, _ names: [String]) -> LayoutField { .names(name, LayoutPart.table(names)) }

    /// One byte with one of several values.
    static func names(_ name: String, _ names: [UInt64: String]) -> LayoutField {
        LayoutField(name: name, content: .integer(.uint8, [LayoutPart(name: name, meaning: .names(names))]))
    }

    /// A set with a name for each bit, from bit 0 on.
    static func set(_ name: String, _ format: IntegerFormat, _ names: [String]) -> LayoutField {
        LayoutField(name: name, content: .integer(format, [LayoutPart(name: name, meaning: .set(names))]))
    }

    /// An integer whose text is computed.
    static func formatted(
        _ name: String,
        _ format: IntegerFormat,
        _ text: @escaping @Sendable (UInt64) -> String?
    ) -> LayoutField {
        LayoutField(name: name, content: .integer(format, [LayoutPart(name: name, meaning: .text(text))]))
    }

    /// An integer in hexadecimal digits, as assigned numbers are written.
    static func hexadecimal(_ name: String, _ format: IntegerFormat) -> LayoutField {
        .formatted(name, format) { hexadecimalNumber($0, size: format.size) }
    }

    static func packed(_ format: IntegerFormat, _ parts: LayoutPart...) -> LayoutField {
        LayoutField(name: "", content: .integer(format, parts))
    }

    static func flags(_ format: IntegerFormat, _ parts: LayoutPart...) -> LayoutField {
        LayoutField(name: "flags", content: .flags(format, parts))
    }

    static func medfloat16(_ name: String, _ unit: String?, shift: Int = 0) -> LayoutField {
        LayoutField(name: name, content: .medfloat16(unit: unit, shift: shift))
    }

    static func medfloat32(_ name: String, _ unit: String?) -> LayoutField {
        LayoutField(name: name, content: .medfloat32(unit: unit, shift: 0))
    }

    static func text(_ name: String) -> LayoutField { LayoutField(name: name, content: .text) }
    static func bytes(_ name: String, _ count: Int) -> LayoutField { LayoutField(name: name, content: .bytes(count)) }
    static func unused(_ count: Int) -> LayoutField { LayoutField(name: "", content: .bytes(count)) }
    static func bits(_ name: String, _ names: [String]) -> LayoutField {
        LayoutField(name: name, content: .bits(names))
    }
    static func time(_ name: String) -> LayoutField { LayoutField(name: name, content: .time) }
    static func date(_ name: String) -> LayoutField { LayoutField(name: name, content: .date) }
}

extension LayoutPart {
    static func number(
        _ name: String,
        _ bits: Range<Int>,
        _ unit: String? = nil,
        special: [UInt64: String] = [:]
    ) -> LayoutPart {
        let meaning = Meaning.number(NumberScale(), isSigned: false, maximum: nil, unit: unit, special: special)
        return LayoutPart(name: name, bits: bits, meaning: meaning)
    }

    static func names(_ name: String, _ bits: Range<Int>, _ names: [String]) -> LayoutPart {
        LayoutPart(name: name, bits: bits, meaning: .names(table(names)))
    }

    static func set(_ name: String, _ bits: Range<Int>, _ names: [String]) -> LayoutPart {
        LayoutPart(name: name, bits: bits, meaning: .set(names))
    }

    static func table(_ names: [String]) -> [UInt64: String] {
        Dictionary(uniqueKeysWithValues: names.enumerated().map { (UInt64($0.offset), $0.element) })
    }
}

/// An integer of `size` bytes as `0x` and all its hexadecimal digits.
func hexadecimalNumber(_ number: UInt64, size: Int) -> String { "0x" + hexadecimalDigits(number, count: size * 2) }
