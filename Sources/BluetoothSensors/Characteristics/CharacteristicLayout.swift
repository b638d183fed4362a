/// The fields of an attribute's value, in wire order.
///
/// The layouts of assigned attributes are tables in `Layouts/`, one file for each family. ``LayoutDecoder`` interprets
/// them.
struct CharacteristicLayout: Sendable {
    let fields: [LayoutField]

    init(_ fields: LayoutField...) {
        self.fields = fields
    }

    init(_ fields: [LayoutField]) {
        self.fields = fields
    }

    /// Whether the value is a single field, whose name the text does not repeat.
    var isSingle: Bool {
        guard fields.count == 1, !fields[0].isRepeated else { return false }
        return switch fields[0].content {
        case .integer(_, let parts), .flags(_, let parts): parts.count == 1
        default: true
        }
    }

    /// The layouts by the 16-bit UUID of the attribute.
    static let assigned: [UInt16: CharacteristicLayout] = {
        let families = [
            genericAccess, deviceInformation, descriptors, time, battery, environment, airQuality, electricity, light,
            generic, heart, thermometer, bloodPressure, weight, glucose, oximeter, cycling, running, location, userData,
        ]
        return families.reduce(into: [:]) { all, family in all.merge(family) { first, _ in first } }
    }()
}

/// One field of a value.
struct LayoutField: Sendable {
    enum Content: Sendable {
        /// A little-endian integer that consists of parts.
        case integer(IntegerFormat, [LayoutPart])
        /// The same. Its bits decide which of the later fields are present.
        case flags(IntegerFormat, [LayoutPart])
        /// A decimal float of IEEE 11073-20601 with 16 or 32 bits. `shift` is added to its exponent.
        case medfloat16(unit: String?, shift: Int)
        case medfloat32(unit: String?, shift: Int)
        /// The rest of the value, in UTF-8.
        case text
        /// This many bytes, in hexadecimal digits. Without a name, they are not shown.
        case bytes(Int)
        /// The rest of the value as a set of bits.
        case bits([String])
        /// A date and a time of day in 7 bytes.
        case time
        /// A date in 4 bytes.
        case date
    }

    /// When the field is present.
    enum Condition: Sendable {
        /// These bits of the flags are set, and those are not.
        case bits(set: UInt64, clear: UInt64)
        /// The flags have, or do not have, this value.
        case equal(UInt64)
        case notEqual(UInt64)

        func isMet(by flags: UInt64) -> Bool {
            switch self {
            case .bits(let set, let clear): flags & set == set && flags & clear == 0
            case .equal(let value): flags == value
            case .notEqual(let value): flags != value
            }
        }
    }

    var name: String
    var content: Content
    var condition: Condition?
    /// Whether the field fills the rest of the value, once or more.
    var isRepeated = false

    /// The field if a bit of the flags is set, and another is not.
    func when(_ bit: Int, not clear: Int? = nil) -> LayoutField {
        with(.bits(set: 1 << bit, clear: clear.map { 1 << $0 } ?? 0))
    }

    /// The field if two bits of the flags are set.
    func when(_ bit: Int, and other: Int) -> LayoutField { with(.bits(set: 1 << bit | 1 << other, clear: 0)) }

    /// The field if a bit of the flags is not set.
    func unless(_ bit: Int) -> LayoutField { with(.bits(set: 0, clear: 1 << bit)) }

    func with(_ condition: Condition) -> LayoutField {
        var field = self
        field.condition = condition
        return field
    }

    var repeated: LayoutField {
        var field = self
        field.isRepeated = true
        return field
    }
}

/// Some bits of an integer, with their meaning.
struct LayoutPart: Sendable {
    enum Meaning: Sendable {
        /// A number with a unit. `special` has the texts of values that are no numbers.
        case number(NumberScale, isSigned: Bool, maximum: UInt64?, unit: String?, special: [UInt64: String])
        /// One of these names, by value; a value with an empty name is left out.
        case names([UInt64: String])
        /// A name for each bit.
        case set([String])
        /// A text; nil makes the value malformed.
        case text(@Sendable (UInt64) -> String?)
    }

    var name: String
    /// The bits; nil for all.
    var bits: Range<Int>?
    var meaning: Meaning
}

/// The width of a little-endian integer.
enum IntegerFormat: Sendable {
    case uint8, uint16, uint24, uint32, uint40, uint48, uint64
    case sint8, sint16, sint24, sint32

    /// In bytes.
    var size: Int {
        switch self {
        case .uint8, .sint8: 1
        case .uint16, .sint16: 2
        case .uint24, .sint24: 3
        case .uint32, .sint32: 4
        case .uint40: 5
        case .uint48: 6
        case .uint64: 8
        }
    }

    var isSigned: Bool {
        switch self {
        case .sint8, .sint16, .sint24, .sint32: true
        default: false
        }
    }
}

/// The factor from an integer to its value: `multiplier` · 10^`exponent` / 2^`binary`.
struct NumberScale: Sendable {
    var multiplier: Int = 1
    var exponent: Int = 0
    var binary: Int = 0

    /// The value, rounded once: a decimal factor gives the closest number to the decimal value.
    func value(_ raw: Int64) -> Double {
        let scaled = Int128(raw) * Int128(multiplier)
        let number = Double("\(scaled)e\(exponent)") ?? .nan
        return binary == 0 ? number : number / Double(1 << binary)
    }

    /// The value as text; a binary fraction has at most three decimals.
    func text(_ value: Double) -> String {
        numberText(binary == 0 ? value : (value * 1000).rounded() / 1000)
    }
}

/// A number as text; a whole number has no fraction.
func numberText(_ number: Double) -> String {
    Int64(exactly: number).map { "\($0)" } ?? "\(number)"
}
