/// A company's assigned number (Assigned Numbers, 7.1).
public struct CompanyIdentifier: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16

    @inlinable
    public init(rawValue: UInt16) { self.rawValue = rawValue }
}

extension CompanyIdentifier: CustomStringConvertible {
    /// Four upper-case hexadecimal digits.
    public var description: String { hexadecimalDigits(rawValue, count: 4) }
}
