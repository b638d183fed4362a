/// The identifiers of the commands that we send on one link: 1 to 255, each in turn (Vol 3, Part A, 4).
public struct SignalingIdentifiers: Sendable {
    private var next: UInt8 = 1

    /// Creates a sequence that starts with 1.
    public init() {}

    /// Returns the next identifier: 1 follows 255.
    public mutating func take() -> UInt8 {
        defer { next = next == .max ? 1 : next + 1 }
        return next
    }
}
