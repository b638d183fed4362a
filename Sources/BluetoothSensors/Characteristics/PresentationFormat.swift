import BLEByteCoding
import BluetoothTypes

/// The content of a Characteristic Presentation Format descriptor, 0x2904 (Vol 3, Part G, 3.3.3.5).
///
/// | field | bytes |
/// |---|---|
/// | format | 1 |
/// | exponent, of ten, for integers | 1, signed |
/// | unit, a UUID of 16 bits | 2 |
/// | namespace of the description | 1 |
/// | description | 2 |
public struct PresentationFormat: Hashable, Sendable {
    /// The type of a value (Vol 3, Part G, 3.3.3.5.2).
    public enum Format: UInt8, Hashable, Sendable {
        case boolean = 0x01
        case uint2, uint4, uint8, uint12, uint16, uint24, uint32, uint48, uint64, uint128
        case sint8, sint12, sint16, sint24, sint32, sint48, sint64, sint128
        case float32, float64
        /// IEEE 11073 floats of 16 and 32 bits.
        case medfloat16, medfloat32
        /// IEEE 11073 structure of two 16-bit numbers.
        case duint16
        case utf8, utf16
        /// An opaque structure.
        case structure
    }

    /// The type; nil if the number is reserved.
    public var format: Format?
    /// The exponent of ten by which integers are multiplied.
    public var exponent: Int8
    /// The unit.
    public var unit: BluetoothUUID

    /// Decodes the 7 bytes of the descriptor. Returns nil for another length.
    public init?(decoding value: RawSpan) {
        guard value.byteCount == 7 else { return nil }
        var reader = ByteReader(value)
        guard let format = try? reader.readUInt8(), let exponent = try? reader.readInt8(),
            let unit = try? reader.readUInt16()
        else { return nil }
        self.format = Format(rawValue: format)
        self.exponent = exponent
        self.unit = BluetoothUUID(unit)
    }

    /// Decodes the 7 bytes of the descriptor. Returns nil for another length.
    public init?(decoding value: [UInt8]) {
        self.init(decoding: value.rawSpan)
    }

    /// The unit's symbol, or its name if it has no symbol; nil without a unit.
    public var unitSymbol: String? {
        guard let number = unit.shortValue, number != 0x2700 else { return nil }
        return UnitSymbol.symbols[number] ?? unit.name
    }

    // MARK: Values

    /// Decodes a value. Returns nil if it does not match the format.
    func decode(_ value: RawSpan) -> CharacteristicValue? {
        guard let format else { return nil }
        var reader = ByteReader(value)
        let result = try? decode(format, &reader)
        return reader.isAtEnd ? result : nil
    }

    private func decode(_ format: Format, _ reader: inout ByteReader) throws(PacketDecodingError)
        -> CharacteristicValue?
    {
        switch format {
        case .boolean:
            let state = try reader.readUInt8()
            return state < 2 ? value(.boolean(state == 1), state == 1 ? "true" : "false") : nil
        case .float32:
            return number(Double(Float(bitPattern: try reader.readUInt32())))
        case .float64:
            return number(Double(bitPattern: try reader.readUInt64()))
        case .medfloat16:
            return number(MedicalFloat(short: try reader.readUInt16()))
        case .medfloat32:
            return number(MedicalFloat(try reader.readUInt32()))
        case .utf8:
            return visibleText(reader.readRemaining()).map { value(.text($0), "\"\($0)\"") }
        case .duint16, .utf16, .structure:
            return nil
        default:
            guard let width = format.integerWidth else { return nil }
            return try integer(width: width, isSigned: format.rawValue >= Format.sint8.rawValue, &reader)
        }
    }

    /// Decodes an integer, whose upper bits are zero, or copies of the sign.
    private func integer(
        width: Int,
        isSigned: Bool,
        _ reader: inout ByteReader
    ) throws(PacketDecodingError) -> CharacteristicValue? {
        var bits: UInt128 = 0
        let size = (width + 7) / 8
        for index in 0..<size { bits |= UInt128(try reader.readUInt8()) << UInt128(index * 8) }
        if !isSigned {
            guard width == 128 || bits >> UInt128(width) == 0 else { return nil }
            return number(digits: "\(bits)")
        }
        let unused = Int128(128 - width)
        return number(digits: "\((Int128(truncatingIfNeeded: bits) << unused) >> unused)")
    }

    private func number(digits: String) -> CharacteristicValue? {
        guard exponent != 0 else { return value(Double(digits).map { .number($0) }, digits) }
        return Double("\(digits)e\(exponent)").flatMap(number)
    }

    private func number(_ number: Double) -> CharacteristicValue? {
        value(number.isFinite ? .number(number) : nil, number.isFinite ? numberText(number) : "not a number")
    }

    private func number(_ number: MedicalFloat) -> CharacteristicValue? {
        switch number {
        case .finite(let finite): self.number(finite)
        case .special(let text): value(nil, text)
        }
    }

    private func value(_ value: SensorReading.Value?, _ text: String) -> CharacteristicValue {
        let isNumber = if case .number = value { true } else { false }
        let unit = isNumber ? unitSymbol : nil
        let fields = value.map { [SensorReading(SensorDeviceClass(rawValue: "value"), $0, unit: unit)] }
        return CharacteristicValue(fields: fields ?? [], text: unit.map { "\(text) \($0)" } ?? text)
    }
}

extension PresentationFormat.Format {
    /// The number of bits of an integer; nil for other types.
    fileprivate var integerWidth: Int? {
        switch self {
        case .uint2: 2
        case .uint4: 4
        case .uint8, .sint8: 8
        case .uint12, .sint12: 12
        case .uint16, .sint16: 16
        case .uint24, .sint24: 24
        case .uint32, .sint32: 32
        case .uint48, .sint48: 48
        case .uint64, .sint64: 64
        case .uint128, .sint128: 128
        default: nil
        }
    }
}
