import BLEByteCoding
import BluetoothTypes

/// The value of a characteristic or a descriptor as named fields, and as a text for people.
///
/// ```swift
/// let value = CharacteristicValue(decoding: [0x06, 0x48].rawSpan, of: "2A37")
/// value?.text           // "contact detected, heart rate 72 bpm"
/// value?.fields[1].name // "heart_rate"
/// ```
///
/// ## Sources
/// Attributes with an assigned UUID are decoded as the GATT Specification Supplement defines them, and descriptors as
/// the Core Specification does (Vol 3, Part G, 3.3.3). Another attribute is decoded by its ``PresentationFormat``.
///
/// ## Hostile values
/// A value that is too short, too long or out of range is not decoded. The cost is linear in the length of the value,
/// which is at most ``maximumLength``. Texts of the device have no characters that control a terminal or change the
/// direction of writing: they are replaced by U+FFFD.
public struct CharacteristicValue: Hashable, Sendable {
    /// The maximum length of an attribute value in bytes (Vol 3, Part F, 3.2.9).
    public static let maximumLength = 512

    /// The fields, in the order of the value. Fields that are absent, or that the device does not know, are left out.
    public var fields: [SensorReading]
    /// All fields in one line. It also names values that the device does not know.
    public var text: String

    /// Decodes a value.
    ///
    /// - Parameters:
    ///   - value: The bytes of the attribute.
    ///   - uuid: The UUID of the characteristic or the descriptor.
    ///   - format: The content of the characteristic's Characteristic Presentation Format descriptor, if it has exactly
    ///   one. It is used if the UUID has no layout of its own, or the value does not match it.
    /// - Returns: nil if the attribute is not known, or the value is malformed.
    public init?(decoding value: RawSpan, of uuid: BluetoothUUID, format: PresentationFormat? = nil) {
        guard (1...Self.maximumLength).contains(value.byteCount) else { return nil }
        if let layout = uuid.shortValue.flatMap({ CharacteristicLayout.assigned[$0] }),
            let decoded = LayoutDecoder.decode(value, layout)
        {
            self = decoded
        } else if let decoded = format?.decode(value) {
            self = decoded
        } else {
            return nil
        }
    }

    /// Decodes a value; see ``init(decoding:of:format:)-(RawSpan,_,_)``.
    public init?(decoding value: [UInt8], of uuid: BluetoothUUID, format: PresentationFormat? = nil) {
        self.init(decoding: value.rawSpan, of: uuid, format: format)
    }

    init(fields: [SensorReading], text: String) {
        self.fields = fields
        self.text = text
    }

    /// Whether attributes with this UUID have a layout of their own.
    public static func isKnown(_ uuid: BluetoothUUID) -> Bool {
        uuid.shortValue.map { CharacteristicLayout.assigned[$0] != nil } ?? false
    }
}
