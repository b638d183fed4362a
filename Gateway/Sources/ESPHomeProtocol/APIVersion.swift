/// A version of the native API. A client and the server exchange theirs in Hello.
public struct APIVersion: Hashable, Comparable, Sendable {
    public var major: UInt32
    public var minor: UInt32

    /// Creates a version.
    public init(major: UInt32, minor: UInt32) {
        self.major = major
        self.minor = minor
    }

    /// The version that the server implements.
    static let server = APIVersion(major: 1, minor: 12)

    /// Whether a client of this version knows the short form of UUIDs. Older clients know the form of 128 bits only.
    public var hasShortUUIDs: Bool { self >= APIVersion(major: 1, minor: 12) }

    public static func < (left: APIVersion, right: APIVersion) -> Bool {
        (left.major, left.minor) < (right.major, right.minor)
    }
}
