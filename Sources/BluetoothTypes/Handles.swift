/// The handle of one attribute of a server (Vol 3, Part F, 3.2.2). Zero is reserved.
public struct AttributeHandle: RawRepresentable, Hashable, Comparable, Sendable {
    public let rawValue: UInt16

    @inlinable
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Creates a handle.
    @inlinable
    public init(_ rawValue: UInt16) { self.rawValue = rawValue }

    /// Zero, which no attribute has.
    public static let invalid = AttributeHandle(0x0000)
    /// The lowest handle.
    public static let first = AttributeHandle(0x0001)
    /// The highest handle.
    public static let last = AttributeHandle(0xFFFF)

    /// The handle after this one, or nil after the last.
    @inlinable
    public var next: AttributeHandle? { rawValue == 0xFFFF ? nil : AttributeHandle(rawValue &+ 1) }

    @inlinable
    public static func < (left: AttributeHandle, right: AttributeHandle) -> Bool { left.rawValue < right.rawValue }
}

extension AttributeHandle: CustomStringConvertible, ExpressibleByIntegerLiteral {
    @inlinable
    public init(integerLiteral value: UInt16) { rawValue = value }

    public var description: String { "0x" + hexadecimalDigits(rawValue, count: 4) }
}

/// The handle of one link of a controller: 12 bits, 0x0000 to 0x0EFF (Vol 4, Part E, 5.3.1).
public struct ConnectionHandle: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16

    @inlinable
    public init(rawValue: UInt16) { self.rawValue = rawValue & 0x0FFF }

    /// Creates a handle.
    @inlinable
    public init(_ rawValue: UInt16) { self.init(rawValue: rawValue) }
}

extension ConnectionHandle: CustomStringConvertible, ExpressibleByIntegerLiteral {
    @inlinable
    public init(integerLiteral value: UInt16) { self.init(rawValue: value) }

    public var description: String { "0x" + hexadecimalDigits(rawValue, count: 4) }
}
