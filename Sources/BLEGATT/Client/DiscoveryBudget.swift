/// The requests and attributes that remain for one discovery procedure.
///
/// A procedure that consists of others passes its budget to them, so that the limits apply to all of them together.
struct DiscoveryBudget: Hashable, Sendable {
    private var requests = DiscoveryLimits.requests
    private var attributes = DiscoveryLimits.attributes

    /// Uses one request.
    ///
    /// - Returns: the error if none remains.
    mutating func takeRequest() -> ClientError? {
        guard requests > 0 else { return .tooManyRequests(limit: DiscoveryLimits.requests) }
        requests -= 1
        return nil
    }

    /// Uses one attribute.
    ///
    /// - Returns: the error if none remains.
    mutating func takeAttribute() -> ClientError? {
        guard attributes > 0 else { return .tooManyAttributes(limit: DiscoveryLimits.attributes) }
        attributes -= 1
        return nil
    }
}

/// The limits of one procedure that discovers services, characteristics or descriptors, or that reads by type.
///
/// A server decides how many attributes it has, and how many of them it returns in each response. A procedure that
/// reaches a limit ends in ``ClientError/tooManyAttributes(limit:)`` or ``ClientError/tooManyRequests(limit:)``. For
/// ``DiscoverAll`` the limits apply to everything that it discovers.
public enum DiscoveryLimits {
    /// Maximum number of services, includes, characteristics and descriptors together that one procedure accepts.
    public static let attributes = 2_000
    /// Maximum number of requests that one procedure sends. It is enough for the maximum number of attributes even if
    /// each needs its own request and its own walk.
    public static let requests = 4_096
}
