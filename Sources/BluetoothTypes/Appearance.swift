/// The appearance of a device: a category in the upper 10 bits, a subcategory in the lower 6 (Assigned Numbers, 2.6).
public struct Appearance: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16

    @inlinable
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The appearance of a device that does not say what it is.
    public static let unknown = Appearance(rawValue: 0)

    /// 0 to 1023.
    @inlinable
    public var category: UInt16 { rawValue >> 6 }

    /// 0 to 63.
    @inlinable
    public var subcategory: UInt8 { UInt8(rawValue & 0x3F) }
}
